"""Losses of models' own answers to labelled items: computed, or as they were measured elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routing.core.arrays import Floats
from routing.core.calibration_rows import CalibrationError, CalibrationRow
from routing.core.losses import Loss, MeasuredElsewhere
from routing.core.losses.base import BatchLoss, LossError, LossUnavailableError, outside_range
from routing.core.messages import Message, declare, gettext_noop, say


def losses_of_answers(rows: Sequence[CalibrationRow], loss: Loss, models: int) -> Floats:
    """Loss of each model's own answer (n, S - 1); 0 where there is no answer or no label."""
    if isinstance(loss, MeasuredElsewhere):
        return _measured_elsewhere(rows, loss, models)
    values = np.zeros((len(rows), models))
    places, labels, answers = [], [], []
    for index, row in enumerate(rows):
        for source, answer in enumerate(row.answers):
            if answer is not None and row.label is not None:
                places.append((index, source))
                labels.append(row.label)
                answers.append(answer)
    if places:
        computed = _all_at_once(loss, labels, answers) if isinstance(loss, BatchLoss) else None
        for pair, (index, source) in enumerate(places):
            item = rows[index].item_id
            value = _value(loss, labels[pair], answers[pair], item) if computed is None else computed[pair]
            values[index, source] = _bounded(loss, float(value), item)
    return values


def _measured_elsewhere(rows: Sequence[CalibrationRow], loss: MeasuredElsewhere, models: int) -> Floats:
    """What came with the rows: one for each answer to a labelled item, and nothing where there is none."""
    values = np.zeros((len(rows), models))
    for index, row in enumerate(rows):
        answers, given = row.answers or (None,) * models, row.losses or (None,) * models
        if len(given) != models:
            raise _wrong_item(row, say("item.losses", losses=len(given), models=models))
        for source, (answer, value) in enumerate(zip(answers, given, strict=True)):
            wanted = answer is not None and row.label is not None
            if wanted and value is None:
                raise _wrong_item(row, say("item.no_loss", model=source + 1))
            if not wanted and value is not None:
                raise _wrong_item(row, say("item.idle_loss", model=source + 1))
            if value is not None:
                values[index, source] = _bounded(loss, value, row.item_id)
    return values


def _wrong_item(row: CalibrationRow, why: Message) -> CalibrationError:
    return CalibrationError(say("item.wrong", item=repr(row.item_id), why=why))


def _all_at_once(loss: BatchLoss, labels: list[str], answers: list[str]) -> Floats | None:
    """Losses of all pairs; None where one has none, so that it is looked for pair by pair."""
    try:
        return loss.many(labels, answers)
    except LossUnavailableError:
        raise
    except LossError:
        return None


def _value(loss: Loss, label: str, answer: str, item: str) -> float:
    try:
        return loss(label, answer)
    except LossUnavailableError:
        raise
    except LossError as error:
        raise CalibrationError(say("item.wrong", item=repr(item), why=error.said)) from error


def _bounded(loss: Loss, value: float, item: str) -> float:
    why = None
    if not 0.0 <= value <= loss.bound:
        why = outside_range(loss, value)
    elif loss.binary and value not in (0.0, 1.0):
        why = say("item.not_binary", loss=repr(loss.name), value=str(value))
    if why:
        raise CalibrationError(say("item.wrong", item=repr(item), why=why))
    return value


SAYS = {
    "item.wrong": gettext_noop("item %(item)s: %(why)s"),
    "item.losses": gettext_noop("%(losses)s measured losses for %(models)s models"),
    "item.no_loss": gettext_noop("the loss of the answer of model %(model)s was not measured"),
    "item.idle_loss": gettext_noop(
        "it has a measured loss of model %(model)s, and there is no answer or no label to measure"
    ),
    "item.not_binary": gettext_noop("the loss %(loss)s gave %(value)s, but says that it is 0 or 1 only"),
}
declare(SAYS)
