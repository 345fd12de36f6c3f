"""How many items each source labels."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Exists, OuterRef

from annotation.models import WorkItem
from annotation.selectors.settled import has_record
from routing.models import PoolItem, Route, Run, RunSource
from routing.services.answers import passed_on, reaches, usable
from routing.services.tally import tally_of


@dataclass(frozen=True)
class SourceCount:
    """Items of the pool whose delivered label a source gives. `position` S and an empty `fingerprint` are
    people's, and their `cost_per_label` is what all the people cost who are asked about an item, on average.

    `routed` is how many the thresholds send there, before answers that cannot be used are passed on.
    """

    position: int
    name: str
    fingerprint: str
    cost_per_label: Decimal
    items: int
    share: float
    routed: int


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
    labelled = has_record(run.project, item="item")
    counts = []
    for row, answers in zip(run_sources, found["answers"], strict=True):
        theirs = sum(
            Route.objects.filter(
                labelled, passed_on(run_sources, start, row.position), usable(row), run=run
            ).count()
            for start in range(1, row.position + 1)
        )
        mine = answers - theirs
        counts.append((row.position, row.source.name, row.fingerprint, row.cost_per_label, mine))
    people = PoolItem.objects.filter(labelled, run=run).count()
    counts.append((len(run_sources) + 1, "", "", run.cost_per_item, people))
    return [
        SourceCount(position, name, fingerprint, cost, items, items / run.pool_size, sent)
        for (position, name, fingerprint, cost, items), sent in zip(counts, found["sent"], strict=True)
    ]


def blanks(run: Run) -> int:
    """Items of the pool that stay without a label: sent to people, and nobody could label them."""
    batches = [batch for batch in (run.calibration_batch_id, run.routed_batch_id) if batch]
    given_up = WorkItem.objects.filter(batch__in=batches, state=WorkItem.State.UNLABELABLE)
    if not given_up.exists():
        return 0
    run_sources = _sources(run)
    return Route.objects.filter(
        Exists(given_up.filter(item=OuterRef("item"))),
        ~has_record(run.project, item="item"),
        reaches(run_sources, len(run_sources) + 1),
        run=run,
    ).count()


def _sources(run: Run) -> list[RunSource]:
    return list(run.run_sources.select_related("source", "run").order_by("position"))
