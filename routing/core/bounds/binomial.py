"""Clopper-Pearson: the exact bound for a 0-1 loss and new items from the same source."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, log1p
from typing import ClassVar

import numpy as np
from scipy import special

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array, recommended
from routing.core.messages import Message, declare, gettext_noop, say


class Binomial(Bound):
    """p = P[Bin(n, r) <= K] on the asked items, unweighted.

    With a constant p the asked items are, given n, a simple random sample from an iid pool, hence iid
    themselves.
    """

    name: ClassVar[str] = "binomial"
    title: ClassVar[str] = gettext_noop("Exact count for new items")
    summary: ClassVar[str] = gettext_noop(
        "Exact, with the fewest labels, where a label is right or wrong and new items will follow."
    )
    certifies: ClassVar[bool] = True

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        use = recommended(target=target, binary=binary, constant_p=constant_p)
        if target != "population":
            return say("bound.population", bound=self.name, target=target, use=use)
        if not binary:
            return say("bound.binary", bound=self.name, use=use)
        if not constant_p:
            return say("bound.constant_p", bound=self.name, use=use)
        return None

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        risk = as_array(r, len(evidence.total))
        if evidence.asked == 0:
            return np.ones_like(risk)
        return np.asarray(special.bdtr(evidence.total, evidence.asked, risk), dtype=np.float64)

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """In closed form: the 1 - alpha quantile of Beta(K + 1, n - K); 1 where all were wrong."""
        misses = evidence.asked - evidence.total
        quantile = special.betaincinv(evidence.total + 1, np.maximum(misses, 1), 1 - alpha)
        return np.where(misses > 0, quantile, 1.0)

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
        """ceil(ln alpha / ln(1 - epsilon)), corrected where rounding moved it by one."""
        n = max(1, ceil(log(alpha) / log1p(-float(epsilon))))
        while n > 1 and special.bdtr(0, n - 1, float(epsilon)) <= alpha:
            n -= 1
        while special.bdtr(0, n, float(epsilon)) > alpha:
            n += 1
        return n


SAYS = {
    "bound.population": gettext_noop(
        "the bound '%(bound)s' is for the target 'population', not '%(target)s'; use '%(use)s'"
    ),
}
declare(SAYS)
