"""What the routing of a run came to: how many items each source labels, and what that saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, OuterRef, Sum

from annotation.models import WorkItem
from routing.core.exact import plain
from routing.models import DrawItem, Intake, Prediction, Run, RunSource
from routing.runs.covered_items import covered_items, covered_routes
from routing.runs.expert.counts import count_blank, counts_of_people
from routing.runs.own_record import has_own_record
from routing.runs.usable_answers import has_usable_answer, passed_on, reaches

ZERO = Decimal(0)


@dataclass(frozen=True)
class SourceCount:
    """Items that the run covers whose delivered label a source gives. `position` S and an empty `fingerprint`
    are people's, and their `cost_per_label` is what all the people cost who are asked about an item, on
    average.

    `routed` is how many the thresholds send there, before answers that cannot be used are passed on.
    """

    position: int
    name: str
    fingerprint: str
    cost_per_label: Decimal
    items: int
    share: float
    routed: int
    by_expert: bool = False


def tally(run: Run) -> dict[str, Any]:
    """What the routing came to; counted now where an earlier version routed the run and stored nothing."""
    if run.tally is not None:
        return dict(run.tally)
    return tally_of(run, _sources(run))


def labels_by_source(run: Run) -> list[SourceCount]:
    """One entry per source, people last, once the run is routed; before that none.

    An item that a person labelled counts for people, wherever it was sent.
    """
    if run.routed_at is None:
        return []
    run_sources = _sources(run)
    found = tally(run)
    labelled = has_own_record(run, item="item")
    routes = covered_routes(run)
    counts = []
    for row, answers in zip(run_sources, found["answers"], strict=True):
        theirs = sum(
            routes.filter(
                labelled, passed_on(run_sources, start, row.position), has_usable_answer(row)
            ).count()
            for start in range(1, row.position + 1)
        )
        mine = answers - theirs
        counts.append((row.position, row.source.name, row.fingerprint, row.cost_per_label, mine))
    if run.by_expert:
        return [*_models(run, counts, found), *_people_and_expert(run, found)]
    people = covered_items(run).filter(labelled).count()
    counts.append((len(run_sources) + 1, "", "", run.cost_per_item, people))
    return _models(run, counts, found)


def _models(
    run: Run, counts: Sequence[tuple[int, str, str, Decimal, int]], found: Mapping[str, Any]
) -> list[SourceCount]:
    return [
        SourceCount(position, name, fingerprint, cost, items, items / run.covered_size, sent)
        for (position, name, fingerprint, cost, items), sent in zip(counts, found["sent"], strict=False)
    ]


def _people_and_expert(run: Run, found: Mapping[str, Any]) -> list[SourceCount]:
    people, expert = counts_of_people(run)
    *_to_models, person, checked, at_expert = found["sent"]
    models, size = len(found["answers"]), run.pool_size
    return [
        SourceCount(models + 1, "", "", run.human_cost, people, people / size, person + checked),
        SourceCount(models + 3, "", "", run.cost_of_right, expert, expert / size, at_expert, by_expert=True),
    ]


def count_unlabelled(run: Run) -> int:
    """Items that the run covers and that stay without a label: nobody to whom they went could label them."""
    if run.by_expert:
        return count_blank(run, _sources(run))
    batches = [batch for batch in (run.calibration_batch_id, run.routed_batch_id) if batch]
    given_up = WorkItem.objects.filter(batch__in=batches, state=WorkItem.State.UNLABELABLE)
    if not given_up.exists():
        return 0
    run_sources = _sources(run)
    blank = covered_routes(run).filter(
        Exists(given_up.filter(item=OuterRef("item"))),
        ~has_own_record(run, item="item"),
        reaches(run_sources, len(run_sources) + 1),
    )
    return blank.count()


def _sources(run: Run) -> list[RunSource]:
    return list(run.run_sources.select_related("source", "run").order_by("position"))


def tally_of(run: Run, run_sources: list[RunSource], *, finishing: Intake | None = None) -> dict[str, Any]:
    """JSON, of what the run covers, and will once `finishing` is finished: how many items are `sent` to each
    source by the thresholds, people last; how many `answers` each model gives, before people's labels are put
    in their place; and the routing `saving`, a decimal as text.

    `saving` is the paper's figure: 1 - cost of the sources that the routing uses / (what people cost per
    item), over the items that were not asked about for calibration. Each source that an item comes to is
    paid: the one it is sent to, and those it is passed on to. It is None where all were asked about.
    """
    people = len(run_sources) + 1
    routes = covered_routes(run, finishing=finishing)
    sent = dict(routes.values_list("position").annotate(count=Count("pk")).order_by())
    asked = DrawItem.objects.filter(draw__run=run, asked=True, item=OuterRef("item"))
    others = routes.filter(~Exists(asked))
    answers, cost = [], ZERO
    for run_source in run_sources:
        number = 0
        for start in _sent_to(sent, run_source.position):
            coming = passed_on(run_sources, start, run_source.position)
            number += routes.filter(coming, has_usable_answer(run_source)).count()
            paid = Prediction.objects.filter(
                Exists(others.filter(coming, item=OuterRef("item"))),
                source=run_source.source_id,
                fingerprint=run_source.fingerprint,
            )
            cost += paid.aggregate(total=Sum("cost"))["total"] or ZERO
        answers.append(number)
    left = sum(
        others.filter(passed_on(run_sources, start, people)).count() for start in _sent_to(sent, people)
    )
    return {
        "sent": [sent.get(position, 0) for position in range(1, people + 1)],
        "answers": answers,
        "saving": _saving(run, others.count(), cost, left),
    }


def _sent_to(sent: dict[int, int], position: int) -> list[int]:
    """The sources up to this one to which anything is sent."""
    return [start for start in range(1, position + 1) if sent.get(start)]


def _saving(run: Run, count: int, cost: Decimal, people: int) -> str | None:
    if not count:
        return None
    return plain(1 - (cost + people * run.cost_per_item) / (count * run.cost_per_item))
