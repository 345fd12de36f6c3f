"""The rules of the paper and the two levels of the data set, against their definitions taken literally."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.typing import NDArray

from routing.core.bounds import BOUNDS, Evidence
from routing.core.calibration import sorted_losses
from routing.core.compare import compare_losses
from routing.core.keys import V_MAX
from routing.core.targets.dataset import SLACK, WIDE_SHARE, two_levels
from tests.core.worlds import plan_of

pytestmark = pytest.mark.costly

Floats = NDArray[np.float64]
SHARES = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)


def every_pair(u: Floats) -> list[tuple[float, float]]:
    scores = [-1.0, *np.unique(u).tolist()]
    return [(low, high) for low, high in product(scores, scores) if low <= high]


@pytest.mark.parametrize("bound", ["clt", "hoeffding"])
@given(
    seed=st.integers(0, 2**32 - 1), size=st.integers(5, 60), epsilon=st.sampled_from(["0.05", "0.1", "0.2"])
)
@settings(max_examples=25, deadline=None)
def test_the_rules_of_the_paper_choose_as_a_double_loop_over_all_pairs_does(
    bound: str, seed: int, size: int, epsilon: str
) -> None:
    rng = np.random.default_rng(seed)
    asked_u, losses = rng.integers(0, 8, size) / 7, (rng.random((size, 2)) < 0.3).astype(np.float64)
    extra = rng.integers(0, 10, size) / 9  # drawn, but nobody was asked about them
    drawn_u = np.concatenate([asked_u, extra])
    observed = sorted_losses(asked_u, rng.integers(0, V_MAX, size), losses, losses, drawn=2 * size)
    plan = plan_of(20 * size, 2 * size, p="0.5", epsilon=epsilon, costs=(1, 3, 10))
    rule, costs = BOUNDS.get(bound), np.array([1.0, 3.0, 10.0])
    found = []
    for low, high in every_pair(drawn_u):
        to_first, to_second = asked_u <= low, (asked_u > low) & (asked_u <= high)
        errors = losses[to_first, 0].sum() + losses[to_second, 1].sum()
        evidence = Evidence.of_counts(
            np.array([errors]), asked=size, drawn=2 * size, p=Fraction(1, 2), pool_size=20 * size
        )
        value = rule.p_values(evidence, plan.exact_epsilon, target="pool", level=0.05)[0]
        shares = np.array(
            [np.mean(drawn_u <= low), np.mean((drawn_u > low) & (drawn_u <= high)), np.mean(drawn_u > high)]
        )
        if value <= 0.05:
            found.append((float(shares @ costs), high, low, errors))
    chosen = {choice.rule: choice for choice in compare_losses(plan, drawn_u, observed, bound=bound)}
    cheapest, furthest = chosen["pointwise_argmin"], chosen["lexicographic"]
    low, high = (-1.0 if t is None else t.u for t in furthest.thresholds)
    if not found:
        assert cheapest.thresholds == furthest.thresholds == (None, None)
        return
    assert cheapest.routing_cost == pytest.approx(min(cost for cost, *_ in found))
    assert (cheapest.routing_cost, cheapest.observed_errors) in [
        (pytest.approx(cost), errors) for cost, _, _, errors in found
    ]
    assert (high, low) == max((high, low) for _, high, low, _ in found)


def exact_tail(size: int, wrong: int, asked: int, count: int) -> Fraction:
    """P[Hyp(size, wrong, asked) <= count], term by term; 0 where more are wrong than there are."""
    if wrong > size:
        return Fraction(0)
    terms = (comb(wrong, k) * comb(size - wrong, asked - k) for k in range(min(count, asked) + 1))
    return Fraction(sum(terms), comb(size, asked))


@given(
    size=st.integers(2, 60),
    part=SHARES,
    budget_part=st.fractions(0, Fraction(1, 2), max_denominator=60),
    level=st.fractions(Fraction(1, 100), Fraction(1, 2), max_denominator=100),
)
@settings(max_examples=150, deadline=None)
def test_the_two_levels_are_those_of_their_definition(
    size: int, part: Fraction, budget_part: Fraction, level: Fraction
) -> None:
    asked, budget = max(1, int(size * part)), int(size * budget_part)
    wide = WIDE_SHARE * level

    def largest(marked: int, limit: Fraction) -> int:
        return max((c for c in range(asked + 1) if exact_tail(size, marked, asked, c) <= limit), default=-1)

    found = two_levels(pool_size=size, asked=asked, budget=budget, level=level)
    alone = [k for k in range(asked + 1) if exact_tail(size, budget + k + 1, asked, k) <= wide]
    s = max(0, max(alone, default=-1) - SLACK) if size - asked > budget else 0
    assert found.s == s
    if s == 0:
        assert found.wide == found.narrow == largest(budget + 1, level)
    else:
        assert found.wide == largest(budget + s + 1, wide)
        assert found.narrow == largest(budget + 1, level - wide)


@given(
    size=st.integers(20, 400),
    part=st.fractions(Fraction(1, 20), Fraction(9, 10), max_denominator=50),
    budgets=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    levels=st.tuples(SHARES, SHARES),
)
@settings(max_examples=60, deadline=None)
def test_the_limits_of_the_data_set_never_fall_with_epsilon_or_alpha(
    size: int, part: Fraction, budgets: tuple[int, int], levels: tuple[Fraction, Fraction]
) -> None:
    asked = max(1, int(size * part))
    assume(max(budgets) < size - asked)  # else nothing can go wrong, and there is one test
    strict, loose = (
        two_levels(pool_size=size, asked=asked, budget=choose(budgets), level=choose(levels))
        for choose in (min, max)
    )
    assert strict.s <= loose.s
    if (strict.s == 0) == (loose.s == 0):
        assert strict.wide <= loose.wide
        assert strict.narrow <= loose.narrow
