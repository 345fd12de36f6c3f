"""`validity.py --human`: people who err, and what each reference makes of it.

Worlds x people's error of 0, 2, 5 and 8 % (independent, shared with the best model, on hard items) x the
reference: an expert who labels all asked items or half of those on which all agree, two people and a decider,
and, in one world as negative controls, one person's word and people who err on 15 % once the calibration is
over.  Before them every draw of some tiny pools.
"""

import time
from argparse import Namespace

from runner import csv_text, machine, markdown, parts
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


def run(mode: str, options: Namespace) -> str:
    """Count, once more with four times the draws where a cell fails, and say what came of it.

    With ``--minutes 0`` nothing is drawn: what is kept is added up.
    """
    started = time.perf_counter()
    draws = options.draws or DRAWS[mode]
    exact = enumerate_people(POOLS[mode])
    named = [world for world in parts(options.worlds) or WORLDS if available(SETTINGS[world])]
    cells = [cell for world in named for cell in cells_of(world)]
    tally = Tally.asked(options, run_human_job, HumanCell, HumanCount)
    counts = tally.of(jobs_of(cells, draws, CHUNK))
    first = failed(counts)
    again = tally.of(jobs_of(first, 4 * draws, CHUNK, SECOND_SEED))
    if options.out:
        options.out.write_text(csv_text(lines(counts, again)), encoding="utf-8")
    seconds = time.perf_counter() - started
    fails = failed(again)
    verdict = f"{len(fails)} FAIL" if fails else "all keep their level"
    number = sum(not cell.control for cell in counts)
    head = (
        f"{machine('numpy', 'scipy')}, {seconds / 60:.0f} minutes. M = {number} cells: {verdict}; "
        f"{len(first)} were run a second time. Negative controls: {_controls(counts)}. Every draw of "
        f"{exact.pools} tiny pools ({exact.draws} draws): at most {exact.worst:.3f} of the level, "
        f"{exact.passing} of them let a policy pass."
    )
    return f"{head}\n\n{table(counts)}\n"


def _controls(counts: Counts) -> str:
    expected = [cell for cell in counts if has_to_fail(cell)]
    low = [cell for cell in expected if counts[cell].untrue <= 0.1 * counts[cell].draws]
    return f"{len(expected) - len(low)} of {len(expected)} fail against the truth as they have to"


def lines(counts: Counts, again: Counts) -> list[dict[str, object]]:
    """Every count, a row each cell; cost per item in labels by a person."""
    number, rows = sum(not cell.control for cell in counts), []
    for cell in _ordered(counts):
        count, second = counts[cell], again.get(cell)
        most, wrong = limit(count.draws, number), broken(cell, count)
        holds = wrong <= most or (second and broken(cell, second) <= limit(second.draws, number))
        row = {"world": cell.world, "error_percent": f"{100 * cell.error:g}", "kind": cell.kind}
        row |= {"reference": cell.reference, "control": cell.control, "draws": count.draws, "broken": wrong}
        row |= {"limit": most, "level": "pass" if holds else "FAIL"}
        if cell.control:
            row |= {"limit": "", "level": ""}
        row |= {"second_draws": second.draws if second else ""}
        row |= {"second_broken": broken(cell, second) if second else ""}
        row |= {"untrue": count.untrue, "certified": count.certified, "alone": count.alone}
        rows.append(row | {"cost_per_item": f"{count.cost / count.draws:.4f}"})
    return rows


def _ordered(counts: Counts) -> list[HumanCell]:
    """Cells by world, as these are listed, then by people and reference."""
    worlds = list(SETTINGS)
    return sorted(counts, key=lambda cell: (worlds.index(cell.world), cell.error, cell.kind, cell.reference))


def table(counts: Counts) -> str:
    """Markdown: how often the promise and the truth were broken, and the cost per item (people = 1)."""
    rows = []
    for cell in _ordered(counts):
        count = counts[cell]
        row = {"world": cell.world, "people err": f"{100 * cell.error:g} %", "kind": cell.kind}
        row |= {"reference": cell.reference, "draws": count.draws}
        row |= {"promise broken": f"{broken(cell, count) / count.draws:.3f}"}
        row |= {"truth broken": f"{count.untrue / count.draws:.3f}"}
        row |= {
            "certified": f"{count.certified / count.draws:.2f}",
            "cost": f"{count.cost / count.draws:.3f}",
        }
        rows.append(row)
    return markdown(rows)
