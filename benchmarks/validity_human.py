"""`validity.py --human`: people who err, and what each reference makes of it.

Worlds x people's error of 0, 2, 5 and 8 % (independent, shared with the best model, on hard items) x the
reference: an expert who labels all asked items or half of those on which all agree, two people and a decider,
and, in one world as negative controls, one person's word and people who err on 15 % once the calibration is
over.  Before them every draw of some tiny pools.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from runner import machine

from testbed.known_truth import SETTINGS, available
from testbed.level import limit
from testbed.people import HumanCount
from testbed.people_enumeration import enumerate_people
from testbed.people_level import (
    LARGE,
    SECOND_SEED,
    HumanCell,
    HumanJob,
    broken,
    cells_of,
    failed,
    has_to_fail,
    jobs_of,
    run_human_job,
)

DRAWS, CHUNK = {"quick": 20, "full": 2000}, 10
POOLS = {"quick": 1, "full": 6}
"""Tiny pools of each kind of which every draw is analysed."""
WORLDS = tuple(name for name, one in SETTINGS.items() if name == LARGE or not one.held_out)
HEADS = (
    *("world", "people err", "kind", "reference", "draws"),
    *("promise broken", "truth broken", "certified", "cost"),
)
COLUMNS = (
    *("world", "error_percent", "kind", "reference", "control", "draws", "broken", "limit", "level"),
    *("second_draws", "second_broken", "untrue", "certified", "alone", "cost_per_item"),
)
Counts = dict[HumanCell, HumanCount]


def run(
    *,
    mode: str,
    worlds: Sequence[str],
    draws: int,
    processes: int,
    minutes: float,
    kept: Path | None,
    out: Path | None,
) -> str:
    """Count, once more with four times the draws where a cell fails, and say what came of it.

    With ``minutes`` 0 nothing is drawn: what is ``kept`` is added up.
    """
    started = time.perf_counter()
    draws = draws or DRAWS[mode]
    exact = enumerate_people(POOLS[mode])
    named = [world for world in worlds or WORLDS if available(SETTINGS[world])]
    cells = [cell for world in named for cell in cells_of(world)]
    counts = measure(list(jobs_of(cells, draws, CHUNK)), processes, 60 * minutes, kept)
    again: Counts = {}
    if first := failed(counts):
        jobs = list(jobs_of(first, 4 * draws, CHUNK, SECOND_SEED))
        again = measure(jobs, processes, 60 * minutes, kept)
    if out is not None:
        out.write_text(as_csv(counts, again), encoding="utf-8")
    seconds = time.perf_counter() - started
    fails = failed(again)
    verdict = f"{len(fails)} FAIL" if fails else "all keep their level"
    counted = [cell for cell in counts if not cell.control]
    head = (
        f"{machine('numpy', 'scipy')}, {seconds / 60:.0f} minutes. M = {len(counted)} cells: {verdict}; "
        f"{len(first)} were run a second time. Negative controls: {_controls(counts)}. Every draw of "
        f"{exact.pools} tiny pools ({exact.draws} draws): at most {exact.worst:.3f} of the level, "
        f"{exact.passing} of them let a policy pass."
    )
    return f"{head}\n\n{table(counts)}"


def measure(
    jobs: Sequence[HumanJob], processes: int, seconds: float = math.inf, kept: Path | None = None
) -> Counts:
    """Run the jobs that are not ``kept``, for about so many seconds at most, and add up all counts."""
    counts: Counts = {}
    done = _read(kept)
    left = []
    for job in jobs:
        if repr(job) in done:
            _add(counts, done[repr(job)])
        else:
            left.append(job)
    started = time.perf_counter()
    if not seconds:
        return counts
    with get_context("spawn").Pool(processes) as pool:
        for number, (job, found) in enumerate(pool.imap_unordered(_run, left), start=1):
            _add(counts, found)
            if kept is not None:
                pairs = [[asdict(cell), asdict(count)] for cell, count in found.items()]
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"job": repr(job), "counts": pairs}) + "\n")
            elapsed = time.perf_counter() - started
            print(f"{number}/{len(left)} jobs, {elapsed:.0f} s", file=sys.stderr, flush=True)
            if elapsed > seconds:
                break  # leaving the block ends the processes
    return counts


def _run(job: HumanJob) -> tuple[HumanJob, Counts]:
    return job, run_human_job(job)


def _read(kept: Path | None) -> dict[str, Counts]:
    if kept is None or not kept.exists():
        return {}
    entries = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    return {
        entry["job"]: {HumanCell(**cell): HumanCount(**count) for cell, count in entry["counts"]}
        for entry in entries
    }


def _add(counts: Counts, found: Counts) -> None:
    for cell, count in found.items():
        counts.setdefault(cell, HumanCount()).add(count)


def _controls(counts: Counts) -> str:
    expected = [cell for cell in counts if has_to_fail(cell)]
    low = [cell for cell in expected if counts[cell].untrue <= 0.1 * counts[cell].draws]
    return f"{len(expected) - len(low)} of {len(expected)} fail against the truth as they have to"


def as_csv(counts: Counts, again: Counts) -> str:
    """Every count, a row each cell; cost per item in labels by a person."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    number = sum(not cell.control for cell in counts)
    for cell in _ordered(counts):
        count, second = counts[cell], again.get(cell)
        most, wrong = limit(count.draws, number), broken(cell, count)
        level = "" if cell.control else "pass"
        if wrong > most and not cell.control:
            holds = second is not None and broken(cell, second) <= limit(second.draws, number)
            level = "pass" if holds else "FAIL"
        twice = ("", "") if second is None else (second.draws, broken(cell, second))
        writer.writerow(
            (
                *(cell.world, f"{100 * cell.error:g}", cell.kind, cell.reference, cell.control),
                *(count.draws, wrong, "" if cell.control else most, level, *twice),
                *(count.untrue, count.certified, count.alone, f"{count.cost / count.draws:.4f}"),
            )
        )
    return file.getvalue()


def _ordered(counts: Counts) -> list[HumanCell]:
    """Cells by world, as these are listed, then by people and reference."""
    worlds = list(SETTINGS)
    return sorted(counts, key=lambda cell: (worlds.index(cell.world), cell.error, cell.kind, cell.reference))


def table(counts: Counts) -> str:
    """Markdown: how often the promise and the truth were broken, and the cost per item (people = 1)."""
    lines = [
        f"| {' | '.join(HEADS)} |",
        "|---" * len(HEADS) + "|",
    ]
    for cell in _ordered(counts):
        count = counts[cell]
        share = [value / count.draws for value in (broken(cell, count), count.untrue, count.certified)]
        lines.append(
            f"| {cell.world} | {100 * cell.error:g} % | {cell.kind} | {cell.reference} | {count.draws} | "
            f"{share[0]:.3f} | {share[1]:.3f} | {share[2]:.2f} | {count.cost / count.draws:.3f} |"
        )
    return "\n".join(lines) + "\n"
