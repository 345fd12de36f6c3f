"""Thresholds on a model's own keys at given shares of the items.

Those of model 1 are places in the pool, which it has seen; those of later models come from the pilot, which
they have seen alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from routing.core.arrays import Floats, Keys
from routing.core.every_score.items import EVERYTHING
from routing.core.keys import NOWHERE, V_BITS, V_MAX, pack

ROUNDING = 1e-9
"""By how much a share times a number of items may miss a whole number."""


class Quantiles(ABC):
    """One model's keys among the items that it has seen, in order."""

    def __init__(self, keys: Keys, *, whole_ties: bool) -> None:
        self.keys = np.sort(keys)
        self.scores = np.ascontiguousarray(self.keys.real)
        self.whole_ties = whole_ties
        """Whether a threshold is a value of U alone, so that it means the same for items to come."""

    def ranks(self, u: Floats) -> Floats:
        """Mid-ranks of scores ``u`` (n,) among those seen, kept inside (0, 1)."""
        size = len(self.scores)
        below = np.searchsorted(self.scores, u, side="left")
        up_to = np.searchsorted(self.scores, u, side="right")
        return np.clip((below + up_to) / (2 * size), 0.5 / size, 1 - 0.5 / size)

    def at(self, shares: Floats) -> Keys:
        """The thresholds (J,) that take about these shares (J,) of the items: nothing at 0, all at 1."""
        keys = np.full(len(shares), complex(*NOWHERE))
        some = shares > ROUNDING
        keys[some] = self._inside(shares[some])
        if self.whole_ties:
            keys.imag[keys.real >= 0] = V_MAX
        keys[shares >= 1 - ROUNDING] = complex(*EVERYTHING)
        return keys

    @abstractmethod
    def _inside(self, shares: Floats) -> Keys:
        """The same for shares above 0."""


class PoolQuantiles(Quantiles):
    """Of model 1: the key of the item at that place of the pool.

    Where it is the last one of its score, V decides nothing, and is `V_MAX`, so that a smaller V tells a
    block of tied scores of which a part alone is taken.
    """

    def _inside(self, shares: Floats) -> Keys:
        places = np.floor(shares * len(self.keys) + ROUNDING).astype(np.int64)
        found = self.keys[np.clip(places, 1, len(self.keys)) - 1]
        found.imag[np.searchsorted(self.scores, found.real, side="right") == places] = V_MAX
        return np.where(places > 0, found, complex(*NOWHERE))


class PilotQuantiles(Quantiles):
    """Of a later model: the pilot's i-th score stands at (i + 1/2) / g, linear in between.

    Below 1 / (2 g) nothing is taken, above the largest score only everything.  Inside a block of tied scores
    the share of the block goes into V: f_k has not seen the pool, whose ties a hash breaks at random.
    """

    def _inside(self, shares: Floats) -> Keys:
        size = len(self.scores)
        place = shares * size
        u = np.interp(place, np.arange(size) + 0.5, self.scores)
        first = np.searchsorted(self.scores, u, side="left")
        last = np.searchsorted(self.scores, u, side="right")
        tied = last > first + 1  # else V says nothing
        fraction = np.where(tied, (place - first) / np.maximum(last - first, 1), 1.0)
        v = np.minimum(np.floor(np.clip(fraction, 0.0, 1.0) * 2.0**V_BITS), V_MAX)
        return np.where(place >= 0.5, pack(u, v), complex(*NOWHERE))
