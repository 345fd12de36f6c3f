"""The draw of a run with the labels that its analysis reads: as they were when they were locked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from django.db.models import Q
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common.value_reader import Value, as_text
from annotation.models import Label, Settlement, WorkBatch, WorkItem
from routing.core.arrays import Floats
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.commitment import later_answers
from routing.core.documents import parse_draw
from routing.models import DrawItem, Run, RunSource
from routing.runs import every_score_runs
from routing.runs.commitment_queries import NOT_AS_COMMITTED
from routing.runs.given_losses import with_given_losses
from routing.runs.usable_answers import table_of_answers

NOT_LOCKED = failures.register(
    "labels_not_locked", gettext_noop("The calibration labels of run %(run)s are not locked.")
)
NO_LABEL = failures.register(
    "label_missing", gettext_noop("%(item)s: This asked item has neither a label nor a decision.")
)


def load_calibration(run: Run, run_sources: Sequence[RunSource]) -> tuple[Calibration, Floats]:
    """The draw with its labels as they were when the batch was locked, and each model's own score (m, S - 1)
    in draw order, NaN where it has none.

    Raises JobFailedError where one is missing.
    """
    batch = run.calibration_batch
    if batch is None or batch.locked_at is None:
        raise NOT_LOCKED.error(run=run.number)
    labels, nobody = records_at(batch, batch.locked_at), unlabelable_items(batch)
    drawn = drawn_rows(run, run_sources)
    committed = _committed_rows(run)
    rows = []
    for item, row in zip(drawn.item_ids, drawn.rows, strict=True):
        if row.asked and item not in labels and item not in nobody:
            raise NO_LABEL.error(item=row.item_id)
        label = labels.get(item) if row.asked else None
        try:
            later = later_answers(row, committed[row.order]) if committed else ()
        except ValueError as error:
            raise NOT_AS_COMMITTED.error(run=run.number, what=f"{error}.") from error
        rows.append(replace(row, label=None if label is None else as_text(label), later=later))
    if run.measured_elsewhere:
        rows = with_given_losses(run, drawn.item_ids, rows)
    return Calibration.from_rows(rows), drawn.own


def _committed_rows(run: Run) -> list[CalibrationRow]:
    """The draw as its run committed to it before the first label; none of runs from before that was done."""
    lines = run.commitments.filter(number=2).values_list("draw_lines", flat=True).first()
    return [] if lines is None else parse_draw(lines.encode())


@dataclass(frozen=True)
class DrawnRows:
    """The draw in its order, without labels: ids of the items, rows, and each model's own score (m, S - 1),
    NaN where it has none.
    """

    item_ids: list[int]
    rows: list[CalibrationRow]
    own: Floats


def drawn_rows(run: Run, run_sources: Sequence[RunSource]) -> DrawnRows:
    """The draw with what models have said of the asked items so far."""
    found = list(
        DrawItem.objects.filter(draw__run=run)
        .order_by("order")
        .values_list("item_id", "item__external_id", "order", "asked", "probability")
    )
    ids = [item for item, *_ in found]
    asked_about = [(item, name) for item, name, _, asked, _ in found if asked]
    answers, scores = table_of_answers(run, run_sources, [item for item, _ in asked_about])
    told = (
        every_score_runs.calibration_row_fields(run, run_sources, asked_about, scores)
        if every_score_runs.uses_every_score(run) or (run.by_expert and "scores" in (run.chains or {}))
        else {}
    )
    keys: dict[int, tuple[int, float, int]] = {}
    for start in range(0, len(ids), 500):
        part = run.pool_items.filter(item__in=ids[start : start + 500])
        for item, position, u, v in part.values_list("item_id", "position", "u", "v"):
            keys[item] = (position, u or 0.0, v)
    rows = []
    for item, external_id, order, asked, probability in found:
        position, u, v = keys[item]
        rows.append(
            CalibrationRow(
                item_id=external_id,
                position=position,
                order=order,
                asked=asked,
                p=probability.normalize(),
                u=u,
                v=v,
                label=None,
                answers=tuple(answers[item]) if asked else (),
                **told.get(item, {}),
            )
        )
    nothing = [None] * len(run_sources)
    own = np.array([scores.get(item, nothing) for item in ids], dtype=np.float64)  # None becomes NaN
    return DrawnRows(ids, rows, own)


def records_at(batch: WorkBatch, moment: datetime, items: Collection[int] | None = None) -> dict[int, Value]:
    """Item id -> its label of record as it held at `moment`, of these items or of all: the answer of the one
    person who was asked, or what the answers of several were settled to.
    """
    these = Q() if items is None else Q(item__in=items)
    labels = Label.objects.filter(these, work_item__batch=batch, created_at__lte=moment).order_by("version")
    if batch.overlap > 1:
        several = WorkItem.objects.filter(batch=batch, slot=1).values("item")
        labels = labels.exclude(item__in=several)
    rows = labels.values_list("item_id", "value")
    found: dict[int, Value] = dict(rows.iterator(chunk_size=2_000))
    return found | _settled_at(batch, moment, these)


def _settled_at(batch: WorkBatch, moment: datetime, these: Q) -> dict[int, Value]:
    if batch.overlap == 1:
        return {}
    settlements = Settlement.objects.filter(these, batch=batch, created_at__lte=moment).order_by("version")
    newest = dict(settlements.values_list("item_id", "value"))
    return {item: value for item, value in newest.items() if value is not None}


def unlabelable_items(batch: WorkBatch) -> set[int]:
    """Ids of the items that nobody could label."""
    rows = WorkItem.objects.filter(batch=batch, state=WorkItem.State.UNLABELABLE)
    return set(rows.values_list("item_id", flat=True))
