"""`mask_dice` and `masks_right`: masks on an image, compared label by label.

Everything is counted on run lengths and decided in whole numbers: an image of a billion pixels costs no more
than its runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from routing.core.arrays import Ints
from routing.core.losses.base import Loss, LossError, known_parameters, short
from routing.core.losses.lists import KEPT, read_list
from routing.core.losses.shares import share
from routing.core.messages import declare, gettext_noop, say

KEYS = frozenset({"label", "size", "counts"})
LONGEST_SIDE = 65_535
MOST_PIXELS = 10**9
MOST = 500
"""Masks of one text."""
LEAST_DICE = "0.8"


@dataclass(frozen=True)
class Masks:
    """What a text says is on an image: ``size`` is height and width in pixels, None where there is no mask;
    ``covered`` has by label the intervals (n, 2) of pixels, counted down the columns, in order and apart.
    """

    size: tuple[int, int] | None
    covered: Mapping[str, Ints]


@lru_cache(maxsize=KEPT)
def read_masks(text: str) -> Masks | None:
    """The masks that ``text`` is; None where it is no list of masks.

    A JSON list of at most `MOST` objects with ``label``, ``size`` and ``counts``: runs of pixels outside and
    inside in turn, down the columns, as COCO's uncompressed RLE has them. All masks of a text have one size.
    """
    entries = read_list(text, MOST)
    if entries is None:
        return None
    sizes: set[tuple[int, int]] = set()
    edges: dict[str, list[Ints]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != KEYS or not isinstance(entry["label"], str):
            return None
        size, counts = _size(entry["size"]), _counts(entry["counts"])
        if size is None or counts is None or int(counts.sum()) != size[0] * size[1]:
            return None
        sizes.add(size)
        ends = np.cumsum(counts)
        inside = np.stack([ends[: len(ends) // 2 * 2 : 2], ends[1::2]], axis=1)
        edges.setdefault(entry["label"], []).append(inside[inside[:, 0] < inside[:, 1]])
    if len(sizes) > 1:
        return None
    covered = {label: _union(np.concatenate(parts)) for label, parts in edges.items()}
    return Masks(next(iter(sizes), None), {label: found for label, found in covered.items() if len(found)})


def _size(given: Any) -> tuple[int, int] | None:
    if not isinstance(given, list) or [type(side) for side in given] != [int, int]:
        return None
    height, width = given
    fits = min(given) >= 1 and max(given) <= LONGEST_SIDE and height * width <= MOST_PIXELS
    return (height, width) if fits else None


def _counts(given: Any) -> Ints | None:
    if not isinstance(given, list) or not all(
        type(count) is int and 0 <= count <= MOST_PIXELS for count in given
    ):
        return None
    return np.array(given, dtype=np.int64)


def _union(intervals: Ints) -> Ints:
    """The pixels that lie in any of the intervals (n, 2), as intervals in order and apart."""
    if not len(intervals):
        return intervals
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    reached = np.maximum.accumulate(intervals[:, 1])
    first = np.ones(len(intervals), dtype=bool)
    first[1:] = intervals[1:, 0] > reached[:-1]
    last = np.append(first[1:], True)
    return np.stack([intervals[first, 0], reached[last]], axis=1)


def _size_of(intervals: Ints) -> int:
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def _common(first: Ints, second: Ints) -> int:
    """How many pixels lie in both; each is in order and apart."""
    before = np.concatenate([[0], np.cumsum(first[:, 1] - first[:, 0])])

    def covered(places: Ints) -> Ints:
        """Pixels of the first before each place."""
        row = np.searchsorted(first[:, 0], places, side="right") - 1
        inside = np.minimum(places, first[row, 1]) - first[row, 0]
        return np.where(row < 0, 0, before[row] + inside)

    return int((covered(second[:, 1]) - covered(second[:, 0])).sum())


def dice(label: str, prediction: str) -> Mapping[str, Fraction] | None:
    """2 |A & B| / (|A| + |B|) of each label that one of both has, A and B all pixels of its masks together;
    None where ``prediction`` is no list of masks, or has them on an image of another size.

    Raises LossError where ``label`` is no list of masks.
    """
    truth, guess = read_masks(label), read_masks(prediction)
    if truth is None:
        raise LossError(say("masks.no_masks", label=short(label)))
    if guess is None or (truth.size and guess.size and truth.size != guess.size):
        return None
    found = dict.fromkeys([*truth.covered, *guess.covered], Fraction(0))
    for name in truth.covered.keys() & guess.covered.keys():
        one, other = truth.covered[name], guess.covered[name]
        found[name] = Fraction(2 * _common(one, other), _size_of(one) + _size_of(other))
    return found


@dataclass(frozen=True)
class MasksRight:
    """0 where each label has a Dice of at least ``least_dice``, else 1; two empty images cost 0.

    A prediction that is no list of masks, or has those of an image of another size, costs 1; a label of
    record that is none is an error.
    """

    least_dice: Fraction = Fraction(LEAST_DICE)
    name: str = "masks_right"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        found = dice(label, prediction)
        right = found is not None and all(one >= self.least_dice for one in found.values())
        return 0.0 if right else 1.0


@dataclass(frozen=True)
class MaskDice:
    """1 - the mean Dice of the labels that one of both has; two empty images cost 0. Otherwise as
    `MasksRight`.

    Nearly no two people give masks between which it is 0: two labels are the same by ``alike``.
    """

    name: str = "mask_dice"
    bound: float = 1.0
    binary: bool = False
    alike: Loss = field(default_factory=MasksRight)

    def __call__(self, label: str, prediction: str) -> float:
        found = dice(label, prediction)
        if found is None:
            return 1.0
        return float(1 - sum(found.values(), Fraction(0)) / len(found)) if found else 0.0


@dataclass(frozen=True)
class MaskDiceKind:
    """`MaskDice`, which has no parameters."""

    name: str = "mask_dice"
    title: str = gettext_noop("Share of the masks that does not overlap (1 - Dice)")
    summary: str = gettext_noop(
        "1 - Dice of the pixels of each label, all its masks together: the mean over the labels of the image."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return MaskDice()


@dataclass(frozen=True)
class MasksRightKind:
    """`MasksRight` with its least Dice."""

    name: str = "masks_right"
    title: str = gettext_noop("All masks right")
    summary: str = gettext_noop(
        "An image is right only if the pixels of each label, all its masks together, overlap enough "
        "(Dice 0.8)."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "least_dice": gettext_noop(
                "least Dice of each label of an image that is right, above 0 to 1 (default 0.8)"
            )
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return MasksRight(share(params, "least_dice", LEAST_DICE))


SAYS = {
    "masks.no_masks": gettext_noop(
        "the label %(label)s is not a JSON list of masks with label, size and counts on one image; correct it"
    ),
}
declare(SAYS)
