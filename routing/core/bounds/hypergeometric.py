"""The exact bound for a 0-1 loss and a finite pool."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import ClassVar

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.bounds.base import Bound, Evidence, Risk, recommended
from routing.core.bounds.tails import tail
from routing.core.messages import Message, declare, gettext_noop, say

SECTIONS = 32
"""Parts into which one step of a search cuts its interval: one call of `tail` costs little more for many."""


def last_true(holds: Callable[[Ints], Bools], low: int, high: int) -> int:
    """Largest k in ``low`` .. ``high`` - 1 that ``holds`` (true up to some k, false beyond; ``low`` is taken
    to be true and ``high`` to be false).
    """
    while high - low > 1:
        tried = np.unique(np.linspace(low, high, SECTIONS + 1).astype(np.int64)[1:-1])
        tried = tried[tried > low]
        good = int(np.count_nonzero(holds(tried)))
        low, high = int(tried[good - 1]) if good else low, int(tried[good]) if good < len(tried) else high
    return low


@lru_cache(maxsize=1024)
def largest_count(pool_size: int, wrong: int, asked: int, level: float) -> int:
    """Largest k with P[Hyp(N, T, n) <= k] <= ``level``; -1 where not even k = 0 qualifies."""
    return last_true(lambda counts: tail(pool_size, wrong, asked, counts) <= level, -1, asked + 1)


@lru_cache(maxsize=1024)
def largest_self_consistent(pool_size: int, budget: int, asked: int, level: float) -> int:
    """Largest k such that every j <= k has P[Hyp(N, E + j + 1, n) <= j] <= ``level``; -1 where none has.

    With T wrong labels, K of them among the asked, the delivered data set holds T - K wrong ones.  For one
    policy "T - K > E" is rejected where K <= k: if T - E - 1 <= k this errs only where K <= T - E - 1, and
    else at most as often as T = E + k + 1 would.

    The probability never falls in j, because one more wrong label is at most one more among the asked.
    """
    return last_true(
        lambda counts: tail(pool_size, budget + counts + 1, asked, counts) <= level, -1, asked + 1
    )


def smallest_wrong(pool_size: int, asked: int, counts: Ints, level: float) -> Ints:
    """Least T (J,), at most N + 1, with P[Hyp(N, T, n) <= k] <= ``level`` for each k of ``counts`` (J,)."""
    low, high = np.zeros(len(counts), np.int64), np.full(len(counts), pool_size + 1, np.int64)
    parts = int(np.clip(16 * SECTIONS // max(len(counts), 1), 2, SECTIONS))
    each = np.arange(len(counts))
    while np.any(high - low > 1):  # the tail never rises in T
        tried = low[:, None] + (high - low)[:, None] * np.arange(parts + 1) // parts
        kept = np.count_nonzero(tail(pool_size, tried[:, 1:-1], asked, counts[:, None]) > level, axis=1)
        low, high = tried[each, kept], tried[each, kept + 1]
    return high


class Hypergeometric(Bound):
    """Pool: p = P[Hyp(N, floor(r N) + 1, n) <= K].  Data set: the same with K more wrong labels.

    Given n, the asked items are a simple random sample of the pool, so the probabilities are exact.
    """

    name: ClassVar[str] = "hypergeometric"
    title: ClassVar[str] = gettext_noop("Exact count in a finite pool")
    summary: ClassVar[str] = gettext_noop(
        "Exact, with the fewest labels, where a label is right or wrong and one finished set is delivered."
    )
    certifies: ClassVar[bool] = True

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        use = recommended(target=target, binary=binary, constant_p=constant_p)
        if target == "population":
            return say("bound.finite", bound=self.name, use=use)
        if not binary:
            return say("bound.binary", bound=self.name, use=use)
        if not constant_p:
            return say("bound.constant_p", bound=self.name, use=use)
        return None

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        size, counts = evidence.pool_size, np.rint(evidence.total).astype(np.int64)
        if isinstance(r, Fraction):
            budget = np.full(len(counts), floor(r * size), dtype=np.int64)
        else:
            budget = np.floor(np.asarray(r) * size).astype(np.int64)
        return self.p_values_of_budget(evidence, counts, budget, target=target)

    def p_values_of_budget(self, evidence: Evidence, counts: Ints, budget: Ints, *, target: str) -> Floats:
        """P-values (J,) of "more than ``budget`` wrong labels", each policy with a budget of its own (J,)."""
        extra = counts if target == "dataset" else 0
        return tail(evidence.pool_size, budget + 1 + extra, evidence.asked, counts)

    def largest_count(self, evidence: Evidence, r: Fraction, alpha: float, *, target: str) -> int:
        """As for every bound, straight from the tail."""
        budget = floor(r * evidence.pool_size)
        if target == "dataset":
            return largest_self_consistent(evidence.pool_size, budget, evidence.asked, alpha)
        return largest_count(evidence.pool_size, budget + 1, evidence.asked, alpha)

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """Exactly: the least budget of wrong labels that is rejected, divided by N."""
        counts = np.rint(evidence.total).astype(np.int64)
        size, asked = evidence.pool_size, evidence.asked
        distinct, where = np.unique(counts, return_inverse=True)
        budgets = smallest_wrong(size, asked, distinct, alpha) - 1 - (distinct if target == "dataset" else 0)
        return np.asarray(np.maximum(budgets, 0)[where] / size, dtype=np.float64)

    def smallest_sample(
        self,
        *,
        epsilon: Fraction,
        alpha: float,
        p: Fraction,
        pool_size: int,
        loss_bound: float,
        p_min: Fraction | None = None,
        target: str = "pool",
    ) -> int:
        """Least n with P[Hyp(N, E + 1, n) = 0] <= alpha, by bisection: the probability falls with n."""
        marked = floor(epsilon * pool_size) + 1
        return last_true(lambda asked: tail(pool_size, marked, asked, 0) > alpha, 0, pool_size) + 1


SAYS = {
    "bound.finite": gettext_noop(
        "the bound '%(bound)s' is for a finite pool, not for 'population'; use '%(use)s'"
    ),
}
declare(SAYS)
