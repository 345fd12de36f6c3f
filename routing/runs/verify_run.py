"""What a stored run has drawn, committed to and routed, against the rows that it is of.

For runs that somebody else has stored, who may have written down anything. `verify_certificate` looks at what
was certified.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

from django.db.models import Count, Max

from annotation.common.files import open_file
from annotation.errors import InputError
from routing.core.certificate import canonical_bytes
from routing.core.commitment import before_draw, blank_hash, drawn_entropy, lines_document
from routing.core.drawn import draw_differences
from routing.core.sampling import make_salt, pool_hash
from routing.core.verify import document_differences
from routing.models import Commitment, Draw, Run
from routing.models.commitments import BEFORE_DRAW
from routing.runs.analysis_result import sources_document
from routing.runs.commitment_queries import committed_lines, document_of
from routing.runs.commitments import fixed_before_draw
from routing.runs.covered_items import covered_items
from routing.runs.expert.counts import tally_with_expert
from routing.runs.expert.freeze import critical_values
from routing.runs.label_counts import tally_of
from routing.runs.load_calibration import drawn_rows
from routing.runs.plan import plan_of
from routing.runs.verification import DiffersError, recomputing, refuse

PART = 5_000


def verify_run(run: Run) -> dict[str, Any] | None:
    """Raises DiffersError where pool, draw, commitments or the routing's count are not what the rows give.
    Returns the count of the routing, where the run has one: what models answered since, for another run say,
    and what that cost, is in it.
    """
    with recomputing():
        if run.pool_hash:
            refuse(_pool_faults(run))
        draw = Draw.objects.filter(run=run).first()
        both = list(run.commitments.order_by("number").select_related("items"))
        if draw is not None:
            refuse(_draw_faults(run, draw, both))
        for one in both:
            refuse(_commitment_faults(run, one, draw))
        return _tally(run)


def _pool_faults(run: Run) -> Iterator[str]:
    frozen = run.pool_items.filter(intake__isnull=True)
    counts = frozen.aggregate(count=Count("pk"), last=Max("position"))
    if counts["count"] != run.pool_size or counts["last"] != run.pool_size - 1:
        yield f"its pool is said to have {run.pool_size} items, and has {counts['count']}"
        return
    names = frozen.order_by("position").values_list("item__external_id", flat=True)
    if pool_hash(names.iterator(chunk_size=PART)) != run.pool_hash:
        yield "its pool has other items, or in another order, than its hash says"
    if covered_items(run).count() != run.covered_size:
        yield f"it is said to have taken in {run.later_size} later items, and has taken in others"
    if run.salt != make_salt(int(run.entropy)):
        yield "its salt does not follow from its entropy"


# --- The draw -----------------------------------------------------------------------------------------------


def _draw_faults(run: Run, draw: Draw, both: list[Commitment]) -> Iterator[str]:
    asked = draw.items.filter(asked=True).count()
    if (draw.m, draw.n, draw.items.count()) != (run.m, asked, run.m):
        yield f"its draw is said to be of {draw.n} of {draw.m} items, and is of {asked} of {run.m}"
        return
    plan, entropy = plan_of(run), int(run.entropy)
    if draw.randomness is not None and not both:
        yield "its draw follows from a commitment, and there is none"
        return
    if both:
        randomness = draw.randomness or {}
        if randomness.get("kind") != run.draw_from or (randomness.get("value") or "") != run.randomness:
            yield "its draw is said to come from another number than its plan"
            return
        entropy = drawn_entropy(entropy, both[0].sha256, randomness)
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    rows = drawn_rows(run, run_sources).rows
    yield from draw_differences(plan, rows, int(run.entropy), entropy)
    if draw.critical is not None and draw.critical != critical_values(run, plan, draw.n):
        yield "its critical values do not follow from its plan"


# --- What it committed to -----------------------------------------------------------------------------------


def _commitment_faults(run: Run, one: Commitment, draw: Draw | None) -> Iterator[str]:
    document = document_of(one)
    if canonical_bytes(document)[:-1].decode() != one.document:
        yield f"commitment {one.number} is not in its one spelling"
    if document["number"] != one.number or document["run"] != run.number:
        yield f"commitment {one.number} is another one's"
    pilot = [line.encode() for line in one.pilot_lines.splitlines()]
    if (document["pilot"] or lines_document([])) != lines_document(pilot):
        yield f"commitment {one.number} is of another pilot than stands beside it"
    if one.number == BEFORE_DRAW:
        yield from _first_faults(run, one, document)
        return
    lines = [line.encode() for line in one.draw_lines.splitlines()]
    if document["draw"]["sha256"] != blank_hash(lines) or document["draw"]["rows"] != len(lines):
        yield "commitment 2 is of another draw than stands beside it"
    if draw is None or document["randomness"] != draw.randomness:
        yield "commitment 2 is of a draw that comes from another number"


def _first_faults(run: Run, one: Commitment, document: dict[str, Any]) -> Iterator[str]:
    told = {name: document[name] for name in ("project", "run", "sources", "items", "pilot", "ledger")}
    fixed = fixed_before_draw(run, pilot=document["plan"]["pilot_size"])
    again = before_draw(**fixed, **told, draw_from=document["draw_from"])
    for difference in document_differences(document, again):
        yield difference.replace("certificate:", "commitment 1:")
    yield from _source_faults(run, document["sources"])
    if one.items is None:
        yield "commitment 1 has lost what models had said"
        return
    try:
        content = open_file(one.items)
    except InputError:
        return  # lost before, which whoever exported it was told
    with content as committed:
        if lines_document(_lines(committed)) != document["items"]:
            yield "commitment 1 is of other answers of models than stand beside it"
            return
        committed.seek(0)
        yield from _said_faults(run, _lines(committed))


def _lines(content: IO[bytes]) -> Iterator[bytes]:
    return (line.removesuffix(b"\n") for line in content)


def _source_faults(run: Run, told: list[Any]) -> Iterator[str]:
    """They may have got other names since."""
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    now = sources_document(run_sources)
    renamed = [
        {**one, "name": was["name"], "backend": was["backend"]} for one, was in zip(now, told, strict=True)
    ]
    if renamed != told or not all(isinstance(was[name], str) for was in told for name in ("name", "backend")):
        yield "commitment 1 has other sources than its run"


def _said_faults(run: Run, lines: Iterator[bytes]) -> Iterator[str]:
    """Models may have answered more since; what they had said they still say."""
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    pool = run.pool_items.filter(intake__isnull=True).order_by("position")
    rows = pool.values_list("item", "item__external_id", "item__content_hash", "u")
    for start in range(0, run.pool_size, PART):
        part = list(rows.filter(position__gte=start, position__lt=start + PART))
        committed = islice(lines, len(part))
        for old, new in zip(committed, committed_lines(run, run_sources, part), strict=True):
            if old == new:
                continue
            then, now = json.loads(old), json.loads(new)
            kept = [said for said, was in zip(now["answers"], then["answers"], strict=True) if was]
            if {**then, "answers": [was for was in then["answers"] if was]} != {**now, "answers": kept}:
                yield f"models have said something else of item {now['item_id']!r} than it committed to"


# --- The routing --------------------------------------------------------------------------------------------


def _tally(run: Run) -> dict[str, Any] | None:
    if run.tally is None:
        return None
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    now = (tally_with_expert if run.by_expert else tally_of)(run, run_sources)
    if not isinstance(run.tally, dict) or run.tally.keys() != now.keys():
        raise DiffersError("tally is no count of its routing")
    if run.tally["sent"] != now["sent"]:
        raise DiffersError(f"its routing is said to send {run.tally['sent']} items, and sends {now['sent']}")
    told = run.tally["answers"]
    if len(told) != len(now["answers"]) or any(a > b for a, b in zip(told, now["answers"], strict=True)):
        raise DiffersError(f"models are said to have given {told} answers, and have given {now['answers']}")
    return now
