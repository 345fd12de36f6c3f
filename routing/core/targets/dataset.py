"""`dataset`: the share of wrong labels in the delivered data set, what people labelled counting as right."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence
from routing.core.bounds.hypergeometric import Hypergeometric, largest_count, largest_self_consistent
from routing.core.exact import percent, plain
from routing.core.rules.fixed_sequence import Verdict, prefix
from routing.core.targets.base import Target

WIDE_SHARE = Fraction(9, 10)
"""Part of the level that the wide test gets; the narrow one gets the rest."""
SLACK = 2
"""How far s stays below the best count of one policy: a policy rarely shows exactly that many errors."""


@dataclass(frozen=True)
class Levels:
    """The two tests, fixed by N, n, E and the level alone.

    ``wide`` is c_s, the largest K+ that passes "T > E + s"; ``narrow`` is c_0, the same for "T > E".  With s
    = 0 there is one test, ``wide`` = ``narrow``, at the full level.
    """

    s: int
    wide: int
    narrow: int


@lru_cache(maxsize=1024)
def two_levels(*, pool_size: int, asked: int, budget: int, level: Fraction) -> Levels:
    """s, c_s and c_0 for the delivered data set.

    T(theta) - K(theta) is to be at most E, and K(theta) is random: which policy is the first bad one would
    depend on the draw.  So T is tested against two fixed limits.  Where T <= E + s holds, a policy with at
    least s observed errors delivers at most E wrong labels; where T <= E holds, every policy does.
    """
    share = WIDE_SHARE * level
    s = 0
    if pool_size - asked > budget:  # else nearly everything was asked, and s would only get in the way
        s = max(0, largest_self_consistent(pool_size, budget, asked, float(share)) - SLACK)
    if s == 0:
        count = largest_count(pool_size, budget + 1, asked, float(level))
        return Levels(0, count, count)
    return Levels(
        s,
        largest_count(pool_size, budget + s + 1, asked, float(share)),
        largest_count(pool_size, budget + 1, asked, float(level - share)),
    )


class DataSet(Target):
    """D(theta) = (T(theta) - K-(theta)) / N."""

    name: ClassVar[str] = "dataset"
    title: ClassVar[str] = "The delivered data set"
    summary: ClassVar[str] = (
        "The share of wrong labels in the file that is delivered, in which every label by people counts as right: "
        "for one finished data set."
    )
    finite: ClassVar[bool] = True

    def judge(
        self, *, bound: Bound, evidence: Evidence, lower: Floats, epsilon: Fraction, level: Fraction
    ) -> Verdict:
        if not isinstance(bound, Hypergeometric):
            # T / N <= epsilon implies D <= epsilon: any bound on the pool serves.
            return super().judge(bound=bound, evidence=evidence, lower=lower, epsilon=epsilon, level=level)
        levels = self._levels(evidence, epsilon, level)
        if levels.s == 0:
            passes = evidence.total <= levels.wide
            length = prefix(passes)
            allowed = np.full(len(passes), float(levels.wide))
            return Verdict(
                np.arange(len(passes)) < length, {"all": length}, allowed, limits={"errors": levels.wide}
            )
        wide = prefix(evidence.total <= levels.wide)
        narrow = prefix(evidence.total <= levels.narrow)
        index = np.arange(len(evidence.total))
        in_wide = (index < wide) & (lower >= levels.s)
        return Verdict(
            eligible=in_wide | (index < narrow),
            prefixes={"wide": wide, "narrow": narrow},
            allowed=np.where(lower >= levels.s, float(levels.wide), float(levels.narrow)),
            required=levels.s,
            limits={"s": levels.s, "c_s": levels.wide, "c_0": levels.narrow},
        )

    def allowed(self, *, bound: Bound, evidence: Evidence, epsilon: Fraction, level: Fraction) -> int:
        if not isinstance(bound, Hypergeometric):
            return super().allowed(bound=bound, evidence=evidence, epsilon=epsilon, level=level)
        levels = self._levels(evidence, epsilon, level)
        return max(levels.wide, levels.narrow)

    @staticmethod
    def _levels(evidence: Evidence, epsilon: Fraction, level: Fraction) -> Levels:
        return two_levels(
            pool_size=evidence.pool_size,
            asked=evidence.asked,
            budget=floor(epsilon * evidence.pool_size),
            level=level,
        )

    def sentence(self, epsilon: Decimal, alpha: Decimal) -> str:
        return (
            f"At most {percent(epsilon)} of the labels in the delivered data set are wrong (epsilon = "
            f"{plain(epsilon)}), {self._odds(epsilon, alpha)}. Labels that people gave count as right; the "
            "part that no person labelled may exceed this share on its own."
        )
