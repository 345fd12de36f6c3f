"""A folder for Label Studio: tasks that it imports, and a configuration that shows them.

What came from there goes back as it came; labels that people gave here are annotations besides, and those of
models predictions. All else that is known of a label stands in the task's meta.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from annotation.imports.formats.label_studio import prediction_columns
from annotation.imports.formats.label_studio_names import COLUMNS, META, plain_names
from annotation.imports.formats.label_studio_results import short_value_of
from annotation.imports.formats.reserved import LABEL_STUDIO
from annotation.projects.label_studio_config import is_exact, read_config, results_of
from annotation.task_types.shapes import NOTHING
from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.delivery.formats.jsonl import dumps
from routing.labels.columns import IMPORTED, PERSON
from routing.labels.page import DeliveryInfo, Page, Row, free_names

FOLDER = "label_studio/"


class LabelStudioWriter(RowWriter):
    file_name: ClassVar[str] = FOLDER
    summary: ClassVar[Any] = _(
        "For Label Studio: tasks with annotations and predictions, and a configuration that shows them."
    )
    media_type: ClassVar[str] = "application/json"
    limits: ClassVar[tuple[Limit, ...]] = (
        Limit(
            "people",
            _(
                "Label Studio takes annotations only from its own accounts: what people labelled here "
                "belongs there to whoever imports it, and their names stand in the task's meta."
            ),
        ),
        Limit(
            "score",
            _(
                "A prediction has one score, 1 minus the uncertainty of the run's first model, whichever "
                "model gave the label."
            ),
        ),
        Limit("numbers", _("Label Studio holds numbers with 15 digits."), counted=True),
        Limit(
            "none_of_them",
            _(
                "That none of the choices fits is an annotation or a prediction without a result, as where "
                "nobody chose anything; the task's meta says which it is."
            ),
            counted=True,
        ),
        Limit("images", _("Of an image only the name of its file is in it."), counted=True),
    )

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        config = read_config(info.label_config)
        self._control, self._now = config.control, info.label_now
        plain = plain_names(info.columns).items()
        self._plain = {own: name for own, name in plain if own != name and name in config.columns}
        self._images = config.shows_images
        self._other = free_names(info.columns, [LABEL_STUDIO]).get(LABEL_STUDIO, "")
        files.open(f"{FOLDER}config.xml", "application/xml").write(info.label_config.encode())
        self._out = files.open(f"{FOLDER}tasks.json", self.media_type)
        self._before = "["

    def write(self, page: Page) -> None:
        if not page:
            return
        tasks = [dumps(self._task(cells, row)) for cells, row in zip(page.values, page.rows(), strict=True)]
        self._out.write((self._before + "\n" + ",\n".join(tasks)).encode())
        self._before = ","
        self.counts["images"] += len(page) if self._images else 0

    def close(self) -> None:
        self._out.write(b"[]\n" if self._before == "[" else b"\n]\n")

    def _task(self, cells: Mapping[str, Any], row: Row) -> dict[str, Any]:
        data = dict(cells)
        came = data.pop(LABEL_STUDIO, None)
        task = _came(came)
        if came and not task:  # a column of another program that happens to be called so
            data[self._other] = came
        for name in prediction_columns(task, data):
            data.pop(name, None)
        renamed = {plain: own for own, plain in self._plain.items() if own in data}
        data = {self._plain.get(name, name): value for name, value in data.items()}
        meta = task.get("meta")
        annotations, predictions = _listed(task, "annotations"), _listed(task, "predictions")
        facts = _facts(row) | ({COLUMNS: renamed} if renamed else {})
        # A plain export names predictions by their numbers alone, and fails where it meets them at an import.
        if numbers := [entry for entry in predictions if not isinstance(entry, dict)]:
            predictions = [entry for entry in predictions if isinstance(entry, dict)]
            facts["prediction_ids"] = numbers
        if row.label is not None:
            label = self._now(row.label, row.label_name)
            row = replace(row, label=label)
            if not is_exact(label, self._control.kind):
                self.counts["numbers"] += 1
            self.counts["none_of_them"] += row.label == (NOTHING if self._control.shapes else [])
            if row.source != PERSON:
                predictions += self._prediction(row, predictions)
            elif row.settled_by != IMPORTED or not annotations:
                annotations += [self._annotation(row)]
        return {
            **task,
            "data": data,
            "meta": {**(meta if isinstance(meta, dict) else {}), META: facts},
            "annotations": annotations,
            "predictions": predictions,
        }

    def _annotation(self, row: Row) -> dict[str, Any]:
        return {
            "result": results_of(row.label or [], self._control, name=f"{row.external_id}\n{PERSON}"),
            "was_cancelled": False,
            "ground_truth": bool(row.asked),
        }

    def _prediction(self, row: Row, others: list[Any]) -> list[dict[str, Any]]:
        """None where the same model's answer came with the task."""
        result = results_of(row.label or [], self._control, name=f"{row.external_id}\n{row.source}")
        same = (
            other for other in others if isinstance(other, dict) and other.get("model_version") == row.source
        )
        said = short_value_of(result)
        if any(short_value_of(other.get("result")) == said for other in same):
            return []
        score = None if row.uncertainty is None else 1 - row.uncertainty
        return [{"model_version": row.source, "score": score, "result": result}]


def _came(cell: Any) -> dict[str, Any]:
    """All that came of a task but its data; nothing where the cell holds something else."""
    if isinstance(cell, str):  # of an import by an earlier version, or of one that kept only texts
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return {}
    return dict(cell) if isinstance(cell, dict) else {}


def _listed(task: Mapping[str, Any], name: str) -> list[Any]:
    given = task.get(name)
    return list(given) if isinstance(given, list) else []


def _facts(row: Row) -> dict[str, Any]:
    """Without what is null, as most is."""
    named = {name: getattr(row, name) for name in Row.__dataclass_fields__}
    return {name: value for name, value in named.items() if value is not None}
