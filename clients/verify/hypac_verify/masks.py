"""Whether the masks of an answer are those of a label: the loss `masks_right` (docs/methods.md, "Losses").

Counted on run lengths in whole numbers, so that nothing is rounded and nothing is made of the size alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import accumulate

from hypac_verify.reading import Document, list_in
from hypac_verify.shares import share

KEYS = {"label", "size", "counts"}
MOST, LONGEST_SIDE, MOST_PIXELS = 500, 65_535, 10**9
Size = tuple[int, int]
Intervals = list[tuple[int, int]]
"""Pixels that are covered, down the columns: from one to before the other."""


def same_masks(given: Document) -> Callable[[str, str], bool] | None:
    """The loss with these parameters; None where they are none of its."""
    least = share(given.get("least_dice", "0.8"))
    if least is None or not given.keys() <= {"least_dice"}:
        return None

    def same(label: str, answer: str) -> bool:
        truth, guess = _masks(label), _masks(answer)
        if truth is None:
            raise ValueError("the label is no list of masks")
        if guess is None or (truth[0] and guess[0] and truth[0] != guess[0]):
            return False
        names = truth[1].keys() | guess[1].keys()
        return all(_overlap(truth[1].get(name, []), guess[1].get(name, [])) >= least for name in names)

    return same


def _masks(text: str) -> tuple[Size | None, Mapping[str, Intervals]] | None:
    """Height and width, where there is a mask, and what is covered by label; None for no list of masks."""
    entries = list_in(text, MOST)
    if entries is None:
        return None
    sizes, found = set[Size](), dict[str, Intervals]()
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != KEYS or not isinstance(entry["label"], str):
            return None
        size, counts = entry["size"], entry["counts"]
        if not _whole(size, LONGEST_SIDE) or len(size) != 2 or not _whole(counts, MOST_PIXELS) or 0 in size:
            return None
        pixels = size[0] * size[1]
        if pixels > MOST_PIXELS or sum(counts) != pixels:
            return None
        sizes.add((size[0], size[1]))
        ends = list(accumulate(counts))
        inside = [pair for pair in zip(ends[::2], ends[1::2], strict=False) if pair[0] < pair[1]]
        found.setdefault(entry["label"], []).extend(inside)
    if len(sizes) > 1:
        return None
    return next(iter(sizes), None), {name: _apart(inside) for name, inside in found.items() if inside}


def _whole(numbers: object, most: int) -> bool:
    return isinstance(numbers, list) and all(
        type(number) is int and 0 <= number <= most for number in numbers
    )


def _apart(inside: Intervals) -> Intervals:
    """The same pixels in order, none of them twice."""
    apart: Intervals = []
    for start, end in sorted(inside):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def _overlap(first: Intervals, second: Intervals) -> Fraction:
    """Dice, 2 |A & B| / (|A| + |B|), of which one at least is not empty."""
    common, place = 0, 0
    for start, end in first:
        while place < len(second) and second[place][1] <= start:
            place += 1
        ahead = place
        while ahead < len(second) and second[ahead][0] < end:
            common += min(end, second[ahead][1]) - max(start, second[ahead][0])
            ahead += 1
        place = max(place, ahead - 1)
    return Fraction(2 * common, sum(end - start for start, end in [*first, *second]))
