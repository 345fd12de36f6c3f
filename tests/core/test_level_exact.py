"""The level, exactly: every possible draw of a tiny pool is analysed, and the false certificates are counted.

No randomness is left but the worlds themselves, which are made hostile: chains that go back and forth, errors
placed so that policies lie just above the budget.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from routing.core.calibration import along, cumulative, sorted_losses
from routing.core.certify import certify_losses
from routing.core.chain import Chain
from routing.core.keys import Key, Thresholds
from routing.core.plan import Plan
from tests.core.worlds import policies

U = np.arange(12) / 12
V = np.zeros(12, dtype=np.int64)


def random_chain(size: int, rng: np.random.Generator, name: str = "x") -> Chain:
    """Six policies in any order, cheaper and dearer ones, safe and risky ones mixed."""
    sequence: list[Thresholds] = []
    for _ in range(6):
        low, high = sorted(rng.integers(0, size + 1, 2).tolist())
        sequence.append(tuple(Key(float(U[k - 1]), 0) if k else None for k in (low, high)))
    return policies(sequence, costs=[100.0, *rng.permutation(6).astype(float)], name=name)


def false_certificates(
    plan: Plan, chains: list[Chain], losses: np.ndarray, asked: int, blank: np.ndarray
) -> float:
    """Share of all draws of ``asked`` items whose chosen policy exceeds the budget."""
    size = plan.pool_size
    truth = cumulative(losses)
    wrong: dict[Thresholds, int] = {}
    for chain in chains:
        for policy in chain.policies:
            places = [[0 if t is None else round(t.u * 12) + 1 for t in policy.thresholds]]
            wrong[policy.thresholds] = int(along(truth, np.array(places))[0])
    draws = list(combinations(range(size), asked))
    false = 0
    for draw in draws:
        items = np.array(draw)
        lower = np.where(blank[items, None], 0.0, losses[items])
        upper = np.where(blank[items, None], 1.0, losses[items])
        seen = sorted_losses(U[items], V[items], upper, lower, drawn=asked)
        result = certify_losses(plan, chains, seen)
        if not result.certified:
            continue
        number = [chain.name for chain in chains].index(result.chain)
        excess = wrong[result.thresholds]
        if plan.target == "dataset":
            excess -= int(result.tests[number].lower[result.index])
        false += excess > plan.budget
    return false / len(draws)


@pytest.mark.parametrize("target", ["dataset", "pool"])
@pytest.mark.parametrize(
    ("size", "asked", "alpha"), [(9, 4, "0.3"), (10, 6, "0.2"), (12, 5, "0.4"), (12, 8, "0.1")]
)
def test_false_certificates_of_all_draws(target: str, size: int, asked: int, alpha: str) -> None:
    rng = np.random.default_rng(size * asked)
    worst = 0.0
    for world in range(6):
        plan = Plan(
            epsilon=Decimal("0.17") if world % 2 else Decimal("0.26"),
            alpha=Decimal(alpha),
            target=target,
            m=asked,
            p=Decimal(1),
            pool_size=size,
            costs=(Decimal(1), Decimal(2), Decimal(9)),
        )
        losses = (rng.random((size, 2)) < rng.choice([0.3, 0.5, 0.8])).astype(float)
        blank = rng.random(size) < (0.3 if world == 5 else 0.0)
        chains = [random_chain(size, rng, f"c{k}") for k in range(1 + world % 2)]
        share = false_certificates(plan, chains, losses, asked, blank)
        assert share <= float(Fraction(alpha)) + 1e-12
        worst = max(worst, share)
    assert worst > 0.0 or float(alpha) < 0.15  # the worlds are hard enough for the level to matter


def test_without_the_stop_at_the_first_failure_the_level_breaks() -> None:
    """The same count catches a rule that takes the cheapest policy that passes anywhere in the chain."""
    size, asked, alpha = 12, 5, 0.4
    plan = Plan(
        epsilon=Decimal("0.1"),
        alpha=Decimal("0.4"),
        target="pool",
        m=asked,
        p=Decimal(1),
        pool_size=size,
        costs=(Decimal(1), Decimal(2), Decimal(9)),
    )
    losses = np.zeros((size, 2))
    losses[[0, 1], 0] = 1.0
    losses[[10, 11], 1] = 1.0
    first = (Key(float(U[1]), 0), Key(float(U[1]), 0))  # two items, both wrong
    second = (None, Key(float(U[11]), 0))  # everything to the second model: two others wrong
    chain = policies([first, second], costs=[9.0, 2.0, 1.0])
    assert plan.budget == 1
    held = false_certificates(plan, [chain], losses, asked, np.zeros(size, dtype=bool))
    anywhere = 0
    draws = list(combinations(range(size), asked))
    for draw in draws:
        anywhere += not ({0, 1} & set(draw)) or not ({10, 11} & set(draw))
    assert held <= alpha < anywhere / len(draws)
