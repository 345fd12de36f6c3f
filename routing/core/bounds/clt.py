"""The normal approximation, Eq. (7) of the paper: for comparison with the paper only, never for a
certificate.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy import special

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array


class CentralLimit(Bound):
    """R_hat + z_{1 - alpha} sigma_W / sqrt(m) on the weighted losses W_i = Z_i l_i / p of all m drawn items.

    It holds in the limit only: with few errors it is far too small, and with none observed it is 0, as
    printed in the paper.  One policy whose risk is exactly 0.05 passes epsilon = alpha = 0.05 with
    probability 0.093 at m = 500.
    """

    name: ClassVar[str] = "clt"
    certifies: ClassVar[bool] = False

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> str:
        instead = "binomial" if target == "population" else "hypergeometric"
        use = instead if binary and constant_p else "hoeffding"
        return (
            f"the bound 'clt' holds only in the limit of many labels and cannot certify anything; use '{use}'"
        )

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        risk = as_array(r, len(evidence.total))
        mean, error = self._mean_and_error(evidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (risk - mean) / error
        return np.where(error > 0, special.ndtr(-z), np.where(mean <= risk, 0.0, 1.0))

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        mean, error = self._mean_and_error(evidence)
        return np.asarray(mean + special.ndtri(1 - alpha) * error, dtype=np.float64)

    @staticmethod
    def _mean_and_error(evidence: Evidence) -> tuple[Floats, Floats]:
        """R_hat of Eq. (5) and its standard error, with the sample standard deviation (m - 1)."""
        m, p = evidence.drawn, float(evidence.p)
        mean = evidence.total / (p * m)
        spread = np.maximum(evidence.squares / p**2 - m * mean**2, 0.0)
        return mean, np.sqrt(spread / max(m - 1, 1) / m)

    def smallest_sample(
        self, *, epsilon: Fraction, alpha: float, p: Fraction, pool_size: int, loss_bound: float
    ) -> int:
        """One: without an observed loss it "passes" whatever the sample, which is why it never certifies."""
        return 1
