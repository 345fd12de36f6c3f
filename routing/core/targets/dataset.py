"""`dataset`: the share of the delivered labels that differ from people's, whose own labels count as right."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence
from routing.core.bounds.hypergeometric import Hypergeometric, largest_count, largest_self_consistent
from routing.core.bounds.tails import tail
from routing.core.messages import Message, declare, gettext_noop, say
from routing.core.rules.fixed_sequence import Verdict, prefix
from routing.core.targets.base import Guarantee, LearningSplit, Target

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


@lru_cache(maxsize=4096)
def two_levels(*, pool_size: int, asked: int, budget: int, level: Fraction, spent: int = 0) -> Levels:
    """s, c_s and c_0 for the delivered data set.

    ``spent`` are possible errors of a policy outside these N items (asked items that taught its chain and
    that nobody could label): its T must stay within E - spent, while s is the same for the whole chain.

    T(theta) - K(theta) is to be at most E, and K(theta) is random: which policy is the first bad one would
    depend on the draw.  So T is tested against two fixed limits.  Where T <= E + s holds, a policy with at
    least s observed errors delivers at most E wrong labels; where T <= E holds, every policy does.
    """
    share = WIDE_SHARE * level
    s = 0
    if pool_size - asked > budget:  # else nearly everything was asked, and s would only get in the way
        s = max(0, largest_self_consistent(pool_size, budget, asked, float(share)) - SLACK)
    left = budget - spent
    if left < 0:
        return Levels(s, -1, -1)
    if s == 0:
        count = largest_count(pool_size, left + 1, asked, float(level))
        return Levels(0, count, count)
    return Levels(
        s,
        largest_count(pool_size, left + s + 1, asked, float(share)),
        largest_count(pool_size, left + 1, asked, float(level - share)),
    )


@dataclass(frozen=True)
class NestedLevels:
    """The numbers that decide where wrong items only become more along a chain.

    ``together`` is c, the largest K+ = K- with which any policy passes; ``narrow`` is c_0, the largest K+
    that passes "T > E", for policies with asked items that nobody could label.
    """

    together: int
    narrow: int


@lru_cache(maxsize=4096)
def nested_levels(*, pool_size: int, asked: int, budget: int, level: Fraction) -> NestedLevels:
    """c and c_0 for the delivered data set where each policy's wrong items hold those of the one before it.

    c is the largest integer with P[Hyp(N, E + c + 1, n) <= c] <= .9 level.  With at least the complementary
    probability EVERY policy with K <= c delivers at most E wrong labels.  Proof: order all wrong items along
    the chain, F the first E + c + 1 of them (padded with any fixed items if there are fewer).  Say that some
    policy has K <= c and more than E unasked wrong items; its wrong items S are an initial piece of the
    order.  If |S| >= |F|, F lies in S, and at most c of F are asked.  Else F holds S, and of F at most
    K + |F| - |S| <= E + c + 1 - (E + 1) = c are asked.  Either way at most c of F are, and their number is
    Hyp(N, E + c + 1, n), F being fixed.  No order of testing is needed, nor any least number of errors.
    """
    share = WIDE_SHARE * level
    return NestedLevels(
        together=largest_self_consistent(pool_size, budget, asked, float(share)),
        narrow=largest_count(pool_size, budget + 1, asked, float(level - share)),
    )


class DataSet(Target):
    """D(theta) = (T(theta) - K-(theta)) / N."""

    name: ClassVar[str] = "dataset"
    title: ClassVar[str] = gettext_noop("The delivered data set")
    summary: ClassVar[str] = gettext_noop(
        "The share of labels in the file that is delivered which differ from what a person would give. Every "
        "label by people in it counts as right: for one finished data set."
    )
    finite: ClassVar[bool] = True

    def judge(
        self,
        *,
        bound: Bound,
        evidence: Evidence,
        lower: Floats,
        epsilon: Fraction,
        level: Fraction,
        taught: LearningSplit | None = None,
    ) -> Verdict:
        if not isinstance(bound, Hypergeometric):
            # T / N <= epsilon implies D <= epsilon: any bound on the pool serves.
            return super().judge(
                bound=bound, evidence=evidence, lower=lower, epsilon=epsilon, level=level, taught=taught
            )
        size = len(evidence.total)
        budget = floor(epsilon * (evidence.pool_size + (taught.size if taught else 0)))
        # Labels that people gave while the chain was learnt count as right, as all others do; what nobody
        # could label there may be wrong.
        spent = np.zeros(size) if taught is None else taught.upper - taught.lower
        distinct, place = np.unique(np.append(spent, 0.0), return_inverse=True)
        tests = [self._levels(evidence, budget, level, int(errors)) for errors in distinct]
        wide_allowed, narrow_allowed = (
            np.array([getattr(test, name) for test in tests], dtype=np.float64)[place][:size]
            for name in ("wide", "narrow")
        )
        levels = tests[0]
        if levels.s == 0:
            length = prefix(evidence.total <= wide_allowed)
            return Verdict(
                np.arange(size) < length, {"all": length}, wide_allowed, limits={"errors": levels.wide}
            )
        wide = prefix(evidence.total <= wide_allowed)
        narrow = prefix(evidence.total <= narrow_allowed)
        index = np.arange(size)
        in_wide = (index < wide) & (lower >= levels.s)
        return Verdict(
            eligible=in_wide | (index < narrow),
            prefixes={"wide": wide, "narrow": narrow},
            allowed=np.where(lower >= levels.s, wide_allowed, narrow_allowed),
            required=levels.s,
            limits={"s": levels.s, "c_s": levels.wide, "c_0": levels.narrow},
        )

    def judge_nested(
        self, *, bound: Bound, evidence: Evidence, lower: Floats, epsilon: Fraction, level: Fraction
    ) -> Verdict:
        """`nested_levels` for all policies at once, whatever their order; any other bound as in `judge`."""
        if not isinstance(bound, Hypergeometric):
            return super().judge_nested(
                bound=bound, evidence=evidence, lower=lower, epsilon=epsilon, level=level
            )
        size = len(evidence.total)
        levels = nested_levels(
            pool_size=evidence.pool_size,
            asked=evidence.asked,
            budget=floor(epsilon * evidence.pool_size),
            level=level,
        )
        at_once = (evidence.total <= levels.together) & (evidence.total == lower)
        at_once[0] = True
        narrow = prefix(evidence.total <= levels.narrow)
        return Verdict(
            eligible=at_once | (np.arange(size) < narrow),
            prefixes={"together": int(np.count_nonzero(at_once)), "narrow": narrow},
            allowed=np.where(evidence.total == lower, levels.together, levels.narrow).astype(np.float64),
            limits={"c": levels.together, "c_0": levels.narrow},
        )

    def attained(self, *, bound: Bound, evidence: Evidence, epsilon: Fraction, verdict: Verdict) -> float:
        limits = verdict.limits
        if not isinstance(bound, Hypergeometric) or "errors" in limits:
            return super().attained(bound=bound, evidence=evidence, epsilon=epsilon, verdict=verdict)
        extra, count = (limits["c"],) * 2 if "c" in limits else (limits["s"], limits["c_s"])
        wrong = floor(epsilon * evidence.pool_size) + 1
        return sum(
            float(tail(evidence.pool_size, wrong + more, evidence.asked, errors))
            for more, errors in ((extra, count), (0, limits["c_0"]))
            if errors >= 0
        )

    def _chance(self, bound: Bound, evidence: Evidence, epsilon: Fraction, count: int) -> float:
        """Where one test is left, s = 0, it is that of "T is more than E"."""
        if not isinstance(bound, Hypergeometric):
            return super()._chance(bound, evidence, epsilon, count)
        if count < 0:
            return 0.0
        wrong = floor(epsilon * evidence.pool_size) + 1
        return float(tail(evidence.pool_size, wrong, evidence.asked, count))

    def allowed(
        self, *, bound: Bound, evidence: Evidence, epsilon: Fraction, level: Fraction, first: int = 0
    ) -> int:
        if not isinstance(bound, Hypergeometric):
            return super().allowed(bound=bound, evidence=evidence, epsilon=epsilon, level=level, first=first)
        levels = self._levels(evidence, floor(epsilon * (evidence.pool_size + first)), level, 0)
        return max(levels.wide, levels.narrow)

    @staticmethod
    def _levels(evidence: Evidence, budget: int, level: Fraction, spent: int) -> Levels:
        return two_levels(
            pool_size=evidence.pool_size, asked=evidence.asked, budget=budget, level=level, spent=spent
        )

    def size_named(self, guarantee: Guarantee) -> int | None:
        return guarantee.whole_size

    def qualifications(self, guarantee: Guarantee) -> list[Message]:
        said = []
        if guarantee.labelled_before:
            said.append(say("dataset.labelled_before", before=guarantee.labelled_before))
        said.append(say("dataset.through_pool" if guarantee.through_pool else "dataset.people_are_right"))
        return said


SAYS = {
    "dataset.differ": gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ from the label that a person "
        "gave or would have given (epsilon = %(epsilon)s), with probability at least %(odds)s over the "
        "random draw (alpha = %(alpha)s)."
    ),
    "dataset.differ_of": gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items differ from the label "
        "that a person gave or would have given (epsilon = %(epsilon)s), with probability at least "
        "%(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.loss": gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ, by the loss '%(loss)s', from "
        "the label that a person gave or would have given (epsilon = %(epsilon)s), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.loss_of": gettext_noop(
        "At most %(share)s of the labels in the delivered data set of %(size)s items differ, by the loss "
        "'%(loss)s', from the label that a person gave or would have given (epsilon = %(epsilon)s), with "
        "probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.mean": gettext_noop(
        "The mean loss '%(loss)s' against the label that a person gave or would have given of the labels "
        "in the delivered data set is at most %(epsilon)s (epsilon), with probability at least %(odds)s "
        "over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.mean_of": gettext_noop(
        "The mean loss '%(loss)s' against the label that a person gave or would have given of the labels "
        "in the delivered data set of %(size)s items is at most %(epsilon)s (epsilon), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "dataset.labelled_before": gettext_noop("People had labelled %(before)s of these items before the run."),
    "dataset.through_pool": gettext_noop(
        "This holds for the whole pool, also if the labels that people gave to the calibration set were "
        "left out."
    ),
    "dataset.people_are_right": gettext_noop(
        "Labels that people gave count as right; the part that no person labelled may exceed this share on "
        "its own."
    ),
}
declare(SAYS)
