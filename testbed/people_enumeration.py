"""Every draw of tiny pools, people who err, an expert who sees a part: the exact share of broken promises.

Who is wrong on which item, where everybody agrees, and which source each policy asks are thrown at random,
so that chains go back and forth between sources as no forecast would; the draws are all that there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from routing.core.reference.recheck import judge_weighted, recheck_levels

Bools = NDArray[np.bool_]

SIZES = ((6, 3, 1, 2), (7, 4, 2, 3), (8, 4, 2, 2), (8, 4, 4, 1), (9, 5, 3, 2), (9, 6, 2, 3), (10, 5, 2, 3))
"""N, n, n_B and w."""
LEVELS = (Fraction(3, 10), Fraction(1, 2), Fraction(4, 5))
POLICIES, SEED = 6, 20_261_125


@dataclass(frozen=True)
class EnumeratedPeople:
    """Pools enumerated, draws analysed in all of them, the worst share of broken promises / level, and how
    many of the pools let anything pass.
    """

    pools: int
    draws: int
    worst: float
    passing: int


def draws_of(size: int, asked: int, rechecked: int) -> Iterator[tuple[Bools, Bools]]:
    """Every set of asked items (N,) with every set of rechecked ones among them."""
    for items in combinations(range(size), asked):
        for some in combinations(items, rechecked):
            yield np.isin(np.arange(size), items), np.isin(np.arange(size), some)


def enumerate_people(pools: int) -> EnumeratedPeople:
    """The worst of ``pools`` pools for each of `SIZES` and `LEVELS`, with E = 1 and 2 in turn.

    A promise is broken where any certified policy leaves more than E wrong labels: also one that would not
    have been chosen.
    """
    rng = np.random.default_rng(SEED)
    worst, number, analysed, passing = 0.0, 0, 0, 0
    for size, asked, rechecked, weight in SIZES:
        draws = list(draws_of(size, asked, rechecked))
        for level in LEVELS:
            for pool in range(pools):
                budget = 1 + pool % 2
                levels = recheck_levels(
                    pool_size=size,
                    asked=asked,
                    rechecked=rechecked,
                    weight=weight,
                    budget=budget,
                    level=level,
                )
                alike = rng.random(size) < rng.choice([0.3, 0.7])
                wrong = rng.random((POLICIES, size)) < rng.choice([0.2, 0.4, 0.7])
                wrong[0] = False
                blank = rng.random(size) < (0.3 if pool % 3 == 2 else 0.0)
                false, passed = 0, False
                for was_asked, again in draws:
                    known = was_asked & (~alike | again)
                    once = np.where(alike[known], weight, 1)
                    upper = ((wrong | blank)[:, known] * once).sum(axis=1).astype(np.float64)
                    upper[0] = 0.0
                    lower = wrong[:, known & ~blank].sum(axis=1).astype(np.float64)
                    eligible = judge_weighted(upper, lower, levels).eligible
                    passed |= bool(eligible[1:].any())
                    false += bool((wrong.sum(axis=1) - lower > budget)[eligible].any())
                worst = max(worst, false / len(draws) / float(level))
                number, analysed, passing = number + 1, analysed + len(draws), passing + passed
    return EnumeratedPeople(number, analysed, worst, passing)
