"""The normal approximation, Eq. (7) of the paper: for comparison with the paper only, never for a
certificate.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy import special

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array, recommended
from routing.core.messages import Message, declare, gettext_noop, say


class CentralLimit(Bound):
    """R_hat + z_{1 - alpha} sigma_W / sqrt(m) on the weighted losses W_i = Z_i l_i / p_i of all m rows.

    It holds in the limit only: with few errors it is far too small, and with none observed it is 0, as
    printed in the paper.  One policy whose risk is exactly 0.05 passes epsilon = alpha = 0.05 with
    probability 0.093 at m = 500 and 0.167 at m = 100 (p = 0.9).
    """

    name: ClassVar[str] = "clt"
    title: ClassVar[str] = gettext_noop("Normal approximation of the paper")
    summary: ClassVar[str] = gettext_noop(
        "For comparison with the paper only: it passes bad thresholds more often than it says."
    )
    certifies: ClassVar[bool] = False
    above_mean: ClassVar[bool] = True

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        use = recommended(target=target, binary=binary, constant_p=constant_p)
        return say("bound.limit", bound=self.name, use=use)

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        risk = as_array(r, len(evidence.total))
        mean, error = self._mean_and_error(evidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (risk - mean) / error
        return np.where(error > 0, special.ndtr(-z), np.where(mean <= risk, 0.0, 1.0))

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        mean, error = self._mean_and_error(evidence)
        return np.asarray(mean - special.ndtri(alpha) * error, dtype=np.float64)

    @staticmethod
    def _mean_and_error(evidence: Evidence) -> tuple[Floats, Floats]:
        """R_hat of Eq. (5) and its standard error, with the sample standard deviation (m - 1)."""
        m = max(evidence.drawn, 1)
        mean = evidence.weighted_mean
        spread = m * np.maximum(evidence.weighted_mean_square - mean**2, 0.0)
        return mean, np.sqrt(spread / max(m - 1, 1) / m)

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
        """One: without an observed loss it "passes" whatever the sample, which is why it never certifies."""
        return 1


SAYS = {
    "bound.limit": gettext_noop(
        "the bound '%(bound)s' holds only in the limit of many labels and cannot certify anything; use "
        "'%(use)s'"
    ),
}
declare(SAYS)
