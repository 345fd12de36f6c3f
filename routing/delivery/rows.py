"""Every item of the project in the order of import with the label that is delivered for it, in constant
memory.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from annotation.hooks import hidden_batches
from annotation.models import Item, WorkItem
from annotation.selectors.settled import record_values
from annotation.values import Value, from_text
from routing.core.exact import plain
from routing.delivery.base import Row
from routing.models import DrawItem, Route, Run, RunSource
from routing.services.answers import table_of_answers

CHUNK = 500
State = WorkItem.State
PERSON = "person"


def delivered_rows(run: Run) -> Iterator[tuple[Mapping[str, str], Row]]:
    """Original columns and delivered label, item by item, by pages of the key and not by an open cursor."""
    frame = Frame.of(run)
    last = -1
    while page := list(run.project.items.filter(position__gt=last).order_by("position")[:CHUNK]):
        yield from zip((item.data for item in page), rows_of(frame, page), strict=True)
        last = page[-1].position


@dataclass(frozen=True)
class Frame:
    """What is the same for all items of a delivery."""

    run: Run
    run_sources: Sequence[RunSource]
    names: Mapping[str, str]
    hidden: set[int]
    runs_of_batches: Mapping[int, int]
    certificate_id: str

    @classmethod
    def of(cls, run: Run) -> "Frame":
        runs_of_batches: dict[int, int] = {}
        batches = run.project.runs.values_list("number", "calibration_batch", "routed_batch")
        for number, calibration, routed in batches:
            runs_of_batches |= {batch: number for batch in (calibration, routed) if batch is not None}
        return cls(
            run=run,
            run_sources=list(run.run_sources.select_related("source").order_by("position")),
            names=dict(run.project.choices.values_list("key", "name")),
            hidden=hidden_batches(run.project),
            runs_of_batches=runs_of_batches,
            certificate_id=run.certificate.sha256,
        )

    def name_of(self, value: Value) -> Value | None:
        """Of choices their names as they are now; None where the label is no choice."""
        if isinstance(value, list):
            return [self.names.get(key, key) for key in value]
        return self.names.get(value)


def rows_of(frame: Frame, items: Sequence[Item]) -> Iterator[Row]:
    """What a delivery would now hold of each of these items; reads neither their texts nor their data."""
    run, ids = frame.run, [item.pk for item in items]
    own = {pk for pk in (run.calibration_batch_id, run.routed_batch_id) if pk is not None}
    records = record_values(run.project, ids, hidden=frame.hidden, before_others=own)
    pool = dict(run.pool_items.filter(item__in=ids).values_list("item_id", "u"))
    routes = dict(Route.objects.filter(run=run, item__in=ids).values_list("item_id", "position"))
    drawn = {
        item: (p, asked)
        for item, p, asked in DrawItem.objects.filter(draw__run=run, item__in=ids).values_list(
            "item_id", "probability", "asked"
        )
    }
    answers, _ = table_of_answers(run, frame.run_sources, ids)
    asked_of: dict[int, list[str]] = defaultdict(list)
    work = WorkItem.objects.filter(batch__in=own, item__in=ids)
    for item_id, state in work.values_list("item_id", "state"):
        asked_of[item_id].append(state)
    for item in items:
        p_i, asked = drawn.get(item.pk, (None, False))
        known = Row(
            external_id=item.external_id,
            uncertainty=pool.get(item.pk),
            p_i=None if p_i is None else plain(p_i),
            asked=asked,
            certificate_id=frame.certificate_id if item.pk in pool else None,
        )
        if record := records.get(item.pk):
            row = replace(
                known,
                label=record.value,
                label_name=frame.name_of(record.value),
                source=PERSON,
                annotator=", ".join(label.annotator.get_username() for label in record.labels),
                settled_by=record.settlement.method if record.settlement else None,
                run=frame.runs_of_batches.get(record.batch_id),
            )
        elif item.pk not in pool:
            why = "it came after" if item.created_at > run.created_at else "an earlier run had used it before"
            row = replace(known, reason=f"not covered by run {run.number}: {why} the pool was frozen")
        else:
            row = _by_model(frame, known, routes.get(item.pk), answers[item.pk], asked_of[item.pk])
        yield row


def _people_differ(run: Run, states: Sequence[str]) -> bool:
    """Whether all whom an item without a label of record was put to have answered."""
    if State.DONE not in states or {State.OPEN, State.LEASED, State.UNLABELABLE}.intersection(states):
        return False
    return State.WITHDRAWN not in states or run.state != Run.State.CANCELLED


def _by_model(
    frame: Frame,
    known: Row,
    position: int | None,
    answers: Sequence[str | None],
    states: Sequence[str],
) -> Row:
    """The answer of the source that the item was sent to, or of the first after it that has one. `states` are
    those of the item's work.
    """
    differ = _people_differ(frame.run, states)
    if position is not None and not differ:
        for run_source, answer in list(zip(frame.run_sources, answers, strict=True))[position - 1 :]:
            if answer is not None:
                value = from_text(frame.run.project.task_type, answer)
                return replace(
                    known,
                    label=value,
                    label_name=frame.name_of(value),
                    source=run_source.source.name,
                    run=frame.run.number,
                )
    if differ:
        reason = "people differ about it, and nobody has decided"
    elif State.UNLABELABLE in states:
        reason = "nobody could label it"
    elif State.WITHDRAWN in states:
        reason = "the run was cancelled before a person labelled it"
    else:
        reason = "it waits for a person"
    return replace(known, run=frame.run.number, reason=reason)
