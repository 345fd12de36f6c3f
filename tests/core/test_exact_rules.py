"""The level of the selection rules, exactly: every draw of a tiny pool is analysed.

`test_level_exact` does this for `fixed_sequence` with counted errors; here are the rules that learn their
chain or test several, and losses that are no counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from routing.core.bins import make_bins
from routing.core.calibration import along, cumulative, sorted_losses
from routing.core.certify import select
from routing.core.chain import Chain
from routing.core.keys import Key, Thresholds, count_at_or_below, pack, pack_thresholds
from routing.core.plan import Plan, validate
from routing.core.rules.split_fixed_sequence import first_part
from tests.core.worlds import policies

pytestmark = [pytest.mark.costly, pytest.mark.long, pytest.mark.no_cover]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def two_parts(size: int, asked: int, first: int) -> Iterator[Ints]:
    """Every choice of the first part and the rest: neither the chain nor the test sees an order in them."""
    for one in combinations(range(size), first):
        others = [i for i in range(size) if i not in one]
        for rest in combinations(others, asked - first):
            yield np.array([*one, *rest])


def chain_of(size: int, rng: np.random.Generator, name: str) -> Chain:
    """Policies in any order: back and forth, safe and risky ones mixed, at any cost."""
    steps: list[Thresholds] = []
    for _ in range(5):
        low, high = sorted(rng.integers(0, size + 1, 2).tolist())
        steps.append(tuple(Key((k - 1) / size, 0) if k else None for k in (low, high)))
    return policies(steps, costs=[100.0, *rng.permutation(5).astype(float)], name=name)


def outcomes(
    plan: Plan, draws: Sequence[Ints], losses: Floats, blank: NDArray[np.bool_], chains: Sequence[Chain]
) -> tuple[float, float]:
    """Shares of ``draws`` that certify something, and that certify a policy above the limit."""
    size = plan.pool_size
    u, v = np.arange(size) / size, np.zeros(size, dtype=np.int64)
    keys = pack(u, v)
    bound = plan.loss_function().bound
    slices = make_bins(u, v, count=size, whole_ties=False) if plan.rule == "split_fixed_sequence" else None

    def total(values: Floats, items: Ints, thresholds: Thresholds) -> float:
        items = np.sort(items)
        counts = count_at_or_below(keys[items], pack_thresholds([thresholds]))
        return float(along(cumulative(values[items]), counts)[0])

    known = np.where(blank[:, None], 0.0, losses)
    certified = false = 0
    for items in draws:
        upper = np.where(blank[items, None], bound, losses[items])
        seen = sorted_losses(u[items], v[items], upper, known[items], drawn=len(items))
        result = select(plan, chains, seen, slices=slices)
        certified += result.index > 0
        wrong = total(losses, np.arange(size), result.policy.thresholds)
        if plan.target == "dataset":
            wrong -= total(known, items, result.policy.thresholds)
        false += wrong > float(plan.exact_epsilon * size) + 1e-9
    return certified / len(draws), false / len(draws)


def plan_for(size: int, asked: int, **changes: object) -> Plan:
    settings: dict[str, object] = {
        "target": "pool",
        "costs": (1, 2, 9),
        "p": 1,
        "m": asked,
        "pool_size": size,
    }
    plan = Plan(**{**settings, **changes})  # type: ignore[arg-type]
    validate(plan)
    return plan


@pytest.mark.parametrize("target", ["dataset", "pool"])
@pytest.mark.parametrize("blanks", [0.0, 0.4])
def test_a_chain_learnt_from_the_first_labels(target: str, blanks: float) -> None:
    rng = np.random.default_rng(8)
    size, asked = 8, 6
    plan = plan_for(
        size,
        asked,
        target=target,
        rule="split_fixed_sequence",
        alpha="0.45",
        epsilon="0.13",
        split_share="0.34",
    )
    first = first_part(asked, plan.split_share)
    assert first == 2
    draws = list(two_parts(size, asked, first))
    found = []
    for rate in (0.3, 0.6):
        losses = (rng.random((size, 2)) < rate * np.array([1.0, 0.7])).astype(np.float64)
        blank = rng.random(size) < blanks
        found.append(outcomes(plan, draws, losses, blank, ()))
        assert found[-1][1] <= 0.45
    assert max(certified for certified, _ in found) > 0.1


def in_order(size: int, asked: int, first: int) -> Iterator[Ints]:
    """`two_parts` with the rest in every order, for a bound that bets along the draw."""
    for items in two_parts(size, asked, first):
        for rest in permutations(items[first:].tolist()):
            yield np.array([*items[:first].tolist(), *rest])


@pytest.mark.parametrize(
    ("bound", "size", "share", "epsilon"),
    [("hypergeometric", 8, "0.67", "0.4"), ("betting_upper", 7, "0.5", "0.45")],
)
def test_errors_that_taught_the_chain_are_taken_off_the_budget(
    bound: str, size: int, share: str, epsilon: str
) -> None:
    plan = plan_for(
        size,
        6,
        target="pool",
        rule="split_fixed_sequence",
        bound=bound,
        alpha="0.45",
        epsilon=epsilon,
        split_share=share,
    )
    draws = list(
        (in_order if bound == "betting_upper" else two_parts)(size, 6, first_part(6, plan.split_share))
    )
    losses = np.zeros((size, 2))
    losses[size - plan.budget - 1 :] = 1.0  # one wrong item too many, where a chain goes last
    none_blank = np.zeros(size, dtype=np.bool_)
    certified, false = outcomes(plan, draws, losses, none_blank, ())
    assert false <= 0.45 < certified


@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_two_chains_share_the_level(target: str) -> None:
    rng = np.random.default_rng(3)
    plan = plan_for(10, 6, target=target, rule="multi_chain", alpha="0.4", epsilon="0.2")
    draws = [np.array(items) for items in combinations(range(10), 6)]
    found = []
    for _ in range(8):
        losses = (rng.random((10, 2)) < 0.4).astype(np.float64)
        chains = [chain_of(10, rng, "one"), chain_of(10, rng, "two")]
        found.append(outcomes(plan, draws, losses, np.zeros(10, dtype=np.bool_), chains))
        assert found[-1][1] <= 0.4
    assert max(certified for certified, _ in found) > 0.5
    assert max(false for _, false in found) > 0


def test_chains_that_fail_in_different_draws_do_not_add_up() -> None:
    plan = plan_for(10, 6, target="pool", rule="multi_chain", alpha="0.4", epsilon="0.2")
    draws = [np.array(items) for items in combinations(range(10), 6)]
    losses = np.zeros((10, 2))
    losses[:3, 0] = losses[3:6, 1] = 1.0  # each model is wrong on three items, one too many, the other is not
    last = Key(0.9, 0)
    chains = [policies([(last, last)], name="one"), policies([(None, last)], name="two")]
    none_blank = np.zeros(10, dtype=np.bool_)
    together = outcomes(plan, draws, losses, none_blank, chains)[1]
    alone = [
        outcomes(
            plan_for(10, 6, target="pool", alpha="0.4", epsilon="0.2"), draws, losses, none_blank, [one]
        )[1]
        for one in chains
    ]
    assert 0 < together <= 0.4
    assert min(alone) == pytest.approx(1 / 3)  # each at the full level: together they would exceed it


@pytest.mark.parametrize("bound", ["betting_upper", "hoeffding_bentkus", "hoeffding"])
@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_losses_that_are_no_counts(bound: str, target: str) -> None:
    rng = np.random.default_rng(5)
    plan = plan_for(6, 4, target=target, bound=bound, loss="jaccard", alpha="0.4", epsilon="0.45")
    # Every order counts for a bound that bets along the draw.
    ways = permutations if bound == "betting_upper" else combinations
    draws = [np.array(items) for items in ways(range(6), 4)]
    found = []
    for _ in range(3):
        losses = rng.choice([0.0, 0.25, 0.5, 1.0], (6, 2), p=[0.4, 0.1, 0.2, 0.3])
        found.append(outcomes(plan, draws, losses, np.zeros(6, dtype=np.bool_), [chain_of(6, rng, "x")]))
        assert found[-1][1] <= 0.4
    assert max(certified for certified, _ in found) > 0
