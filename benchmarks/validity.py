"""How often certificates are false, and what runs save, in worlds where the truth is known.

    .venv/bin/python benchmarks/validity.py --quick | --full [--jobs 2] [--minutes M] [--out FILE]
        [--worlds a,b]

For every world, target, certifying rule and bound that is valid there, R fresh pools, pilots, chains and
draws are made and analysed; a certificate is false where the thresholds break the promise. With M such cells,
a cell fails if its count exceeds the smallest c with P[Bin(R, alpha) > c] <= .01 / M. A failed cell is run
once more with a fresh seed and 4 R draws; that run is final. Beside them, on the same labels, the rules of
the paper, and the net saving against the chain that an oracle would have walked. Prints Markdown.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks import validity_report
from benchmarks.draws import Draw
from benchmarks.enumeration import Enumerated, enumerate_cell
from benchmarks.enumeration import cells as enumerated_cells
from benchmarks.worlds import SETTINGS, Setting, available
from routing.core.bounds import BOUNDS
from routing.core.compare import compare_losses
from routing.core.rules import RULES

SEED, SECOND_SEED = 20_240_611, 20_240_612
"""Fixed before the first run; the second one is for cells that failed."""
EXACT = ("hypergeometric", "binomial")
"""The bounds that get the larger R."""
PAPER_BOUNDS = ("clt", "hoeffding")


@dataclass(frozen=True)
class Size:
    """Draws of a cell: R for the exact tests, and for the slower bounds; draws of one job."""

    exact: int
    slow: int
    chunk: int


SIZES = {"quick": Size(200, 100, 50), "full": Size(10_000, 2_000, 250)}


@dataclass(frozen=True)
class Cell:
    """One thing that is counted."""

    world: str
    target: str
    rule: str
    bound: str


@dataclass
class Count:
    """What became of it."""

    draws: int = 0
    false: int = 0
    certified: int = 0
    saving: float = 0.0
    paired: int = 0
    below: float = 0.0
    """Draws in which the oracle's chain was walked, too, and how far the rule stayed below it in all."""

    def add(self, other: Count) -> None:
        for name in ("draws", "false", "certified", "saving", "paired", "below"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Job:
    """Some draws of one world; ``cells`` restricts what is counted."""

    world: str
    seed: int
    number: int
    draws: int
    slow: bool
    cells: tuple[Cell, ...] | None = None


@dataclass
class Outcome:
    """Everything that a report needs."""

    size: Size
    counts: dict[Cell, Count] = field(default_factory=dict)
    again: dict[Cell, Count] = field(default_factory=dict)
    exact: list[Enumerated] = field(default_factory=list)
    worlds: tuple[str, ...] = ()
    seconds: float = 0.0


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


def paper_cells(setting: Setting) -> list[Cell]:
    """The rules of the paper, in each target."""
    rules = [rule for rule in RULES.names() if not RULES.get(rule).holds_level]
    return [
        Cell(setting.name, target, rule, bound)
        for target in setting.targets
        for rule in rules
        for bound in PAPER_BOUNDS
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
    results = {}
    for cell in cells:
        # A data set that is certified through the pool needs no second analysis.
        through = "pool" if cell.target == "dataset" and cell.bound != "hypergeometric" else cell.target
        key = (through, cell.rule, cell.bound)
        if key not in results:
            results[key] = draw.certify(*key)
        thresholds = results[key].policy.thresholds
        count = Count(draws=1, certified=int(results[key].index > 0))
        count.false = int(count.certified and draw.false(cell.target, thresholds))
        count.saving = draw.saving(cell.target, cell.rule, thresholds)
        if oracle and validity_report.is_default(cell):
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


def jobs_of(setting: Setting, size: Size) -> list[Job]:
    """The draws of one world; the slower bounds get the first ones."""
    return [
        Job(setting.name, SEED, number, min(size.chunk, size.exact - start), start < size.slow)
        for number, start in enumerate(range(0, size.exact, size.chunk))
    ]


def second_jobs(failed: Sequence[Cell], counts: dict[Cell, Count], size: Size) -> list[Job]:
    """The failed cells, four times as long, with other seeds."""
    return [
        Job(cell.world, SECOND_SEED, number, min(size.chunk, 4 * counts[cell].draws - start), True, (cell,))
        for cell in failed
        for number, start in enumerate(range(0, 4 * counts[cell].draws, size.chunk))
    ]


def measure(jobs: Sequence[Job], processes: int, seconds: float = math.inf) -> dict[Cell, Count]:
    """Run the jobs, for about so many seconds at most, and add up in the order of the jobs."""
    counts: dict[Cell, Count] = {}
    started = time.perf_counter()
    with get_context("spawn").Pool(processes) as pool:
        for done, part in enumerate(pool.imap(run_job, jobs), start=1):
            for cell, count in part.items():
                counts.setdefault(cell, Count()).add(count)
            elapsed = time.perf_counter() - started
            if done % 20 == 0 or done == len(jobs):
                print(f"{done}/{len(jobs)} jobs, {elapsed:.0f} s", file=sys.stderr, flush=True)
            if elapsed > seconds:
                break  # leaving the block ends the processes
    return counts


def measure_exactly(pools: int, processes: int) -> list[Enumerated]:
    """The exact enumerations, with ``pools`` tiny pools of each size."""
    with get_context("spawn").Pool(processes) as pool:
        return pool.starmap(enumerate_cell, [(*cell, pools) for cell in enumerated_cells()], chunksize=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--quick", action="store_true", help="a few hundred draws a world: minutes")
    mode.add_argument("--full", action="store_true", help="10,000 draws a world: an hour on two cores")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="draw no more after these; R is what was reached",
    )
    parser.add_argument(
        "--out", type=Path, help="write every count here, as CSV, and the exact ones to *_exact.csv beside it"
    )
    parser.add_argument("--worlds", default="", help="only these, with commas between")
    options = parser.parse_args()
    size = SIZES["full" if options.full else "quick"]
    usual = [name for name, setting in SETTINGS.items() if not setting.held_out]
    names = options.worlds.split(",") if options.worlds else usual
    worlds = tuple(name for name in names if available(SETTINGS[name]))
    started = time.perf_counter()
    outcome = Outcome(size, worlds=worlds)
    outcome.exact = measure_exactly(1 if options.quick else 3, options.jobs)
    jobs = [job for name in worlds for job in jobs_of(SETTINGS[name], size)]
    # World by world in turn: a run that is cut short has about the same number of draws of each.
    jobs.sort(key=lambda job: job.number)
    outcome.counts = measure(jobs, options.jobs, 60 * options.minutes)
    failed = validity_report.failed(outcome.counts)
    if failed:
        outcome.again = measure(second_jobs(failed, outcome.counts, size), options.jobs)
    outcome.seconds = time.perf_counter() - started
    missing = [name for name in names if name not in worlds]
    command = ["--full" if options.full else "--quick", f"--jobs {options.jobs}"]
    if options.minutes < math.inf:
        command.append(f"--minutes {options.minutes:g}")
    if options.worlds:
        command.append(f'--worlds "{options.worlds}"')
    print(validity_report.summary(outcome, command=" ".join(command), missing=missing))
    if options.out:
        exact = options.out.with_name(f"{options.out.stem}_exact.csv")
        options.out.write_text(validity_report.cells_csv(outcome), encoding="utf-8")
        exact.write_text(validity_report.exact_csv(outcome), encoding="utf-8")


if __name__ == "__main__":
    main()
