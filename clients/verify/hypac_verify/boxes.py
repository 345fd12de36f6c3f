"""Whether the boxes of an answer are those of a label: the loss `boxes_right` (docs/methods.md, "Losses").

In whole numbers, ten-thousandths of a percent, so that nothing is rounded that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from hypac_verify.reading import Document, UnusableError, parse

SIDES = ("x", "y", "width", "height")
UNIT, STEPS, MOST = 10_000, 1_000, 2_000
Box = tuple[int, int, int, int]
"""Edges: left, top, right, bottom."""


def same_boxes(given: Document) -> Callable[[str, str], bool] | None:
    """The loss with these parameters; None where they are none of its."""
    if not given.keys() <= {"iou", "least_f1"}:
        return None
    iou, least = _share(given.get("iou", "0.5")), _share(given.get("least_f1", "1"))
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


def _share(given: object) -> Fraction | None:
    if isinstance(given, bool) or not isinstance(given, str | int | float) or len(str(given)) > 20:
        return None
    try:
        value = Decimal(str(given))
        # Before a fraction is made of it: one of 1e999999999 takes for ever.
        steps = value * STEPS if Decimal(1) / STEPS <= value <= 1 else Decimal("0.5")
        return None if steps % 1 else Fraction(int(steps), STEPS)
    except (ArithmeticError, ValueError):
        return None


def _boxes(text: str) -> Mapping[str, list[Box]] | None:
    """By label; None where it is no list of boxes."""
    try:
        entries = parse(text.encode(), "a label")
    except UnusableError:
        return None
    if not isinstance(entries, list) or len(entries) > MOST:
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


def _alike(one: Box, other: Box, iou: Fraction) -> bool:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    common = max(width, 0) * max(height, 0)
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - common
    return common * iou.denominator >= union * iou.numerator


def _pairs(first: list[Box], second: list[Box], iou: Fraction) -> int:
    """The most pairs of alike boxes, no box in two of them: as long as a box finds one, those before it may
    have to take another (augmenting paths).
    """
    near = [[place for place, other in enumerate(second) if _alike(box, other, iou)] for box in first]
    taken: dict[int, int] = {}
    return sum(_finds(start, near, taken) for start in range(len(first)))


def _finds(start: int, near: list[list[int]], taken: dict[int, int]) -> bool:
    """Whether a box gets one of the other side; `taken` has who has which."""
    came: dict[int, int] = {}
    waiting = [start]
    for box in waiting:
        for place in near[box]:
            if place in came:
                continue
            came[place] = box
            if place in taken:
                waiting.append(taken[place])
                continue
            end: int | None = place
            while end is not None:
                box_of_end = came[end]
                before = next((at for at, who in taken.items() if who == box_of_end), None)
                taken[end], end = box_of_end, before
            return True
    return False
