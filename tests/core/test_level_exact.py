"""The level, exactly: every possible draw of a tiny pool is analysed, and the false certificates are counted.

No randomness is left but the worlds themselves, which are made hostile: chains that go back and forth, errors
placed so that policies lie just above the budget.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from testbed.enumeration import draws_of, enumerate_cell, false_share, place, tiny_plan
from tests.core.worlds import policies

pytestmark = [pytest.mark.costly, pytest.mark.long, pytest.mark.no_cover]

RULES = ("fixed_sequence", "multi_chain", "split_fixed_sequence")


@pytest.mark.parametrize("target", ["dataset", "pool"])
@pytest.mark.parametrize("rule", RULES)
def test_false_certificates_of_all_draws(target: str, rule: str) -> None:
    result = enumerate_cell(target, rule, "hypergeometric", pools=2, largest=10)
    assert result.worst <= 1 + 1e-12
    assert result.worst > 0.05  # the worlds are hard enough for the level to matter
    assert result.draws > 500


def test_false_certificates_of_all_ordered_draws() -> None:
    """A bound that bets along the draw sees its order: every sequence is analysed."""
    result = enumerate_cell("pool", "fixed_sequence", "betting_upper", pools=1, largest=8)
    assert result.worst <= 1 + 1e-12
    assert result.draws == 8 * 7 * 6 * 5


def test_items_that_nobody_can_label_do_not_break_the_level() -> None:
    """40 % of the wrong items stay blank: they count where a model labels them, and mend nothing."""
    rng = np.random.default_rng(8)
    for target in ("dataset", "pool"):
        plan = tiny_plan(target, 10, 6, "0.2", epsilon="0.26")
        for _ in range(3):
            losses = (rng.random((10, 2)) < 0.5).astype(np.float64)
            blank = losses.any(axis=1) & (rng.random(10) < 0.4)
            steps = [tuple(sorted(place(end, 10) for end in rng.integers(1, 11, 2))) for _ in range(6)]
            chain = policies(steps, costs=[9.0, *rng.permutation(6).tolist()])
            draws = draws_of(10, 6, ordered=False)
            assert false_share(plan, losses, draws, chains=[chain], blank=blank)[0] <= 0.2 + 1e-12


def test_without_the_stop_at_the_first_failure_the_level_breaks() -> None:
    """The same count catches a rule that takes the cheapest policy that passes anywhere in the chain."""
    size, asked = 12, 5
    plan = tiny_plan("pool", size, asked, "0.4", epsilon="0.1")
    losses = np.zeros((size, 2))
    losses[[0, 1], 0] = 1.0
    losses[[10, 11], 1] = 1.0
    first = (place(2, size), place(2, size))  # two items, both wrong
    second = (None, place(12, size))  # everything to the second model: two others wrong
    chain = policies([first, second], costs=[9.0, 2.0, 1.0])
    assert plan.budget == 1
    held, count = false_share(plan, losses, draws_of(size, asked, ordered=False), chains=[chain])
    anywhere = 0
    for draw in combinations(range(size), asked):
        anywhere += not ({0, 1} & set(draw)) or not ({10, 11} & set(draw))
    assert held <= 0.4 < anywhere / count
