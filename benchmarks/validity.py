"""How often certificates are false, and what runs save, in worlds where the truth is known.

    .venv/bin/python benchmarks/validity.py --quick | --full [--jobs 2] [--minutes M] [--out FILE]
        [--worlds a,b] [--rules a,b] [--draws R] [--kept FILE] [--human]

For every world, target, certifying rule and bound that is valid there, R fresh pools, pilots, chains and
draws are made and analysed; a certificate is false where the thresholds break the promise. With M such cells,
a cell fails if its count exceeds the smallest c with P[Bin(R, alpha) > c] <= .01 / M. A failed cell is run
once more with a fresh seed and 4 R draws; that run is final. Beside them, on the same labels, the rules of
the paper, and the net saving against the chain that an oracle would have walked. Prints a summary in Markdown
and writes every count as CSV.  With --kept each finished job is a line of that file, and a run that was cut
short goes on where it ended.  With --human: people who err, and the references (validity_human.py).
"""

from __future__ import annotations

import math
import os
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the processes share the cores

import validity_human
import validity_report as report
from runner import csv_text, parser_of, parts
from validity_counts import Tally

from testbed.enumeration import Enumerated, cells as enumerated_cells, enumerate_cell
from testbed.known_truth import SETTINGS, available
from testbed.level import EXACT, SECOND_SEED, Cell, Count, Job, certifying_cells, failed, run_job
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


def jobs_of(setting: Setting, size: Size, rules: Sequence[str] = ()) -> list[Job]:
    """The draws of one world; the slower bounds get the first ones."""
    jobs = []
    for number, start in enumerate(range(0, size.exact, size.chunk)):
        slow, cells = start < size.slow, None
        if rules:
            some = [cell for cell in certifying_cells(setting) if cell.rule in rules]
            cells = tuple(cell for cell in some if slow or cell.bound in EXACT)
        jobs.append(Job(setting.name, SEED, number, min(size.chunk, size.exact - start), slow, cells))
    return jobs


def second_jobs(failed: Sequence[Cell], counts: dict[Cell, Count], size: Size) -> list[Job]:
    """The failed cells, four times as long, with other seeds."""
    return [
        Job(cell.world, SECOND_SEED, number, min(size.chunk, 4 * counts[cell].draws - start), True, (cell,))
        for cell in failed
        for number, start in enumerate(range(0, 4 * counts[cell].draws, size.chunk))
    ]


def measure_exactly(pools: int, processes: int, rules: Sequence[str] = ()) -> list[Enumerated]:
    """The exact enumerations, with ``pools`` tiny pools of each size."""
    cells = [cell for cell in enumerated_cells() if not rules or cell[1] in rules]
    with get_context("spawn").Pool(processes) as pool:
        return pool.starmap(enumerate_cell, [(*cell, pools) for cell in cells], chunksize=1)


def measure(mode: str, options: Namespace) -> str:
    """Count, once more where a cell fails, and say what came of it."""
    started = time.perf_counter()
    size, rules = SIZES[mode], parts(options.rules)
    if options.draws:
        size = Size(options.draws, min(size.slow, options.draws), min(size.chunk, options.draws))
    names = parts(options.worlds) or [name for name, setting in SETTINGS.items() if not setting.held_out]
    worlds = [name for name in names if available(SETTINGS[name])]
    exact = measure_exactly(1 if options.quick else 3, options.jobs, rules)
    jobs = [job for name in worlds for job in jobs_of(SETTINGS[name], size, rules)]
    # World by world in turn: a run that is cut short has about the same number of draws of each.
    jobs.sort(key=lambda job: job.number)
    tally = Tally.asked(options, run_job, Cell, Count)
    counts = tally.of(jobs)
    again = replace(tally, seconds=math.inf).of(second_jobs(failed(counts), counts, size))
    outcome = report.Outcome(counts, again, exact)
    if out := options.out:
        out.write_text(csv_text(report.cell_lines(outcome)), encoding="utf-8")
        beside = out.with_name(f"{out.stem}_exact.csv")
        beside.write_text(csv_text(report.exact_lines(outcome)), encoding="utf-8")
    return report.summary(
        outcome,
        command=shlex.join(sys.argv[1:]),
        seconds=time.perf_counter() - started,
        missing=[name for name in names if name not in worlds],
    )


def main() -> None:
    parser = parser_of(
        __doc__,
        jobs=(2, "processes"),
        minutes=(math.inf, "draw no more after these; R is what was reached"),
        out=(Path, "write every count here, as CSV, and the exact ones to *_exact.csv beside it"),
        worlds=("", "only these, with commas between"),
        rules=("", "only these, with commas between, and no rule of the paper beside them"),
        draws=(0, "R of the exact tests, in place of that of the mode"),
        kept=(Path, "keep finished jobs in this file, and do not run again those that it holds"),
        human=(False, "people who err, and what each reference makes of it"),
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--quick", action="store_true", help="a few hundred draws a world: minutes")
    mode.add_argument("--full", action="store_true", help="10,000 draws a world: an hour on two cores")
    options = parser.parse_args()
    print((validity_human.run if options.human else measure)("full" if options.full else "quick", options))


if __name__ == "__main__":
    main()
