"""The simultaneous test of nested chains, exactly: every draw of small pools, every set of wrong items.

Along a nested chain the items that each policy gets wrong only become more.  The test then lets any policy
with K <= c pass, in no order; where items move between models that very test has to fail.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from routing.core.bounds import BOUNDS, Evidence
from routing.core.rules.fixed_sequence import Verdict
from routing.core.targets import TARGETS
from routing.core.targets.dataset import nested_levels

pytestmark = pytest.mark.costly

Floats = NDArray[np.float64]

SMALL = [
    (size, asked, budget, level)
    for size, asked in ((6, 3), (7, 4), (8, 4), (9, 3), (9, 6))
    for budget in (0, 1, 2)
    for level in (Fraction(1, 5), Fraction(1, 2))
]


def draws_of(size: int, asked: int) -> NDArray[np.bool_]:
    """Every draw as a row of marks."""
    rows = [np.isin(np.arange(size), items) for items in combinations(range(size), asked)]
    return np.array(rows)


def judged(
    upper: Floats, lower: Floats, *, size: int, asked: int, budget: int, level: Fraction, target: str
) -> Verdict:
    """The nested test of policies with K+ and K-."""
    bound = BOUNDS.get("binomial" if target == "population" else "hypergeometric")
    evidence = Evidence.of_counts(upper, asked=asked, drawn=asked, p=Fraction(1), pool_size=size)
    return TARGETS.get(target).judge_nested(
        bound=bound, evidence=evidence, lower=lower, epsilon=Fraction(budget, size), level=level
    )


@pytest.mark.parametrize(("size", "asked", "budget", "level"), SMALL)
def test_with_probability_of_one_minus_alpha_every_passing_policy_keeps_the_promise(
    size: int, asked: int, budget: int, level: Fraction
) -> None:
    """All policies at once: a draw is bad if any of those that pass delivers more than E wrong labels.

    Policy t takes the first t items of the chain, so that its errors are the wrong ones among them.
    """
    draws = draws_of(size, asked)
    c = nested_levels(pool_size=size, asked=asked, budget=budget, level=level).together
    worst = 0.0
    for wrong in product((False, True), repeat=size):
        total = np.cumsum(wrong)
        seen = np.cumsum(draws & np.array(wrong), axis=1)
        worst = max(worst, float(((seen <= c) & (total - seen > budget)).any(axis=1).mean()))
    assert worst <= 0.9 * float(level) + 1e-12


def test_the_integer_is_the_largest_that_the_level_allows() -> None:
    for size, asked, budget in ((164, 100, 8), (500, 300, 25), (3000, 450, 150), (20, 15, 1)):
        levels = nested_levels(pool_size=size, asked=asked, budget=budget, level=Fraction(1, 20))

        def chance(c: int, *, n: int = size, e: int = budget, k: int = asked) -> float:
            return float(stats.hypergeom.cdf(c, n, e + c + 1, k)) if e + c + 1 <= n else 0.0

        c, level = levels.together, 0.9 * 0.05
        assert c < 0 or chance(c) <= level
        assert c == asked or chance(c + 1) > level
        narrow = [k for k in range(asked + 1) if stats.hypergeom.cdf(k, size, budget + 1, asked) <= 0.005]
        assert levels.narrow == max(narrow, default=-1) <= max(c, -1)


@pytest.mark.parametrize("blank_share", [0.0, 0.4])
@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_the_whole_test_keeps_its_level_where_some_items_cannot_be_labelled(
    target: str, blank_share: float
) -> None:
    """K+ counts such an asked item, K- does not; what a model says of it stays in the data set."""
    rng = np.random.default_rng(3)
    size, asked, budget, level = 9, 5, 1, Fraction(2, 5)
    draws = draws_of(size, asked)
    for _ in range(25):
        wrong, blank = rng.random(size) < 0.6, rng.random(size) < blank_share
        total = np.append(0, np.cumsum(wrong))
        false = 0
        for draw in draws:
            upper = np.append(0, np.cumsum(draw & (wrong | blank))).astype(np.float64)
            lower = np.append(0, np.cumsum(draw & wrong & ~blank)).astype(np.float64)
            verdict = judged(upper, lower, size=size, asked=asked, budget=budget, level=level, target=target)
            left = total - lower if target == "dataset" else total
            false += bool((left[verdict.eligible] > budget).any())
        assert false / len(draws) <= level


def test_where_items_move_between_models_the_same_test_fails() -> None:
    """Each policy is wrong on other items, as many of them, so that one of them looks good by luck."""
    size, asked, budget, level = 12, 6, 1, Fraction(2, 5)
    draws = draws_of(size, asked)
    c = nested_levels(pool_size=size, asked=asked, budget=budget, level=level).together
    assert c >= 0
    moving = [np.isin(np.arange(size), range(start, start + budget + c + 1)) for start in range(8)]
    nested = [np.isin(np.arange(size), range(end)) for end in range(size + 1)]
    shares = []
    for policies in (moving, nested):
        seen = np.array([(draws & wrong).sum(axis=1) for wrong in policies])
        total = np.array([[wrong.sum()] for wrong in policies])
        shares.append(float(((seen <= c) & (total - seen > budget)).any(axis=0).mean()))
    assert shares[0] > float(level)
    assert shares[1] <= 0.9 * float(level)


def test_no_order_of_testing_stops_at_a_policy_whose_items_nobody_could_label() -> None:
    """With the same number of errors a policy with unanswered items is left to the narrow test alone."""
    settings = {"size": 3000, "asked": 450, "budget": 150, "level": Fraction(1, 20), "target": "dataset"}
    upper = np.array([0.0, 5.0, 17.0, 17.0, 18.0])
    certain = judged(upper, upper, **settings)
    assert certain.eligible.tolist() == [True, True, True, True, False]
    unsure = judged(upper, np.array([0.0, 5.0, 17.0, 16.0, 18.0]), **settings)
    assert unsure.eligible.tolist() == [True, True, True, False, False]
    assert certain.limits == unsure.limits == {"c": 17, "c_0": 11}


@pytest.mark.parametrize("target", ["dataset", "pool", "population"])
def test_what_the_tests_attain_is_no_more_than_their_level(target: str) -> None:
    bound = BOUNDS.get("binomial" if target == "population" else "hypergeometric")
    for size, asked, level in (
        (3000, 450, Fraction(1, 20)),
        (164, 90, Fraction(1, 100)),
        (721, 270, Fraction(1, 10)),
    ):
        upper = np.zeros(2)
        evidence = Evidence.of_counts(upper, asked=asked, drawn=asked, p=Fraction(1), pool_size=size)
        epsilon, rule = Fraction(1, 20), TARGETS.get(target)
        for judge in (rule.judge, rule.judge_nested):
            verdict = judge(bound=bound, evidence=evidence, lower=upper, epsilon=epsilon, level=level)
            attained = rule.attained(bound=bound, evidence=evidence, epsilon=epsilon, verdict=verdict)
            assert 0 < attained <= level
            assert attained > 0.4 * level


def test_the_attained_level_is_the_sum_of_both_tails() -> None:
    none = np.zeros(2)
    evidence = Evidence.of_counts(none, asked=450, drawn=500, p=Fraction(9, 10), pool_size=3000)
    rule, bound = TARGETS.get("dataset"), BOUNDS.get("hypergeometric")
    settings = {"bound": bound, "evidence": evidence, "epsilon": Fraction(1, 20)}
    two = rule.judge(**settings, lower=none, level=Fraction(1, 20))
    assert two.limits == {"s": 15, "c_s": 17, "c_0": 11}
    hyp = stats.hypergeom
    assert rule.attained(**settings, verdict=two) == pytest.approx(
        hyp.cdf(17, 3000, 166, 450) + hyp.cdf(11, 3000, 151, 450)
    )
    nested = rule.judge_nested(**settings, lower=none, level=Fraction(1, 20))
    assert rule.attained(**settings, verdict=nested) == pytest.approx(
        hyp.cdf(17, 3000, 168, 450) + hyp.cdf(11, 3000, 151, 450)
    )
