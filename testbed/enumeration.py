"""The level without chance: every possible draw of a tiny pool is analysed, false certificates are counted.

The pools are made hostile: chains that go back and forth between cheap and dear, safe and risky policies, and
errors placed at random. Nothing is left to chance but these; the share of false certificates is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.core.bins import Bins, make_bins
from routing.core.bounds import BOUNDS
from routing.core.calibration import along, cumulative, sorted_losses
from routing.core.certify import select
from routing.core.chain import Chain, Policy
from routing.core.keys import Key, Thresholds
from routing.core.plan import Plan
from routing.core.rules import RULES
from routing.core.rules.split_fixed_sequence import first_part
from testbed.settings import plan_of

COSTS = (1, 2, 9)
STEPS = 6
SEED = 20_240_611
TARGETS = ("dataset", "pool")
SIZES = ((8, 4, "0.3"), (9, 4, "0.3"), (10, 6, "0.2"), (12, 5, "0.4"), (12, 8, "0.1"))
"""N, n and alpha."""
ORDERED = ((8, 4, "0.3"), (12, 3, "0.4"))
"""The same where the order of the draw matters: all ordered draws."""
SPLIT = ((8, 4, "0.3"), (10, 6, "0.2"), (12, 5, "0.4"))


@dataclass(frozen=True)
class Enumerated:
    """One rule and bound: pools enumerated, draws analysed in each, and the worst share / alpha."""

    target: str
    rule: str
    bound: str
    pools: int
    draws: int
    worst: float


def tiny_plan(target: str, size: int, asked: int, alpha: str, **changes: Any) -> Plan:
    """A plan that asks about every drawn item."""
    return plan_of(size, asked, **{"target": target, "alpha": alpha, "p": 1, "costs": COSTS, **changes})


def place(index: int, size: int) -> Key:
    """Threshold that takes the first ``index`` items of a pool of ``size``, whose scores are i / size."""
    return Key((index - 1) / size, 0)


def hostile_chain(size: int, rng: np.random.Generator, name: str) -> Chain:
    """Policies in any order, after people alone, with costs that have nothing to do with it."""
    cost = [100.0, *rng.permutation(STEPS).astype(float)]
    steps: list[Thresholds] = [(None, None)]
    for _ in range(STEPS):
        ends = sorted(rng.integers(0, size + 1, 2).tolist())
        steps.append(tuple(place(end, size) if end else None for end in ends))
    return Chain(name, tuple(Policy(t, (0, 0, size), 0.0, c) for t, c in zip(steps, cost, strict=True)))


def draws_of(size: int, asked: int, *, ordered: bool, split: int = 0) -> Iterator[tuple[int, ...]]:
    """Every draw: as sets, as sequences, or (``split``) as a set of the first items and one of the others."""
    if ordered:
        yield from permutations(range(size), asked)
    elif not split:
        yield from combinations(range(size), asked)
    else:
        for items in combinations(range(size), asked):
            for first in combinations(items, split):
                yield (*first, *(item for item in items if item not in first))


def false_share(
    plan: Plan,
    losses: NDArray[np.float64],
    draws: Iterator[tuple[int, ...]],
    *,
    chains: Sequence[Chain] = (),
    slices: Bins | None = None,
    blank: NDArray[np.bool_] | None = None,
) -> tuple[float, int]:
    """Share of ``draws`` whose certified thresholds exceed the budget, and the number of draws.

    Parameters
    ----------
    losses : (N, S - 1)
        Losses of the pool, whose item i has the score i / N.
    blank : (N,), optional
        Items that nobody can label.
    """
    size = plan.pool_size
    u, v = np.arange(size) / size, np.zeros(size, dtype=np.int64)
    nobody = np.zeros((size, 1), dtype=np.bool_) if blank is None else blank[:, None]
    above, below = np.where(nobody, 1.0, losses), np.where(nobody, 0.0, losses)
    truth = cumulative(losses)
    false = count = 0
    for draw in draws:
        items = np.array(draw)
        seen = sorted_losses(u[items], v[items], above[items], below[items], drawn=plan.m)
        chosen = select(plan, chains, seen, slices=slices)
        count += 1
        if not chosen.index:
            continue
        ends = np.array([[0 if t is None else round(t.u * size) + 1 for t in chosen.policy.thresholds]])
        excess = along(truth, ends)[0]
        if plan.target == "dataset":
            at_or_below = np.searchsorted(items[np.argsort(items)], ends, side="left")
            excess -= along(cumulative(below[np.sort(items)]), at_or_below)[0]
        false += excess > plan.budget
    return false / count, count


def enumerate_cell(target: str, rule: str, bound: str, pools: int, largest: int = 12) -> Enumerated:
    """The worst of ``pools`` hostile pools of each size N up to ``largest``."""
    sequential = BOUNDS.get(bound).sequential
    split = rule == "split_fixed_sequence"
    worst, number, analysed = 0.0, 0, 0
    for size, asked, alpha in SPLIT if split else ORDERED if sequential else SIZES:
        if size > largest or (split and sequential and size > 8):
            continue  # the latter has too many ordered draws
        rng = np.random.default_rng([SEED, size, asked])
        for pool in range(pools):
            epsilon = "0.17" if pool % 2 else "0.26"
            plan = tiny_plan(target, size, asked, alpha, epsilon=epsilon, rule=rule, bound=bound)
            losses = (rng.random((size, 2)) < rng.choice([0.3, 0.5, 0.8])).astype(np.float64)
            blank = rng.random(size) < (0.3 if pool % 6 == 5 else 0.0)
            learnt = first_part(asked, plan.split_share) if split else 0
            draws = draws_of(size, asked, ordered=sequential, split=learnt)
            if split:
                slices = make_bins(
                    np.arange(size) / size, np.zeros(size, np.int64), count=size, whole_ties=False
                )
                share, count = false_share(plan, losses, draws, slices=slices, blank=blank)
            else:
                chains = [hostile_chain(size, rng, f"chain {k}") for k in range(1 + (rule == "multi_chain"))]
                share, count = false_share(plan, losses, draws, chains=chains, blank=blank)
            worst, number, analysed = max(worst, share / float(alpha)), number + 1, analysed + count
    return Enumerated(target, rule, bound, number, analysed, worst)


def cells() -> list[tuple[str, str, str]]:
    """Target, rule and bound of every exact enumeration."""
    return [
        (target, rule, bound)
        for target in TARGETS
        for rule in RULES.names()
        if RULES.get(rule).holds_level
        for bound in BOUNDS.names()
        if BOUNDS.get(bound).certifies
        and not BOUNDS.get(bound).refusal(target=target, binary=True, constant_p=True)
    ]
