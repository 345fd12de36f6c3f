"""Losses that the team's own program measures (`measured_elsewhere`): which are wanted, and which are there.

Each is of one label and of answers as they stood when it was measured, by their hash: what came of another
label or answer does not count.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.templatetags.hypac import number
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import canonical_bytes
from routing.models import GivenLosses, Run

NOT_MEASURED = failures.register(
    "loss_missing",
    gettext_noop("%(item)s: The losses of this item's answers, as they stand now, were not measured."),
)


@dataclass(frozen=True)
class ToMeasure:
    """A labelled item of the calibration set that a model has answered about; None: no usable answer."""

    item: int
    name: str
    label: str
    answers: tuple[str | None, ...]

    @property
    def measured(self) -> str:
        """Names this label and these answers: SHA-256 of their one spelling."""
        said = {"item": self.name, "label": self.label, "answers": list(self.answers)}
        return hashlib.sha256(canonical_bytes(said)).hexdigest()


def what_to_measure(
    item: int, name: str, label: str | None, answers: tuple[str | None, ...]
) -> ToMeasure | None:
    """None where nothing is: without a label, or without a usable answer."""
    if label is None or all(answer is None for answer in answers):
        return None
    return ToMeasure(item, name, label, answers)


def given_losses(run: Run, items: Collection[int] | None = None) -> dict[int, GivenLosses]:
    """By item what came last, of these or of all."""
    rows = run.given_losses.order_by("version")
    return {row.item_id: row for row in (rows if items is None else rows.filter(item__in=items))}


def with_given_losses(run: Run, items: Sequence[int], rows: Sequence[CalibrationRow]) -> list[CalibrationRow]:
    """The rows, whose items' keys are `items`, with what was measured of them. Raises JobFailedError where
    something was not, or of another label or answer.
    """
    given, found = given_losses(run), list[CalibrationRow]()
    for item, row in zip(items, rows, strict=True):
        wanted, there = what_to_measure(item, row.item_id, row.label, row.answers), given.get(item)
        if wanted is None:
            found.append(row)
        elif there is None or there.measured != wanted.measured:
            raise NOT_MEASURED.error(item=wanted.name)
        else:
            found.append(replace(row, losses=tuple(there.losses)))
    return found


def count_changed_losses(run: Run) -> int:
    """Of how many items losses came again, with other values, before the analysis."""
    return run.given_losses.filter(version=2).count()


def losses_in_words(run: Run) -> list[str]:
    """What everybody should know who relies on losses that were not computed here, in sentences."""
    if not run.measured_elsewhere:
        return []
    said = [
        _(
            "The losses of models' answers were measured by the team's own program, after the calibration "
            "labels were locked: %(measure)s. That they are what it measures is taken on trust."
        )
        % {"measure": run.loss_params["measure"]}
    ]
    if again := count_changed_losses(run):
        said.append(
            _("Items whose losses were sent again with other values before the analysis: %(count)s.")
            % {"count": number(again)}
        )
    return said
