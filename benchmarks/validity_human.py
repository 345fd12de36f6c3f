"""`validity.py --human`: people who err, and what each reference makes of it.

Worlds x people's error of 0, 2, 5 and 8 % (independent, shared with the best model, on hard items) x the
reference: an expert who labels all asked items or half of those on which all agree, two people and a decider,
and, in one world as negative controls, one person's word and people who err on 15 % once the calibration is
over.  Before them every draw of some tiny pools.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from runner import csv_text, machine, markdown
from validity_counts import Counts, Tally

from testbed.known_truth import SETTINGS, available
from testbed.level import limit
from testbed.people import HumanCount
from testbed.people_enumeration import enumerate_people
from testbed.people_level import (
    LARGE,
    SECOND_SEED,
    HumanCell,
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


def run(
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
    tally = Tally(run_human_job, HumanCell, HumanCount, processes, 60 * minutes, kept)
    counts = tally.of(jobs_of(cells, draws, CHUNK))
    first = failed(counts)
    again = tally.of(jobs_of(first, 4 * draws, CHUNK, SECOND_SEED))
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


def _controls(counts: Counts) -> str:
    expected = [cell for cell in counts if has_to_fail(cell)]
    low = [cell for cell in expected if counts[cell].untrue <= 0.1 * counts[cell].draws]
    return f"{len(expected) - len(low)} of {len(expected)} fail against the truth as they have to"


def as_csv(counts: Counts, again: Counts) -> str:
    """Every count, a row each cell; cost per item in labels by a person."""
    number, rows = sum(not cell.control for cell in counts), []
    for cell in _ordered(counts):
        count, second = counts[cell], again.get(cell)
        most, wrong = limit(count.draws, number), broken(cell, count)
        level = "" if cell.control else "pass"
        if wrong > most and not cell.control:
            holds = second is not None and broken(cell, second) <= limit(second.draws, number)
            level = "pass" if holds else "FAIL"
        rows.append(
            (
                *(cell.world, f"{100 * cell.error:g}", cell.kind, cell.reference, cell.control),
                *(count.draws, wrong, "" if cell.control else most, level),
                *(("", "") if second is None else (second.draws, broken(cell, second))),
                *(count.untrue, count.certified, count.alone, f"{count.cost / count.draws:.4f}"),
            )
        )
    return csv_text(COLUMNS, rows)


def _ordered(counts: Counts) -> list[HumanCell]:
    """Cells by world, as these are listed, then by people and reference."""
    worlds = list(SETTINGS)
    return sorted(counts, key=lambda cell: (worlds.index(cell.world), cell.error, cell.kind, cell.reference))


def table(counts: Counts) -> str:
    """Markdown: how often the promise and the truth were broken, and the cost per item (people = 1)."""
    rows = []
    for cell in _ordered(counts):
        count = counts[cell]
        share = [value / count.draws for value in (broken(cell, count), count.untrue, count.certified)]
        people = (f"{100 * cell.error:g} %", cell.kind, cell.reference, count.draws)
        shares = (f"{share[0]:.3f}", f"{share[1]:.3f}", f"{share[2]:.2f}", f"{count.cost / count.draws:.3f}")
        rows.append((cell.world, *people, *shares))
    return markdown(HEADS, rows) + "\n"
