"""Every item of the project in the order of import with the label that is delivered for it, in constant
memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from annotation.hooks import hidden_batches
from annotation.models import Item, Label, WorkItem
from annotation.values import Value, from_text
from routing.core.exact import plain
from routing.delivery.base import Row
from routing.models import DrawItem, Route, Run, RunSource
from routing.services.answers import table_of_answers

CHUNK = 500
PERSON = "person"


def delivered_rows(run: Run) -> Iterator[tuple[Mapping[str, str], Row]]:
    """Original columns and delivered label, item by item, by pages of the key and not by an open cursor."""
    frame = _Frame.of(run)
    last = -1
    while page := list(run.project.items.filter(position__gt=last).order_by("position")[:CHUNK]):
        yield from _page(frame, page)
        last = page[-1].position


@dataclass(frozen=True)
class _Frame:
    """What is the same for all pages."""

    run: Run
    run_sources: Sequence[RunSource]
    names: Mapping[str, str]
    hidden: set[int]
    runs_of_batches: Mapping[int, int]
    certificate_id: str

    @classmethod
    def of(cls, run: Run) -> "_Frame":
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


def _page(frame: _Frame, items: list[Item]) -> Iterator[tuple[Mapping[str, str], Row]]:
    run, ids = frame.run, [item.pk for item in items]
    labels = _labels(frame, ids)
    pool = dict(run.pool_items.filter(item__in=ids).values_list("item_id", "u"))
    routes = dict(Route.objects.filter(run=run, item__in=ids).values_list("item_id", "position"))
    drawn = {
        item: (p, asked)
        for item, p, asked in DrawItem.objects.filter(draw__run=run, item__in=ids).values_list(
            "item_id", "probability", "asked"
        )
    }
    answers, _ = table_of_answers(run, frame.run_sources, ids)
    waiting = dict(
        WorkItem.objects.filter(
            Q(batch=run.calibration_batch_id) | Q(batch=run.routed_batch_id), item__in=ids
        ).values_list("item_id", "state")
    )
    for item in items:
        p_i, asked = drawn.get(item.pk, (None, False))
        known = Row(
            external_id=item.external_id,
            uncertainty=pool.get(item.pk),
            p_i=None if p_i is None else plain(p_i),
            asked=asked,
            certificate_id=frame.certificate_id if item.pk in pool else None,
        )
        if label := labels.get(item.pk):
            number = frame.runs_of_batches.get(label.work_item.batch_id)
            row = replace(
                known,
                label=label.value,
                label_name=frame.name_of(label.value),
                source=PERSON,
                annotator=label.annotator.get_username(),
                run=number,
            )
        elif item.pk not in pool:
            why = "it came after" if item.created_at > run.created_at else "an earlier run had used it before"
            row = replace(known, reason=f"not covered by run {run.number}: {why} the pool was frozen")
        else:
            row = _by_model(frame, known, routes.get(item.pk), answers[item.pk], waiting.get(item.pk))
        yield item.data, row


def _labels(frame: _Frame, ids: list[int]) -> dict[int, Label]:
    """Item id -> the label by a person that counts: the newest version; this run's before another one's,
    then the newest.
    """
    found: dict[int, Label] = {}
    own = (frame.run.calibration_batch_id, frame.run.routed_batch_id)
    labels = (
        Label.objects.filter(item__in=ids, superseded_by__isnull=True)
        .exclude(work_item__batch__in=frame.hidden)
        .select_related("annotator", "work_item")
        .order_by("id")
    )
    for label in sorted(labels, key=lambda label: (label.work_item.batch_id in own, label.pk)):
        found[label.item_id] = label
    return found


def _by_model(
    frame: _Frame,
    known: Row,
    position: int | None,
    answers: Sequence[str | None],
    state: str | None,
) -> Row:
    """The answer of the source that the item was sent to, or of the first after it that has one."""
    if position is not None:
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
    if state == WorkItem.State.UNLABELABLE:
        reason = "nobody could label it"
    elif state == WorkItem.State.WITHDRAWN:
        reason = "the run was cancelled before a person labelled it"
    else:
        reason = "it waits for a person"
    return replace(known, run=frame.run.number, reason=reason)
