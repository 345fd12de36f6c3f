"""The pool cut into slices of equal size along the keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.keys import V_MAX, Key, pack, unpack


@dataclass(frozen=True)
class Bins:
    """Slices of the pool, lowest uncertainty first.

    Attributes
    ----------
    ends : b keys
        Upper end of each slice, a key that occurs: the threshold that just includes the slice.
    sizes : (b,)
        Items in each.
    rho : (b,)
        Mid-rank, in (0, 1), of the score of the item in the middle of the slice.
    scores : (N,)
        The sorted uncertainties themselves.
    """

    ends: tuple[Key, ...]
    sizes: Ints
    rho: Floats
    scores: Floats

    def ranks(self, u: Floats) -> Floats:
        """Mid-ranks of scores ``u`` (n,) among those of the pool, kept inside (0, 1)."""
        size = len(self.scores)
        below = np.searchsorted(self.scores, u, side="left")
        up_to = np.searchsorted(self.scores, u, side="right")
        return np.clip((below + up_to) / (2 * size), 0.5 / size, 1 - 0.5 / size)


def make_bins(u: Floats, v: Ints, *, count: int, whole_ties: bool) -> Bins:
    """At most ``count`` slices of the items with keys (u, v), each (N,).

    With ``whole_ties`` a slice ends where a score ends, so that its threshold is a value of U alone and means
    the same for items that arrive later.
    """
    keys = np.sort(pack(u, v))
    scores = np.ascontiguousarray(keys.real)
    size = len(keys)
    number = min(count, size)
    ends = np.arange(1, number + 1, dtype=np.int64) * size // number
    if whole_ties:
        ends = np.unique(np.searchsorted(scores, scores[ends - 1], side="right")).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    limits = tuple(unpack(complex(key)) for key in keys[ends - 1])
    if whole_ties:
        limits = tuple(Key(key.u, V_MAX) for key in limits)
    bins = Bins(limits, ends - starts, np.empty(0), scores)
    return Bins(limits, bins.sizes, bins.ranks(scores[(starts + ends - 1) // 2]), scores)
