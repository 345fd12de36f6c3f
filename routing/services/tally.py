"""What the routing of a run came to, counted once when it has ended: no later label changes it."""

from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, OuterRef, Sum

from routing.models import DrawItem, Prediction, Route, Run, RunSource
from routing.services.answers import passed_on, usable

ZERO = Decimal(0)


def tally_of(run: Run, run_sources: list[RunSource]) -> dict[str, Any]:
    """JSON: how many items are `sent` to each source by the thresholds, people last; how many `answers` each
    model gives, before people's labels are put in their place; and the routing `saving`, a decimal as text.

    `saving` is the paper's figure: 1 - cost of the sources that the routing uses / (what people cost per
    item), over the items that were not asked about for calibration. Each source that an item comes to is
    paid: the one it is sent to, and those it is passed on to. It is None where all were asked about.
    """
    people = len(run_sources) + 1
    routes = Route.objects.filter(run=run)
    sent = dict(routes.values_list("position").annotate(count=Count("pk")).order_by())
    asked = DrawItem.objects.filter(draw__run=run, asked=True, item=OuterRef("item"))
    others = routes.filter(~Exists(asked))
    answers, cost = [], ZERO
    for run_source in run_sources:
        number = 0
        for start in _sent_to(sent, run_source.position):
            coming = passed_on(run_sources, start, run_source.position)
            number += routes.filter(coming, usable(run_source)).count()
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
    return str(1 - (cost + people * run.cost_per_item) / (count * run.cost_per_item))
