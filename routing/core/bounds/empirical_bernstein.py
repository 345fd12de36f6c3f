"""The empirical Bernstein bound of the paper: the observed variance in place of the largest possible."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array, recommended
from routing.core.messages import Message, declare, gettext_noop, say


class EmpiricalBernstein(Bound):
    """R_hat + sqrt(2 V ln(2 / alpha) / m) + 7 B ln(2 / alpha) / (3 (m - 1) p).

    V is the sample variance of the weighted losses of all m rows, p the smallest probability of the plan.
    The paper's appendix on valid bounds; Maurer and Pontil (2009), Theorem 4, for independent rows, hence for
    new items from the source.
    """

    name: ClassVar[str] = "empirical_bernstein"
    title: ClassVar[str] = gettext_noop("Empirical Bernstein bound")
    summary: ClassVar[str] = gettext_noop(
        "Safe for new items and every loss, but it needs more labels than the betting bound."
    )
    certifies: ClassVar[bool] = True
    above_mean: ClassVar[bool] = True

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        if target == "population":
            return None
        use = recommended(target=target, binary=binary, constant_p=constant_p)
        return say("bound.independent", bound=self.name, target=target, use=use)

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        """The level at which the upper bound equals r: a quadratic equation in sqrt(ln(2 / alpha))."""
        gap = np.maximum(as_array(r, len(evidence.total)) - evidence.weighted_mean, 0.0)
        if evidence.drawn < 2:
            return np.ones_like(gap)
        spread, range_term = self._terms(evidence)
        with np.errstate(invalid="ignore"):
            root = 2 * gap / (spread + np.sqrt(spread**2 + 4 * range_term * gap))
        return np.asarray(np.where(gap > 0, np.minimum(2.0 * np.exp(-(root**2)), 1.0), 1.0))

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """In closed form, at most B."""
        if evidence.drawn < 2:
            return np.full(len(evidence.total), evidence.loss_bound)
        spread, range_term = self._terms(evidence)
        odds = np.log(2 / alpha)
        bound = evidence.weighted_mean + spread * np.sqrt(odds) + range_term * odds
        return np.asarray(np.minimum(bound, evidence.loss_bound), dtype=np.float64)

    @staticmethod
    def _terms(evidence: Evidence) -> tuple[Floats, float]:
        """What multiplies sqrt(ln(2 / alpha)), (J,), and ln(2 / alpha)."""
        m = evidence.drawn
        deviations = np.maximum(evidence.weighted_mean_square - evidence.weighted_mean**2, 0.0)
        spread = np.sqrt(2 * deviations / (m - 1))  # 2 V / m, V = m / (m - 1) times the mean deviation
        return spread, 7 * evidence.loss_bound / (3 * (m - 1) * evidence.smallest_p)


SAYS = {
    "bound.independent": gettext_noop(
        "the bound '%(bound)s' is for the target 'population', where rows are independent, not for "
        "'%(target)s'; use '%(use)s'"
    ),
}
declare(SAYS)
