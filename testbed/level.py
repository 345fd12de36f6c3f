"""How often certificates are false: draws of worlds in which the truth is known, counted.

A cell fails if its count exceeds the smallest c with P[Bin(R, alpha) > c] <= .01 / M, for M certifying cells.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from scipy import stats

from routing.core.bounds import BOUNDS
from routing.core.certify import Selection
from routing.core.compare import compare_losses
from routing.core.every_score.select import ScoreSelection
from routing.core.rules import RULES, every_score
from testbed import every_score_draws
from testbed.draws import Draw
from testbed.known_truth import SETTINGS
from testbed.settings import Setting

SECOND_SEED = 20_240_612
"""Fixed before the first run; for cells that failed."""
EXACT = ("hypergeometric", "binomial")
"""The bounds that get the larger R."""
PAPER_BOUNDS = ("clt", "hoeffding")
ALPHA = 0.05
FAMILY = 0.01
"""Probability that any of M cells whose rule is at exactly alpha fails."""


@dataclass(frozen=True)
class Cell:
    """One thing that is counted."""

    world: str
    target: str
    rule: str
    bound: str


@dataclass
class Summed:
    """Numbers that are added up over draws."""

    def add(self, other: Self) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass
class Count(Summed):
    """What became of it."""

    draws: int = 0
    false: int = 0
    certified: int = 0
    saving: float = 0.0
    paired: int = 0
    below: float = 0.0
    """Draws in which the oracle's chain was walked, too, and how far the rule stayed below it in all."""


@dataclass(frozen=True)
class Job:
    """Some draws of one world; ``cells`` restricts what is counted."""

    world: str
    seed: int
    number: int
    draws: int
    slow: bool
    cells: tuple[Cell, ...] | None = None


def certifying_cells(setting: Setting) -> list[Cell]:
    """All rules and bounds that may certify in this world.

    With another bound than `hypergeometric`, the data set is certified through the pool: the same thresholds,
    judged by the weaker promise.
    """
    return [
        Cell(setting.name, target, rule, bound)
        for target in setting.targets
        for rule in RULES.names()
        if RULES.get(rule).holds_level
        for bound in BOUNDS.names()
        if BOUNDS.get(bound).certifies
        and not BOUNDS.get(bound).refusal(target=target, binary=True, constant_p=True)
    ]


def run_job(job: Job) -> dict[Cell, Count]:
    """Make the draws of a job and count."""
    setting = SETTINGS[job.world]
    rng = np.random.default_rng([job.seed, zlib.crc32(job.world.encode()), job.number])
    cells = job.cells
    if cells is None:
        cells = tuple(cell for cell in certifying_cells(setting) if job.slow or cell.bound in EXACT)
    counts: dict[Cell, Count] = {}
    for number in range(job.draws):
        draw = Draw(setting, rng)
        if number == 0:
            draw.check_shared_chains()
        for cell, count in certified(draw, cells, oracle=job.slow):
            counts.setdefault(cell, Count()).add(count)
        if job.cells is None and job.slow:
            for cell, count in compared(draw):
                counts.setdefault(cell, Count()).add(count)
    return counts


def certified(draw: Draw, cells: Iterable[Cell], *, oracle: bool) -> Iterable[tuple[Cell, Count]]:
    """One draw's contribution to each certifying cell."""
    results: dict[tuple[str, str, str], Selection | ScoreSelection] = {}
    for cell in cells:
        # A data set that is certified through the pool needs no second analysis.
        through = "pool" if cell.target == "dataset" and cell.bound != "hypergeometric" else cell.target
        key = (through, cell.rule, cell.bound)
        if key not in results:
            certify = every_score_draws.certify if cell.rule == every_score.RULE.name else Draw.certify
            results[key] = certify(draw, *key)
        chosen = results[key]
        count = Count(draws=1, certified=int(chosen.index > 0))
        if isinstance(chosen, ScoreSelection):
            count.false = int(count.certified and every_score_draws.false(draw, cell.target, chosen))
            count.saving = every_score_draws.saving(draw, cell.target, chosen)
        else:
            thresholds = chosen.policy.thresholds
            count.false = int(count.certified and draw.false(cell.target, thresholds))
            count.saving = draw.saving(cell.target, cell.rule, thresholds)
        if oracle and is_default(cell):
            count.paired, count.below = 1, draw.hindsight(cell.target, cell.bound) - count.saving
        yield cell, count


def compared(draw: Draw) -> Iterable[tuple[Cell, Count]]:
    """One draw's contribution to the cells of the paper's rules: what they would have chosen."""
    for bound in PAPER_BOUNDS:
        for pool in draw.pools.values():
            targets = [target for target in draw.plans if draw.pool(target) is pool]
            plan = draw.plans[targets[0]]
            for choice in compare_losses(plan, pool.world.u[pool.drawn], pool.losses, bound=bound):
                for target in targets:
                    count = Count(draws=1, certified=1, false=int(draw.false(target, choice.thresholds)))
                    yield Cell(draw.setting.name, target, choice.rule, bound), count


def limit(draws: int, cells: int) -> int:
    """Smallest c with P[Bin(R, alpha) > c] <= .01 / M."""
    return int(stats.binom.isf(FAMILY / cells, draws, ALPHA))


def certifying(counts: Mapping[Cell, Count]) -> list[Cell]:
    """The cells of rules that claim to hold their level."""
    return [cell for cell in counts if RULES.get(cell.rule).holds_level]


def failed(counts: Mapping[Cell, Count]) -> list[Cell]:
    """Certifying cells with more false certificates than chance explains."""
    cells = certifying(counts)
    return [cell for cell in cells if counts[cell].false > limit(counts[cell].draws, len(cells))]


def is_default(cell: Cell) -> bool:
    """Whether a plan that names neither rule nor bound gets these."""
    plan = SETTINGS[cell.world].plan(cell.target)
    return (cell.rule, cell.bound) == (plan.rule, plan.bound_rule().name)
