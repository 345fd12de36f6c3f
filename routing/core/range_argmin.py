"""Where a sequence is least within any of its ranges, in constant time per range."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats, Ints


class RangeArgmin:
    """Positions of the least values of ``values`` (n,) in ranges; the last of equals.

    Level k of the table (sparse, n log n) holds the position for each range of length 2**k; two of them cover
    any range.
    """

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._levels = [np.arange(len(values), dtype=np.int64)]
        reach = 1
        while 2 * reach <= len(values):
            before = self._levels[-1]
            self._levels.append(self._better(before[:-reach], before[reach:]))
            reach *= 2

    def within(self, start: Ints, stop: Ints) -> Ints:
        """The position (r,) of the least value of start .. stop, both included, start <= stop."""
        level = np.frexp(stop - start + 1)[1] - 1
        result = np.empty(len(start), dtype=np.int64)
        for k in np.unique(level):
            here = level == k
            table = self._levels[k]
            result[here] = self._better(table[start[here]], table[stop[here] - 2**k + 1])
        return result

    def _better(self, first: Ints, second: Ints) -> Ints:
        return np.where(self._values[second] <= self._values[first], second, first)
