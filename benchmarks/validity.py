"""How often certificates are false, and what runs save, in worlds where the truth is known.

    .venv/bin/python benchmarks/validity.py --quick | --full [--jobs 2] [--minutes M] [--out FILE]
        [--worlds a,b]

For every world, target, certifying rule and bound that is valid there, R fresh pools, pilots, chains and
draws are made and analysed; a certificate is false where the thresholds break the promise. With M such cells,
a cell fails if its count exceeds the smallest c with P[Bin(R, alpha) > c] <= .01 / M. A failed cell is run
once more with a fresh seed and 4 R draws; that run is final. Beside them, on the same labels, the rules of
the paper, and the net saving against the chain that an oracle would have walked. Prints a summary in Markdown
and writes every count as CSV.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the processes share the cores

import validity_report
from runner import parser_of

from testbed.enumeration import Enumerated, cells as enumerated_cells, enumerate_cell
from testbed.known_truth import SETTINGS, available
from testbed.level import SECOND_SEED, Cell, Count, Job, failed, run_job
from testbed.settings import Setting

SEED = 20_240_611
"""Fixed before the first run."""


@dataclass(frozen=True)
class Size:
    """Draws of a cell: R for the exact tests, and for the slower bounds; draws of one job."""

    exact: int
    slow: int
    chunk: int


SIZES = {"quick": Size(200, 100, 50), "full": Size(10_000, 2_000, 250)}


@dataclass
class Outcome:
    """Everything that a report needs."""

    size: Size
    counts: dict[Cell, Count] = field(default_factory=dict)
    again: dict[Cell, Count] = field(default_factory=dict)
    exact: list[Enumerated] = field(default_factory=list)
    worlds: tuple[str, ...] = ()
    seconds: float = 0.0


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
    parser = parser_of(
        __doc__,
        jobs=(2, "processes"),
        minutes=(math.inf, "draw no more after these; R is what was reached"),
        out=("", "write every count here, as CSV, and the exact ones to *_exact.csv beside it"),
        worlds=("", "only these, with commas between"),
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--quick", action="store_true", help="a few hundred draws a world: minutes")
    mode.add_argument("--full", action="store_true", help="10,000 draws a world: an hour on two cores")
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
    first = failed(outcome.counts)
    if first:
        outcome.again = measure(second_jobs(first, outcome.counts, size), options.jobs)
    outcome.seconds = time.perf_counter() - started
    missing = [name for name in names if name not in worlds]
    if options.out:
        out = Path(options.out)
        exact = out.with_name(f"{out.stem}_exact.csv")
        out.write_text(validity_report.cells_csv(outcome), encoding="utf-8")
        exact.write_text(validity_report.exact_csv(outcome), encoding="utf-8")
    print(validity_report.summary(outcome, command=shlex.join(sys.argv[1:]), missing=missing))


if __name__ == "__main__":
    main()
