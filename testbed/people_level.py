"""How often promises are broken where people err: worlds x people's error x reference, counted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from testbed.known_truth import SETTINGS
from testbed.level import limit
from testbed.people import DRIFT, INDEPENDENT, KINDS, REFERENCES, SHARED, TODAY, HumanCount, HumanDraw

SEED = 20_241_117
"""Fixed before the first run."""
SECOND_SEED = 20_250_213
ERRORS = (0.0, 0.02, 0.05, 0.08)
CONTROLLED = "power"
"""The world of the negative controls."""
LARGE = "large"
"""The world of one error only, 5 %: a draw of it takes long."""


@dataclass(frozen=True)
class HumanCell:
    """One thing that is counted."""

    world: str
    error: float
    kind: str
    reference: str

    @property
    def against_truth(self) -> bool:
        """Whether the truth itself is promised: the expert of these worlds makes no mistake."""
        return self.reference in ("1", "0.5")

    @property
    def control(self) -> bool:
        """Whether it is there to fail: a run that counts people's word, or people who drift."""
        return self.reference in (TODAY, DRIFT)


@dataclass(frozen=True)
class HumanJob:
    """Some draws of one world with one kind of people."""

    world: str
    error: float
    kind: str
    references: tuple[str, ...]
    seed: int
    number: int
    draws: int


def cells_of(world: str) -> list[HumanCell]:
    """All cells of a world; where nobody errs there is one kind of error, and nothing drifts but once."""
    controlled = world == CONTROLLED
    cells = [
        HumanCell(world, error, kind, reference)
        for error in ((0.05,) if world == LARGE else ERRORS)
        for kind in (KINDS if error else (INDEPENDENT,))
        for reference in ((*REFERENCES, TODAY) if controlled else REFERENCES)
    ]
    return [*cells, HumanCell(world, 0.05, INDEPENDENT, DRIFT)] if controlled else cells


def jobs_of(cells: list[HumanCell], draws: int, chunk: int, seed: int = SEED) -> Iterator[HumanJob]:
    """The draws of these cells, a few of each in turn; references of one world and people share them."""
    groups: dict[tuple[str, float, str], list[str]] = {}
    for cell in cells:
        groups.setdefault((cell.world, cell.error, cell.kind), []).append(cell.reference)
    for number, start in enumerate(range(0, draws, chunk)):
        for (world, error, kind), references in groups.items():
            yield HumanJob(world, error, kind, tuple(references), seed, number, min(chunk, draws - start))


def run_human_job(job: HumanJob) -> dict[HumanCell, HumanCount]:
    """Make the draws of a job and count."""
    people = f"{job.world} {job.error} {job.kind}"
    rng = np.random.default_rng([job.seed, zlib.crc32(people.encode()), job.number])
    counts: dict[HumanCell, HumanCount] = {}
    for _ in range(job.draws):
        draw = HumanDraw(SETTINGS[job.world], job.error, job.kind, rng)
        for reference in job.references:
            cell = HumanCell(job.world, job.error, job.kind, reference)
            counts.setdefault(cell, HumanCount()).add(draw.count(reference))
    return counts


def failed(counts: Mapping[HumanCell, HumanCount]) -> list[HumanCell]:
    """Cells with more broken promises than chance explains; none of them a negative control."""
    cells = [cell for cell in counts if not cell.control]
    return [cell for cell in cells if broken(cell, counts[cell]) > limit(counts[cell].draws, len(cells))]


def broken(cell: HumanCell, count: HumanCount) -> int:
    """Draws in which what is promised does not hold."""
    return max(count.false, count.untrue) if cell.against_truth else count.false


def has_to_fail(cell: HumanCell) -> bool:
    """Whether the truth is broken here in more than alpha of the draws, as measured: what the promise of the
    reference `expert` is for.
    """
    if cell.world != CONTROLLED:
        return False
    if cell.reference == DRIFT:
        return True
    alike = cell.reference == "settled" and cell.kind == SHARED
    return cell.error == 0.08 and (cell.reference == TODAY or alike)
