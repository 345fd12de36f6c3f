"""Hoeffding's inequality: loose, and valid for every bounded loss, target and probability of asking."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, sqrt
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array
from routing.core.messages import Message, gettext_noop


class Hoeffding(Bound):
    """Paper, appendix on valid bounds: R_hat + (B / p) sqrt(ln(1 / alpha) / (2 m)), R_hat the weighted mean
    loss.

    As a p-value: exp(-2 m (r - R_hat)^2 p^2 / B^2) for r above R_hat, else 1.  Where p varies, its smallest
    value over the plan takes its place.  It also holds for sampling without replacement (Hoeffding 1963,
    Theorem 4), hence for a finite pool; for the delivered data set it bounds the pool, whose error is never
    smaller.
    """

    name: ClassVar[str] = "hoeffding"
    title: ClassVar[str] = gettext_noop("Hoeffding's bound")
    summary: ClassVar[str] = gettext_noop(
        "Safe for everything and simple to explain, but it needs the most labels."
    )
    certifies: ClassVar[bool] = True
    mean_only: ClassVar[bool] = True

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        return None

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        risk = as_array(r, len(evidence.total))
        gap = np.maximum(risk - evidence.weighted_mean, 0.0)
        return np.exp(-2.0 * evidence.drawn * (gap * evidence.smallest_p / evidence.loss_bound) ** 2)

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """In closed form, at most B."""
        scale = evidence.loss_bound / evidence.smallest_p
        margin = scale * sqrt(log(1 / alpha) / (2 * max(evidence.drawn, 1)))
        return np.minimum(evidence.weighted_mean + margin, evidence.loss_bound)

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
        """Expected number of asked items, p m, at the least m at which the margin is no more than epsilon."""
        share = float(p if p_min is None else p_min)
        m = ceil(log(1 / alpha) / 2 * (loss_bound / (share * float(epsilon))) ** 2)
        return ceil(m * float(p))
