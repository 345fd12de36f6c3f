"""Two ways to label the same items, compared where just one of them is right."""

from __future__ import annotations

from math import comb


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p-value for "both are equally often right", where on so many items only the first
    was right and on so many only the second (McNemar 1947; the binomial form). 1 where there are none.
    """
    count, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(count, k) for k in range(fewer + 1)) / 2**count
    return float(min(1.0, 2 * tail))
