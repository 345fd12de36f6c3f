"""The draw of a run with an expert: who labelled each asked item, and what annotators and the expert said."""

from collections.abc import Sequence
from dataclasses import replace

from annotation.common.value_reader import Value, as_text
from routing.core.arrays import Floats
from routing.core.calibration import Calibration
from routing.models import ExpertRequest, Run, RunSource
from routing.runs.load_calibration import load_calibration, records_at
from routing.runs.roster import roster_of


def annotated_rows(run: Run, run_sources: Sequence[RunSource]) -> tuple[Calibration, Floats]:
    """The draw with the annotators' labels and without the expert's, and each model's own score, as
    `load_calibration` has them.
    """
    calibration, own = load_calibration(run, run_sources)
    roster = roster_of(run)
    if roster is None:
        raise ValueError(f"run {run.pk} has no roster")
    asked = [row for row in calibration.rows if row.asked]
    names = dict(
        zip((row.item_id for row in asked), roster.annotators([row.item_id for row in asked]), strict=True)
    )
    rows = [
        replace(row, label=None, person=row.label, annotator=names[row.item_id]) if row.asked else row
        for row in calibration.rows
    ]
    return Calibration.from_rows(rows), own


def expert_rows(run: Run, run_sources: Sequence[RunSource]) -> tuple[Calibration, Floats]:
    """The same with the expert's labels, as they were when they were locked."""
    calibration, own = annotated_rows(run, run_sources)
    labels = _labels_of_expert(run)
    rows = [replace(row, label=labels.get(row.item_id)) if row.asked else row for row in calibration.rows]
    return Calibration.from_rows(rows), own


def _labels_of_expert(run: Run) -> dict[str, str]:
    """External id -> label, of the asked items that the expert labelled."""
    batch = run.expert_batch
    if batch is None or batch.locked_at is None:
        return {}
    found: dict[int, Value] = records_at(batch, batch.locked_at)
    names = dict(
        ExpertRequest.objects.filter(run=run, item__in=list(found)).values_list("item", "item__external_id")
    )
    return {names[item]: as_text(value) for item, value in found.items()}
