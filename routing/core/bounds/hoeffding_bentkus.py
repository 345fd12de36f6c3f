"""Hoeffding's and Bentkus's inequalities in their tight forms, whichever says more."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import special

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array
from routing.core.messages import Message, gettext_noop

ROUNDING = 1e-9
"""Taken off the summed loss before it is rounded up: a whole number may have come out a little too large."""


class HoeffdingBentkus(Bound):
    """p = min{exp(-n h(min(x, r), r)), e P[Bin(n, r) <= ceil(n x)]}, with losses scaled to [0, 1].

    x is the mean of the n asked rows, h(a, b) = a ln(a / b) + (1 - a) ln((1 - a) / (1 - b)).  Where p varies,
    all m weighted rows count, with range B / p_min; the second term then holds for independent rows only, so
    a finite pool has the first alone.

    Hoeffding (1963), Theorems 1 and 4; Bentkus (2004); Bates et al. (2021), Distribution-free,
    risk-controlling prediction sets.
    """

    name: ClassVar[str] = "hoeffding_bentkus"
    title: ClassVar[str] = gettext_noop("Hoeffding-Bentkus bound")
    summary: ClassVar[str] = gettext_noop(
        "Safe for every loss; best with few labels, or where some items are asked about more often."
    )
    certifies: ClassVar[bool] = True
    mean_only: ClassVar[bool] = True

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        return None

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        if evidence.constant_p:
            n, total, scale = evidence.asked, evidence.total, evidence.loss_bound
        else:
            n, scale = evidence.drawn, evidence.loss_bound / evidence.smallest_p
            total = evidence.weighted_mean * n
        risk = np.clip(as_array(r, len(total)) / scale, 0.0, 1.0)
        if n == 0:
            return np.ones_like(risk)
        summed = total / scale
        p = np.exp(-n * _divergence(np.minimum(summed / n, risk), risk))
        if evidence.constant_p or target == "population":
            count = np.maximum(np.ceil(summed - ROUNDING), 0.0)
            p = np.minimum(p, np.e * special.bdtr(count, n, risk))
        return np.asarray(p, dtype=np.float64)


def _divergence(a: Floats, b: Floats) -> Floats:
    """h(a, b) of two coins; infinite where b = 1 is certain and a is not."""
    return np.asarray(special.rel_entr(a, b) + special.rel_entr(1 - a, 1 - b), dtype=np.float64)
