"""Whether the boxes of an answer are those of a label: the loss `boxes_right` (docs/methods.md, "Losses").

In whole numbers, ten-thousandths of a percent, so that nothing is rounded that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from hypac_verify.reading import Document, list_in
from hypac_verify.shares import share

SIDES = ("x", "y", "width", "height")
UNIT, MOST = 10_000, 500
Box = tuple[int, int, int, int]
"""Edges: left, top, right, bottom."""


def same_boxes(given: Document) -> Callable[[str, str], bool] | None:
    """The loss with these parameters; None where they are none of its."""
    if not given.keys() <= {"iou", "least_f1"}:
        return None
    iou, least = share(given.get("iou", "0.5")), share(given.get("least_f1", "1"))
    if iou is None or least is None:
        return None

    def same(label: str, answer: str) -> bool:
        truth, guess = _boxes(label), _boxes(answer)
        if truth is None:
            raise ValueError("the label is no list of boxes")
        if guess is None:
            return False
        size = sum(map(len, truth.values())) + sum(map(len, guess.values()))
        pairs = sum(_pairs(boxes, guess.get(name, []), iou) for name, boxes in truth.items())
        return not size or Fraction(2 * pairs, size) >= least

    return same


def _boxes(text: str) -> Mapping[str, list[Box]] | None:
    """By label; None where it is no list of boxes."""
    entries = list_in(text, MOST)
    if entries is None:
        return None
    found: dict[str, list[Box]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("label"), str):
            return None
        sides = [_units(entry.get(side)) for side in SIDES]
        x, y, width, height = (-1 if side is None else side for side in sides)
        right, bottom = x + width, y + height
        if None in sides or not width or not height or max(right, bottom) > 100 * UNIT:
            return None
        found.setdefault(entry["label"], []).append((x, y, right, bottom))
    return found


def _units(number: object) -> int | None:
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        return None
    try:
        value = Decimal(str(number))
        return round(value * UNIT) if 0 <= value <= 100 else None
    except ArithmeticError:
        return None


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _near(box: Box, others: list[tuple[Box, int]], iou: Fraction) -> list[int]:
    """The places of those that are one with this box; each of the others comes with its area."""
    left, top, right, bottom = box
    area, found = _area(box), []
    over, under = iou.numerator, iou.denominator
    for place, (other, its_area) in enumerate(others):
        width = min(right, other[2]) - max(left, other[0])
        if width <= 0:
            continue
        height = min(bottom, other[3]) - max(top, other[1])
        if height <= 0:
            continue
        common = width * height
        if common * under >= (area + its_area - common) * over:
            found.append(place)
    return found


def _pairs(first: list[Box], second: list[Box], iou: Fraction) -> int:
    """The most pairs of alike boxes, no box in two of them: as long as a box finds one, those before it may
    have to take another (augmenting paths).
    """
    others = [(other, _area(other)) for other in second]
    near = [_near(box, others, iou) for box in first]
    owner: dict[int, int] = {}
    owned: dict[int, int] = {}
    return sum(_finds(start, near, owner, owned) for start in range(len(first)))


def _finds(start: int, near: list[list[int]], owner: dict[int, int], owned: dict[int, int]) -> bool:
    """Whether a box gets one of the other side; `owner` has who has which, `owned` the same from there."""
    came: dict[int, int] = {}
    waiting = [start]
    for box in waiting:
        for place in near[box]:
            if place in came:
                continue
            came[place] = box
            if place in owner:
                waiting.append(owner[place])
                continue
            end: int | None = place
            while end is not None:
                taker = came[end]
                before = owned.get(taker)
                owner[end], owned[taker] = taker, end
                end = before
            return True
    return False
