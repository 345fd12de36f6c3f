"""The test of a draw whose asked items the expert saw only in part.

The expert labels every asked item on which annotator and models are not all equal, and of the others only the
first n_B asked items in draw order.  With A and B the wrong items of a policy among the ones and the others,
K_A of A are seen among the n asked items, K_B of B among the n_B rechecked ones, and Q = K_A + w K_B is what
is tested.  Q grows stochastically with T_A and with T_B; so a limit that holds for all ways to split M wrong
items between A and B holds for M and more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.bounds.hypergeometric import largest_count, largest_self_consistent
from routing.core.bounds.tails import probability, tail
from routing.core.exact import Number, to_fraction
from routing.core.rules.fixed_sequence import Verdict, prefix
from routing.core.targets.dataset import SLACK, WIDE_SHARE, Levels, two_levels

CELLS = 1 << 21
"""Largest table, in numbers: bounds the memory whatever is asked."""
FEW = 24
"""Ways to split the wrong items between A and B that are looked at first."""
SMALLEST = 1e-280
"""Below it a probability is computed by itself, not from its neighbour."""


def rechecked(share: Number, asked: int) -> int:
    """n_B = floor(r n + 1/2): how many of the asked items, first in draw order, the expert labels anyway."""
    return floor(to_fraction(share) * asked + Fraction(1, 2))


def default_weight(share: Decimal) -> int:
    """w for the share r of rechecked items: 1, 3 and 6 for r = 1, .5 and .3.

    An error seen on a rechecked item stands for 1 / r; with a little more than that, the split of the errors
    which decides is the one where none is on unanimous items, so that the limit is as large as for r = 1.
    """
    if share >= 1:
        return 1
    return floor(Fraction(17, 10) / Fraction(share) + Fraction(1, 2))


def weighted_tail(
    *, pool_size: int, asked: int, rechecked: int, weight: int, unlike: Ints, alike: Ints, most: int
) -> Floats:
    """P(Q <= q) for q = 0 .. ``most``, (T, most + 1).

    Written as the sum over K_A = k, over the a of these that are among the rechecked items, and over K_B = j:
    Hyp(k; N, T_A, n) Hyp(a; n, k, n_B) Hyp(j; N - T_A, T_B, n_B - a), as the rechecked items outside A are a
    simple random sample of all items outside A.  It equals the sum over K_B = b and the b' of
    B among the other asked items, Hyp(b; N, T_B, n_B) Hyp(b'; N - n_B, T_B - b, n - n_B)
    P[Hyp(N - T_B, T_A, n - b - b') <= q - w b], and has far fewer terms.

    Parameters
    ----------
    asked, rechecked, weight : int
        n, n_B <= n and w.
    unlike, alike : (T,)
        T_A and T_B, together at most N.
    """
    width, depth = most + 1, most // weight + 1
    unlike, alike = np.asarray(unlike, dtype=np.int64), np.asarray(alike, dtype=np.int64)
    k, a = np.arange(width), np.arange(min(most, rechecked) + 1)
    among = probability(asked, k[:, None], rechecked, a)
    step = max(1, CELLS // (width * depth))
    return np.concatenate(
        [
            _part(pool_size, asked, rechecked, weight, unlike[part], alike[part], k, among)
            for part in (slice(start, start + step) for start in range(0, len(unlike), step))
        ]
    )


def _part(
    pool_size: int,
    asked: int,
    rechecked: int,
    weight: int,
    unlike: Ints,
    alike: Ints,
    k: Ints,
    among: Floats,
) -> Floats:
    """`weighted_tail` of some pairs of T_A and T_B."""
    most = len(k) - 1
    seen = probability(pool_size, unlike[:, None], asked, k)
    outside = rechecked - np.arange(among.shape[1])
    on_alike = among @ _counts(pool_size - unlike, alike, outside, most // weight + 1)
    chance = np.zeros_like(seen)
    for j in range(on_alike.shape[2]):
        chance[:, weight * j :] += (seen * on_alike[:, :, j])[:, : most + 1 - weight * j]
    return np.cumsum(chance, axis=1)


def _counts(sizes: Ints, wrong: Ints, drawn: Ints, depth: int) -> Floats:
    """P[Hyp(sizes_t, wrong_t, drawn_a) = j], (T, a, depth)."""
    size, marked, n = sizes[:, None, None], wrong[:, None, None], drawn[None, :, None]
    j = np.arange(depth)
    first = probability(size, marked, n, 0)
    if first.min(initial=1.0) < SMALLEST:
        # None is impossible or nearly so: no place to start from.  n may exceed a size that A nearly fills.
        return probability(size, marked, np.minimum(n, size), j)
    before = j[:-1]
    more = (marked - before) * (n - before)  # 0 once where the support ends
    ratios = more / np.maximum((before + 1) * (size - marked - n + before + 1), 1)
    table = np.empty((len(sizes), len(drawn), depth))
    table[:, :, :1] = first
    np.cumprod(ratios, axis=2, out=table[:, :, 1:])
    table[:, :, 1:] *= first
    return table


def _worst(
    pool_size: int, asked: int, rechecked: int, weight: int, wrong: int, most: int, *, splits: int = 0
) -> Floats:
    """The largest P(Q <= q) over all T_A + T_B = ``wrong`` <= N, for q = 0 .. ``most``; over about so many
    ``splits`` only, where that is not 0.
    """
    some = np.unique(np.linspace(0, wrong, splits).astype(np.int64)) if splits else None
    worst = np.zeros(most + 1)
    step = max(1, CELLS // (most + 1))
    for start in range(0, wrong + 1 if some is None else 1, step):
        alike = np.arange(start, min(start + step, wrong + 1)) if some is None else some
        tails = weighted_tail(
            pool_size=pool_size,
            asked=asked,
            rechecked=rechecked,
            weight=weight,
            unlike=wrong - alike,
            alike=alike,
            most=most,
        )
        worst = np.maximum(worst, tails.max(axis=0))
    return worst


@lru_cache(maxsize=4096)
def largest_weighted_count(
    *, pool_size: int, asked: int, rechecked: int, weight: int, wrong: int, level: float
) -> int:
    """Largest q with P(Q <= q | T_A = M - t, T_B = t) <= ``level`` for all t = 0 .. M; -1 where none has.

    ``wrong`` is M.  There is no pool with more than N wrong items, so then every count passes.
    """
    if wrong > pool_size:
        return asked + (weight - 1) * rechecked
    most = largest_count(pool_size, wrong, asked, level)  # t = 0
    for splits in (FEW, 0):  # some splits leave less to be looked at for all of them
        if most < 0:
            return -1
        worst = _worst(pool_size, asked, rechecked, weight, wrong, most, splits=splits)
        most = int(np.count_nonzero(worst <= level)) - 1
    return most


@lru_cache(maxsize=4096)
def recheck_levels(
    *, pool_size: int, asked: int, rechecked: int, weight: int, budget: int, level: Fraction
) -> Levels:
    """s and the largest Q of the wide and of the narrow test (Sections 5.3, 13.1), in place of c_s, c_0.

    T - K_A - K_B is to be at most E.  A policy in the wide prefix with K_A + K_B >= s delivers at most E
    wrong labels, and so does every one in the narrow prefix: for any s that these arguments fix, as they do
    before a label.  Where all asked items are rechecked, w = 1 and these are the two levels of a data set.
    Else s is chosen so that no other one admits all that it does and more: the wide limit is the largest that
    is `SLACK` or more above its s, and s the least that has this limit, for what makes Q grow by w makes
    K_A + K_B grow by 1 only.  One level stands where two would not allow more, or would turn away a policy
    without an observed error.

    Raises
    ------
    ValueError
        n_B is not in 0 .. n, w is not a whole number of 1 or more, or w is not 1 where n_B = n.
    """
    if not 0 <= rechecked <= asked or weight < 1:
        raise ValueError(f"{rechecked} of {asked} asked items cannot be rechecked at the weight {weight}")
    if rechecked == asked:
        if weight != 1:
            raise ValueError(f"where every asked item is seen each error counts once, not {weight} times")
        return two_levels(pool_size=pool_size, asked=asked, budget=budget, level=level)
    share = WIDE_SHARE * level

    def limit(wrong: int, part: Fraction) -> int:
        return largest_weighted_count(
            pool_size=pool_size,
            asked=asked,
            rechecked=rechecked,
            weight=weight,
            wrong=wrong,
            level=float(part),
        )

    narrow = limit(budget + 1, level - share)
    if narrow >= 0 and pool_size - asked > budget:
        search = _Search(pool_size, asked, rechecked, weight, budget, float(share))
        most = search.largest_s()
        wide = limit(budget + most + 1, share) if most > 0 else -1
        # Asked of the one level in this way, as a few splits mostly tell.
        if wide >= 0 and not replace(search, level=float(level)).reaches(0, wide):
            return Levels(search.least_s(wide, most), wide, narrow)
    one = limit(budget + 1, level)
    return Levels(0, one, one)


@dataclass(frozen=True)
class _Search:
    """For an s whose limit at M = E + s + 1 is as wanted.

    The limit never falls in s.  It is looked at for some splits first, as they refuse most of what all do.
    """

    pool_size: int
    asked: int
    rechecked: int
    weight: int
    budget: int
    level: float

    def reaches(self, s: int, count: int) -> bool:
        """Whether the limit at M = E + s + 1 is ``count`` or more."""
        return all(self.may_reach(s, count, splits) for splits in (FEW, 0))

    def may_reach(self, s: int, count: int, splits: int = FEW) -> bool:
        """The same, as far as these splits tell."""
        wrong = self.budget + s + 1
        if wrong > self.pool_size:
            return True
        worst = _worst(self.pool_size, self.asked, self.rechecked, self.weight, wrong, count, splits=splits)
        return bool(worst[count] <= self.level)

    def largest_s(self) -> int:
        """Largest s whose limit is s + `SLACK` or more; -1 where none is.

        One more wrong item in A is at most one more in Q; so if s + 1 has it, s has it, and s is found by
        bisection, below that of an ordinary count.
        """
        high = largest_self_consistent(self.pool_size, self.budget, self.asked, self.level) + 1
        low = self._last(lambda s: self.may_reach(s, s + SLACK), -1, high)
        while low >= 0 and not self.reaches(low, low + SLACK):
            low -= 1
        return low

    def least_s(self, count: int, most: int) -> int:
        """Least s whose limit is ``count`` or more; ``most`` has it."""
        s = 1 + self._last(lambda s: not self.may_reach(s, count), -1, most)
        while s < most and not self.reaches(s, count):
            s += 1
        return s

    @staticmethod
    def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
        """Largest s in ``low`` .. ``high`` - 1 that ``holds``, ``low`` taken to."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low


def effort(*, pool_size: int, asked: int, rechecked: int, weight: int, budget: int) -> int:
    """About how many steps `recheck_levels` takes, some 10**8 of them a second; 0 where n_B = n."""
    if rechecked >= asked:
        return 0
    most = min(asked, -(-asked * (budget + 1) // pool_size))  # a limit is below the mean
    each = (most + 1) * (min(most, rechecked) + 1) * (most // weight + 1)
    return (budget + most + 2) * (2000 * (most + 1) + each)


def least_asked(*, pool_size: int, share: Number, budget: int, level: Fraction) -> int:
    """The least n with which a policy without an error passes; N where there is none below.

    Q = 0 is likeliest where all M wrong items are in B, as fewer look at these: P[Hyp(N, M, n_B) = 0].
    """

    def passes(asked: int) -> bool:
        return bool(tail(pool_size, budget + 1, rechecked(share, asked), 0) <= float(level))

    low, high = 0, pool_size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def judge_weighted(upper: Floats, lower: Floats, levels: Levels) -> Verdict:
    """Test a chain of J policies, the reference for everything first, in order up to the first that fails.

    Parameters
    ----------
    upper : (J,)
        Q+ = K_A+ + w K_B+.
    lower : (J,)
        K_A- + K_B-, errors that the expert's labels mend in the delivered data set.
    """
    index = np.arange(len(upper))
    if levels.s == 0:
        length = prefix(upper <= levels.wide)
        allowed = np.full(len(upper), float(levels.wide))
        return Verdict(index < length, {"all": length}, allowed, limits={"errors": levels.wide})
    wide, narrow = prefix(upper <= levels.wide), prefix(upper <= levels.narrow)
    return Verdict(
        eligible=((index < wide) & (lower >= levels.s)) | (index < narrow),
        prefixes={"wide": wide, "narrow": narrow},
        allowed=np.where(lower >= levels.s, levels.wide, levels.narrow).astype(np.float64),
        required=levels.s,
        limits={"s": levels.s, "c_s": levels.wide, "c_0": levels.narrow},
    )
