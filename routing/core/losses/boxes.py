"""`box_f1` and `boxes_right`: boxes on an image, matched one to one with those of the label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # whose parts are read when they are used: `optimize` takes half a second

from routing.core.arrays import Ints
from routing.core.losses.base import Loss, LossError, known_parameters, short
from routing.core.losses.lists import KEPT, read_list
from routing.core.losses.shares import share
from routing.core.messages import declare, gettext_noop, say

SIDES = ("x", "y", "width", "height")
UNIT = 10_000
"""Of a percent: boxes are compared in whole numbers, so that everybody finds the same."""
LARGEST = 100 * UNIT
MOST = 500
"""Boxes of one text."""

IOU: Mapping[str, str] = {
    "iou": gettext_noop(
        "least overlap of two boxes that are one: intersection over union, above 0 to 1 (default 0.5)"
    )
}


@lru_cache(maxsize=KEPT)
def read_boxes(text: str) -> Mapping[str, Ints] | None:
    """By label the edges (n, 4) left, top, right, bottom of the boxes that ``text`` is, in ten-thousandths of
    a percent; None where it is no list of boxes.

    A JSON list of at most `MOST` objects with `label` and `x`, `y`, `width`, `height` in percent of the
    image.
    """
    entries = read_list(text, MOST)
    if entries is None:
        return None
    found: dict[str, list[tuple[int, ...]]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("label"), str):
            return None
        sides = [_units(entry.get(side)) for side in SIDES]
        x, y, width, height = (-1 if side is None else side for side in sides)
        if None in sides or min(x, y) < 0 or min(width, height) <= 0 or max(x + width, y + height) > LARGEST:
            return None
        found.setdefault(entry["label"], []).append((x, y, x + width, y + height))
    return {label: np.array(rows, dtype=np.int64) for label, rows in found.items()}


def _units(number: Any) -> int | None:
    if isinstance(number, bool) or not isinstance(number, int | Decimal):
        return None
    if not isinstance(number, int) and not number.is_finite():
        return None
    return round(number * UNIT) if 0 <= number <= 100 else None


def matched(first: Mapping[str, Ints], second: Mapping[str, Ints], iou: Fraction) -> int:
    """How many boxes of one find their own in the other: the most pairs of one label with at least that
    intersection over union, no box in two of them.
    """
    return sum(_pairs(boxes, second[label], iou) for label, boxes in first.items() if label in second)


def _pairs(first: Ints, second: Ints, iou: Fraction) -> int:
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (first, second)]
    union = areas[0][:, None] + areas[1][None, :] - common
    alike = common * iou.denominator >= union * iou.numerator
    rows, columns = scipy.optimize.linear_sum_assignment(alike, maximize=True)
    return int(alike[rows, columns].sum())


@dataclass(frozen=True)
class BoxF1:
    """1 - 2 M / (A + B) of A and B boxes with M pairs that are one; two empty lists cost 0.

    A prediction that is no list of boxes costs 1; a label of record that is none is an error.
    """

    iou: Fraction = Fraction(1, 2)
    name: str = "box_f1"
    bound: float = 1.0
    binary: bool = False

    def __call__(self, label: str, prediction: str) -> float:
        return float(1 - f1(label, prediction, self.iou))


@dataclass(frozen=True)
class BoxesRight:
    """0 where the F1 of the boxes is at least ``least_f1``, else 1; as `BoxF1` otherwise."""

    iou: Fraction = Fraction(1, 2)
    least_f1: Fraction = Fraction(1)
    name: str = "boxes_right"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return 0.0 if f1(label, prediction, self.iou) >= self.least_f1 else 1.0


def f1(label: str, prediction: str, iou: Fraction) -> Fraction:
    """Raises LossError where ``label`` is no list of boxes."""
    truth = read_boxes(label)
    if truth is None:
        raise LossError(say("boxes.no_boxes", label=short(label)))
    guess = read_boxes(prediction)
    if guess is None:
        return Fraction(0)
    size = sum(map(len, truth.values())) + sum(map(len, guess.values()))
    return Fraction(2 * matched(truth, guess, iou), size) if size else Fraction(1)


@dataclass(frozen=True)
class BoxF1Kind:
    """`BoxF1` with its overlap."""

    name: str = "box_f1"
    title: str = gettext_noop("Share of boxes that are missing, too many or elsewhere")
    summary: str = gettext_noop(
        "1 - F1 of the boxes: two are one where their labels are the same and they overlap enough (IoU 0.5)."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=lambda: IOU)

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return BoxF1(share(params, "iou", "0.5"))


@dataclass(frozen=True)
class BoxesRightKind:
    """`BoxesRight` with its overlap and its least F1."""

    name: str = "boxes_right"
    title: str = gettext_noop("All boxes right")
    summary: str = gettext_noop(
        "An image is right only if each box has its own with the same label and enough overlap (IoU 0.5) "
        "and none is missing or too many."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            **IOU,
            "least_f1": gettext_noop(
                "least F1 of the boxes of an image that is right, above 0 to 1 (default 1)"
            ),
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return BoxesRight(share(params, "iou", "0.5"), share(params, "least_f1", "1"))


SAYS = {
    "boxes.no_boxes": gettext_noop(
        "the label %(label)s is not a JSON list of boxes with label, x, y, width and height in percent; "
        "correct it"
    ),
}
declare(SAYS)
