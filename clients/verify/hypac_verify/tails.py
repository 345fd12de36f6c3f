"""The exact tests: hypergeometric and binomial tails in whole numbers, and the limits that follow from them.

Notation of docs/statistics.md: N items, T of them wrong, n asked, k wrong ones among these, E the number of
wrong items that is allowed. Only `weighted_levels` uses floats; their relative error stays below 1e-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import comb, exp, floor, lgamma

WIDE_SHARE = Fraction(9, 10)
SLACK = 2
NARROWLY = 1e-8
"""A float this close to a level decides nothing."""


class TooCloseError(Exception):
    """A probability so near its level that floats do not tell on which side it is."""


@dataclass(frozen=True)
class Limits:
    """The numbers that decide ("The data set: two levels"): K+ <= ``wide`` with K- >= ``s``, or K+ <=
    ``narrow``. With s = 0 there is one test, wide = narrow.
    """

    s: int
    wide: int
    narrow: int


def _weights(size: int, wrong: int, asked: int) -> Iterator[tuple[int, int]]:
    """(k, number of draws with k wrong ones) from the least possible k on."""
    k = max(0, wrong + asked - size)
    ways = comb(wrong, k) * comb(size - wrong, asked - k)
    while k <= min(wrong, asked):
        yield k, ways
        ways = ways * (wrong - k) * (asked - k) // ((k + 1) * (size - wrong - asked + k + 1))
        k += 1


def tail(size: int, wrong: int, asked: int, count: int) -> Fraction:
    """P[Hyp(N, T, n) <= k]; 0 where T > N, as there is no such pool."""
    if wrong > size:
        return Fraction(0)
    wrong, asked = max(wrong, asked), min(wrong, asked)  # the same chance, by smaller numbers
    if count >= asked:
        return Fraction(1)
    total = 0
    for k, ways in _weights(size, wrong, asked):
        if k > count:
            break
        total += ways
    return Fraction(total, comb(size, asked))


@lru_cache(maxsize=4096)
def largest_count(size: int, wrong: int, asked: int, level: Fraction) -> int:
    """Largest k with P[Hyp(N, T, n) <= k] <= level; -1 where there is none, n where T > N."""
    if wrong > size:
        return asked
    most, total = floor(level * comb(size, min(wrong, asked))), 0
    for k, ways in _weights(size, max(wrong, asked), min(wrong, asked)):
        total += ways
        if total > most:
            return k - 1
    return asked  # a level of 1


@lru_cache(maxsize=4096)
def largest_together(size: int, budget: int, asked: int, level: Fraction) -> int:
    """Largest k with P[Hyp(N, E + k + 1, n) <= k] <= level; -1: none ("Tests" of `every_score`)."""

    def holds(k: int) -> bool:
        return tail(size, budget + k + 1, asked, k) <= level

    if not holds(0):
        return -1
    high = 1
    while high <= asked and holds(high):
        high *= 2
    return last_true(holds, high // 2, min(high, asked + 1))


def last_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Largest number in low .. high - 1 that holds: true up to some number, ``low`` taken to be."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def smallest_wrong(size: int, asked: int, count: int, level: Fraction) -> int:
    """Least T, at most N + 1, with P[Hyp(N, T, n) <= k] <= level."""
    return last_true(lambda wrong: tail(size, wrong, asked, count) > level, 0, size + 1) + 1


def two_levels(size: int, asked: int, budget: int, level: Fraction) -> Limits:
    """s, c_s and c_0 of the delivered data set ("The data set: two levels")."""
    wide = WIDE_SHARE * level
    s = max(0, largest_together(size, budget, asked, wide) - SLACK) if size - asked > budget else 0
    if s == 0:
        one = largest_count(size, budget + 1, asked, level)
        return Limits(0, one, one)
    return Limits(
        s,
        largest_count(size, budget + s + 1, asked, wide),
        largest_count(size, budget + 1, asked, level - wide),
    )


def binomial_tail(asked: int, chance: Fraction, count: int) -> Fraction:
    """P[Bin(n, r) <= k]."""
    a, b = chance.numerator, chance.denominator
    total, ways = 0, (b - a) ** asked
    for k in range(min(count, asked) + 1):
        total += ways
        ways = ways * (asked - k) * a // ((k + 1) * (b - a)) if a < b else 0
    return Fraction(total, b**asked)


@lru_cache(maxsize=64)
def binomial_count(asked: int, chance: Fraction, level: Fraction) -> int:
    """Largest k with P[Bin(n, r) <= k] <= level; -1 where there is none."""
    a, b = chance.numerator, chance.denominator
    most, total, ways = floor(level * b**asked), 0, (b - a) ** asked
    for k in range(asked + 1):
        total += ways
        if total > most:
            return k - 1
        ways = ways * (asked - k) * a // ((k + 1) * (b - a))
    return asked


def _probability(size: int, wrong: int, asked: int, count: int) -> float:
    """P[Hyp(N, T, n) = k], from logarithms of factorials."""
    if not max(0, wrong + asked - size) <= count <= min(wrong, asked):
        return 0.0
    return exp(_choose(wrong, count) + _choose(size - wrong, asked - count) - _choose(size, asked))


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@dataclass(frozen=True)
class Recheck:
    """The test of a draw whose n asked items the expert saw only in part ("The recheck test").

    Attributes
    ----------
    size, asked, rechecked, weight, budget : int
        N, n, n_B, w and E.
    """

    size: int
    asked: int
    rechecked: int
    weight: int
    budget: int

    def chances(self, unlike: int, alike: int, most: int) -> list[float]:
        """P(Q <= q | T_A, T_B) for q = 0 .. most: the sum over K_A = k, the a of them that were rechecked,
        and K_B = j of Hyp(k; N, T_A, n) Hyp(a; n, k, n_B) Hyp(j; N - T_A, T_B, n_B - a).
        """
        outside = self.size - unlike
        depth = most // self.weight + 1
        on_alike = [
            [_probability(outside, alike, min(self.rechecked - a, outside), j) for j in range(depth)]
            for a in range(min(most, self.rechecked) + 1)
        ]
        chance = [0.0] * (most + 1)
        for k in range(most + 1):
            seen = _probability(self.size, unlike, self.asked, k)
            if not seen:
                continue
            among = _among(self.asked, self.rechecked, k)
            for j in range((most - k) // self.weight + 1):
                chance[k + self.weight * j] += seen * sum(
                    share * on_alike[a][j] for a, share in enumerate(among) if share
                )
        return list(accumulate(chance))

    def worst(self, wrong: int, most: int, splits: int = 0) -> list[float]:
        """The largest P(Q <= q) over all T_A + T_B = M, or over about so many ``splits`` of it."""
        places = {wrong * i // (splits - 1) for i in range(splits)} if splits else range(wrong + 1)
        worst = [0.0] * (most + 1)
        for alike in places:
            worst = list(map(max, worst, self.chances(wrong - alike, alike, most)))
        return worst

    def limit(self, wrong: int, level: Fraction) -> int:
        """Largest q that is a limit for "M or more are wrong"; -1 where there is none."""
        if wrong > self.size:
            return self.asked + (self.weight - 1) * self.rechecked
        most = largest_count(self.size, wrong, self.asked, level)
        for splits in (FEW, 0):
            if most < 0:
                return -1
            most = sum(_below(chance, level) for chance in self.worst(wrong, most, splits)) - 1
        return most

    def reaches(self, s: int, count: int, level: Fraction, *, exactly: bool = True) -> bool:
        """Whether the limit at M = E + s + 1 is ``count`` or more; not ``exactly``, by a few splits of M."""
        wrong = self.budget + s + 1
        if wrong > self.size:
            return True
        for splits in (FEW, 0) if exactly else (FEW,):
            if not _below(self.worst(wrong, count, splits)[count], level):
                return False
        return True


FEW = 24


@lru_cache(maxsize=256)
def _among(asked: int, rechecked: int, count: int) -> tuple[float, ...]:
    """Hyp(a; n, k, n_B) for a = 0 .. k."""
    return tuple(_probability(asked, count, rechecked, a) for a in range(min(count, rechecked) + 1))


def _below(chance: float, level: Fraction) -> bool:
    if abs(chance - level) < NARROWLY * level:
        raise TooCloseError
    return chance <= level


@lru_cache(maxsize=64)
def weighted_levels(test: Recheck, level: Fraction) -> Limits:
    """s and the limits of Q for the wide and the narrow test; with n_B = n those of a data set.

    s is the least that has the largest wide limit which is 2 or more above its s; one level stands where two
    would not allow more, or would turn away a policy without an observed error.

    Raises
    ------
    TooCloseError
        Floats do not decide it.
    """
    if test.rechecked >= test.asked:
        return two_levels(test.size, test.asked, test.budget, level)
    share = WIDE_SHARE * level
    narrow = test.limit(test.budget + 1, level - share)
    if narrow >= 0 and test.size - test.asked > test.budget:
        high = largest_together(test.size, test.budget, test.asked, share) + 1
        most = last_true(lambda s: test.reaches(s, s + SLACK, share, exactly=False), -1, high)
        while most >= 0 and not test.reaches(most, most + SLACK, share):
            most -= 1
        wide = test.limit(test.budget + most + 1, share) if most > 0 else -1
        if wide >= 0 and not test.reaches(0, wide, level):
            s = 1 + last_true(lambda s: not test.reaches(s, wide, share, exactly=False), -1, most)
            while s < most and not test.reaches(s, wide, share):
                s += 1
            return Limits(s, wide, narrow)
    one = test.limit(test.budget + 1, level)
    return Limits(0, one, one)
