"""The level, by simulation: fresh pools, pilots, chains and draws, seeded; false certificates against alpha.

A cell (world x target x rule x bound) fails if its count exceeds the smallest c with P[Bin(R, alpha) > c] <=
.01 / cells. On the same labels the rule of the paper has to fail that very test: otherwise the test could not
tell good from bad. `benchmarks/validity.py` does the same in every world, with 10,000 draws.
"""

from __future__ import annotations

import os

import pytest

from routing.core.rules import ALL_RULES
from testbed.known_truth import SETTINGS
from testbed.level import SECOND_SEED, Cell, Count, Job, certifying_cells, failed, limit, run_job

pytestmark = pytest.mark.costly

SEED = 2024
# Draws a world of the slow test; 10,000 take a quarter of an hour each.
DRAWS = int(os.environ.get("HYPAC_TEST_LEVEL_DRAWS", "1500"))


def check(counts: dict[Cell, Count], world: str, *, slow: bool) -> None:
    """No certifying cell fails, and all of them were there."""
    expected = set(certifying_cells(SETTINGS[world]))
    seen = {cell for cell in counts if ALL_RULES.get(cell.rule).holds_level}
    assert seen == expected if slow else seen < expected
    assert {cell.rule for cell in seen} == {rule.name for rule in ALL_RULES if rule.holds_level}
    assert failed(counts) == []


@pytest.mark.parametrize("world", ["power", "nested", "cliff"])
def test_false_certificates_stay_below_alpha(world: str) -> None:
    counts = run_job(Job(world, SEED, 0, 80, slow=False))
    check(counts, world, slow=False)
    default = counts[Cell(world, "dataset", "fixed_sequence", "hypergeometric")]
    assert default.certified >= 0.95 * default.draws
    assert default.saving > 0.25 * default.draws


def test_every_bound_stays_below_alpha_and_the_rule_of_the_paper_does_not() -> None:
    counts = run_job(Job("tiny", SEED, 1, 40, slow=True))
    check(counts, "tiny", slow=True)
    paper = counts[Cell("tiny", "population", "pointwise_argmin", "clt")]
    cells = sum(ALL_RULES.get(cell.rule).holds_level for cell in counts)
    assert paper.false > limit(paper.draws, cells), "the comparison rule should exceed the level here"


def test_savings_come_close_to_those_of_an_oracle() -> None:
    """At most 1.5 points below the greedy chain on the true errors, and noise."""
    defaults = (("dataset", "hypergeometric"), ("population", "binomial"))
    cells = tuple(Cell("power", target, "fixed_sequence", bound) for target, bound in defaults)
    for count in run_job(Job("power", SEED, 2, 80, slow=True, cells=cells)).values():
        assert count.paired == count.draws
        assert count.below / count.paired < 0.015 + 0.008


@pytest.mark.slow
@pytest.mark.parametrize("world", ["power", "nested", "ties", "unlabellable", "p = .2", "four sources"])
def test_false_certificates_stay_below_alpha_in_many_draws(world: str) -> None:
    """A failed cell is run once more, with a fresh seed and four times as long."""
    counts = run_job(Job(world, SEED, 3, DRAWS, slow=False))
    again = failed(counts)
    if again:
        second = run_job(Job(world, SECOND_SEED, 3, 4 * DRAWS, slow=False, cells=tuple(again)))
        cells = sum(ALL_RULES.get(cell.rule).holds_level for cell in counts)
        assert all(second[cell].false <= limit(second[cell].draws, cells) for cell in again)
