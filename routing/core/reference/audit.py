"""What happens after the calibration: people may drift, and nothing but a look at delivered labels can tell.

Routed items are queued in the order of a hash, and another hash marks a share of those that people label; the
expert labels these blind.  They are counted in the order of the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Bools, Floats, Ints
from routing.core.bounds.hypergeometric import largest_self_consistent
from routing.core.exact import Number
from routing.core.reference.roster import AUDIT, QUEUE, hashes, marked

DEFAULT_SHARE = "0.02"
FACTORS = (1.5, 2.0, 3.0)
"""Times eta: the error rates that the process bets on, a third of the stake on each."""
LARGEST = 0.95
ALARM = 20.0
"""False alarms have probability at most 1 / 20, however long the audit goes on (Ville's inequality)."""


def queue_order(salt: str, item_ids: Sequence[str]) -> Ints:
    """Places of the items (n,) in the order in which they are served: by a hash, then by their ids."""
    numbers = hashes(salt, QUEUE, item_ids)
    return np.array(sorted(range(len(item_ids)), key=lambda i: (numbers[i], item_ids[i])), dtype=np.int64)


def audited(salt: str, item_ids: Sequence[str], share: Number = DEFAULT_SHARE) -> Bools:
    """Which items (n,) the expert labels too, if a person's label is to be delivered."""
    return marked(salt, AUDIT, item_ids, share)


def audit_wealth(wrong: ArrayLike, eta: float) -> Floats:
    """W_t after each of the audited items (T,), in the order of the queue.

    W_t = mean over f in {1.5, 2, 3} of prod (p_f / eta)^x ((1 - p_f) / (1 - eta))^(1 - x), p_f = min(f eta,
    .95).  While each label is wrong with probability at most eta given the ones before it, W_t is a
    supermartingale from 1.

    Parameters
    ----------
    wrong : (T,)
        Whether person and expert differ.  An item that either could not label is no audit.
    eta : float
        The error that is accepted from people on routed items, above 0 and below .95.
    """
    if not 0 < eta < LARGEST:
        raise ValueError(f"eta = {eta} must be above 0 and below {LARGEST}")
    errors = np.asarray(wrong, dtype=np.bool_)
    rates = np.minimum(np.array(FACTORS) * eta, LARGEST)[:, None]
    steps = np.where(errors, np.log(rates / eta), np.log1p(-rates) - np.log1p(-eta))
    logs = np.cumsum(steps, axis=1)
    return np.asarray(np.exp(np.logaddexp.reduce(logs, axis=0) - np.log(len(FACTORS))), dtype=np.float64)


def alarm_at(wrong: ArrayLike, eta: float, limit: float = ALARM) -> int | None:
    """After how many audited items the process first reached ``limit``; None where it never did."""
    reached = np.flatnonzero(audit_wealth(wrong, eta) >= limit)
    return int(reached[0]) + 1 if len(reached) else None


@dataclass(frozen=True)
class FinalAudit:
    """How the final audit is planned: the models' part and people's part of the promise.

    Attributes
    ----------
    models_budget : int
        E_M: wrong items that routing by models may leave, certified by the calibration at ``models_level``.
    models_level, people_level : Fraction
        alpha_1 and alpha_2.
    """

    models_budget: int
    models_level: Fraction
    people_level: Fraction

    def fault(self, budget: int, alpha: Fraction) -> str:
        """Why this is no plan for E = ``budget`` at level ``alpha``; '' if it is one."""
        if not 0 <= self.models_budget <= budget:
            return f"the models' part of the {budget} wrong items is {self.models_budget}"
        if min(self.models_level, self.people_level) <= 0 or self.models_level + self.people_level > alpha:
            return "the two levels are not above 0, or together above alpha"
        return ""

    def allowed(self, *, size: int, sampled: int, budget: int) -> int:
        """Largest number of differences in the sample with which people's part is at most E - E_M; -1: none.

        A simple random sample of ``sampled`` of the ``size`` delivered items with a person's or a unanimous
        label that the expert has not seen.  What the sample shows is mended in the file.
        """
        part = budget - self.models_budget
        if size - sampled <= part:
            return sampled  # no more can be left unseen
        return largest_self_consistent(size, part, sampled, float(self.people_level))

    def smallest_sample(self, *, size: int, budget: int, differences: int = 0) -> int:
        """Least sample with which so many differences would pass."""
        low, high = 0, size
        while high - low > 1:
            middle = (low + high) // 2
            passes = self.allowed(size=size, sampled=middle, budget=budget) >= differences
            low, high = (low, middle) if passes else (middle, high)
        return high
