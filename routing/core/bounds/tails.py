"""The lower tail of the hypergeometric distribution, fast for pools of any size.

One probability comes from Loader's saddle-point form, whose terms are differences that stay small (a sum of
log-gammas of N = 10**6 would lose nine digits); its neighbours follow by their ratios, summed away from the
mode, where they only fall.  Relative error below 1e-11 up to N = 10**6.

Loader, C. (2000), Fast and accurate computation of binomial probabilities.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from routing.core.arrays import Bools, Floats, Ints

TERMS = 128
"""Neighbours added at a time."""
CELLS = 1 << 18
"""Largest array of neighbours, in numbers: bounds the memory whatever is asked."""
NEGLIGIBLE = 1e-18
"""A neighbour this small beside the sum ends it: those after it fall at least as fast."""


def tail(pool_size: int, wrong: Ints | int, asked: Ints | int, count: Ints | int) -> Floats:
    """P[Hyp(N, T, n) <= k]: that n items drawn from N, of which T are wrong, hold at most k wrong ones.

    Parameters
    ----------
    pool_size : int
        N.
    wrong, asked, count : int or integer arrays that broadcast together
        T, n (0 .. N) and k.

    Returns
    -------
    Array of the broadcast shape.  0 where T exceeds N: there is no such pool, so every count speaks against
    it.
    """
    arrays = (np.asarray(part, dtype=np.int64) for part in (wrong, asked, count))
    marked, drawn, k = np.broadcast_arrays(*arrays)
    least = np.maximum(marked + drawn - pool_size, 0)
    result = np.where((marked <= pool_size) & (k >= np.minimum(marked, drawn)), 1.0, 0.0)
    inside = (marked <= pool_size) & (k >= least) & (k < np.minimum(marked, drawn))
    if inside.any():
        values = [part[inside].astype(np.float64) for part in (marked, drawn, k)]
        result[inside] = _inside(float(pool_size), *values)
    return result


def probability(pool_size: Ints | int, wrong: Ints | int, asked: Ints | int, count: Ints | int) -> Floats:
    """P[Hyp(N, T, n) = k]; 0 outside the support.

    Parameters
    ----------
    pool_size, wrong, asked, count : int or integer arrays that broadcast together
        N, T and n (both 0 .. N), and k.
    """
    arrays = (np.asarray(part, dtype=np.int64) for part in (pool_size, wrong, asked, count))
    size, marked, drawn, k = np.broadcast_arrays(*arrays)
    inside = (k >= np.maximum(marked + drawn - size, 0)) & (k <= np.minimum(marked, drawn))
    result = inside.astype(np.float64)
    # Else one count is certain, and it is the one inside.
    random = inside & (marked > 0) & (marked < size) & (drawn > 0) & (drawn < size)
    if random.any():
        result[random] = _probability(*(part[random].astype(np.float64) for part in (size, marked, drawn, k)))
    return np.asarray(result, dtype=np.float64)


def _inside(size: float, marked: Floats, drawn: Floats, k: Floats) -> Floats:
    """The tail where k lies in the support, below its end: (J,)."""
    # Below the mean the lower tail is summed, above it the upper one; the rest then is no small difference.
    below = k < marked * drawn / size
    start = np.where(below, k, k + 1)
    summed = _probability(size, marked, drawn, start) * _relative_sum(size, marked, drawn, start, below)
    return np.asarray(np.where(below, summed, 1.0 - summed), dtype=np.float64)


def _relative_sum(size: float, marked: Floats, drawn: Floats, start: Floats, below: Bools) -> Floats:
    """Sum of the probabilities from ``start`` away from the mode, divided by the first of them; (J,)."""
    total, last = np.ones(len(start)), np.ones(len(start))
    active, done = np.arange(len(start)), 0
    while len(active):
        remaining = []
        for part in np.array_split(active, -(-len(active) * TERMS // CELLS)):
            steps = np.arange(done, done + TERMS, dtype=np.float64)
            ratios = _ratios(
                size, marked[part, None], drawn[part, None], start[part, None], below[part, None], steps
            )
            terms = last[part, None] * np.cumprod(ratios, axis=1)
            total[part] += terms.sum(axis=1)
            last[part] = terms[:, -1]
            remaining.append(part[terms[:, -1] > NEGLIGIBLE * total[part]])
        active, done = np.concatenate(remaining), done + TERMS
    return total


def _ratios(size: float, marked: Floats, drawn: Floats, start: Floats, below: Bools, steps: Floats) -> Floats:
    """P(j - 1) / P(j) at j = start - steps, or P(j + 1) / P(j) at j = start + steps; 0 beyond the support."""
    j = np.where(below, start - steps, start + steps + 1)
    fewer = j * (size - marked - drawn + j)  # P(j - 1) / P(j) = fewer / more
    more = (marked - j + 1) * (drawn - j + 1)
    over, under = np.where(below, fewer, more), np.where(below, more, fewer)
    # Within the support `under` is at least 1; beyond it `over` was 0 once and all that follows is void.
    beyond = np.where(below, (j < 0) | (size - marked - drawn + j < 0), (j > marked) | (j > drawn))
    return np.asarray(np.where(beyond, 0.0, over / np.maximum(under, 1.0)), dtype=np.float64)


def _probability(size: Floats | float, marked: Floats, drawn: Floats, j: Floats) -> Floats:
    """P[Hyp(N, T, n) = j] within the support, (J,)."""
    unmarked, left = size - marked, size - drawn
    seen = np.stack([j, marked - j, drawn - j, unmarked - drawn + j])
    expected = np.stack([marked * drawn, marked * left, unmarked * drawn, unmarked * left]) / size
    sizes = np.stack([marked, unmarked, drawn, left, np.full_like(j, size)])
    of_sizes, of_seen = np.split(_factorial_rest(np.concatenate([sizes, seen])), [len(sizes)])
    logarithm = of_sizes[:-1].sum(axis=0) - of_sizes[-1] - (of_seen + _deviance(seen, expected)).sum(axis=0)
    return np.asarray(np.exp(logarithm), dtype=np.float64)


def _factorial_rest(n: Floats) -> Floats:
    """ln n! - (n ln n - n): a small number, from Stirling's series where n is not."""
    inverse = 1.0 / np.maximum(n, 16.0)
    square = inverse * inverse
    series = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    large = 0.5 * np.log(2 * np.pi * np.maximum(n, 16.0)) + series
    few = np.minimum(n, 16.0)
    small = special.gammaln(few + 1) - special.xlogy(few, few) + few
    return np.asarray(np.where(n >= 16, large, small), dtype=np.float64)


def _deviance(seen: Floats, expected: Floats) -> Floats:
    """x ln(x / e) + e - x for e > 0, without cancellation where x is near e."""
    difference = seen - expected
    v = difference / (seen + expected)
    near = np.abs(v) < 0.1
    square = np.where(near, v * v, 0.0)
    series = np.zeros_like(square)
    for odd in range(19, 1, -2):  # the sum over j of v**(2 j) / (2 j + 1)
        series = square * (1.0 / odd + series)
    with np.errstate(divide="ignore"):
        direct = special.xlogy(seen, seen / expected) - difference
    return np.asarray(np.where(near, difference * v + 2 * seen * v * series, direct), dtype=np.float64)
