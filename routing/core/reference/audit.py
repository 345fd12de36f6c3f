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
from routing.core.bounds.hypergeometric import last_true
from routing.core.bounds.tails import tail
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
        Whether person and expert differ.  An item that the annotator could not label is no audit, one that
        the expert could not label counts 1.
    eta : float
        The error that is accepted from people on routed items, above 0 and below .95.
    """
    if not 0 < eta < LARGEST:
        raise ValueError(f"eta = {eta} must be above 0 and below {LARGEST}")
    logs = _log_products(np.asarray(wrong, dtype=np.bool_), eta)
    return np.asarray(np.exp(np.logaddexp.reduce(logs, axis=0) - np.log(len(FACTORS))), dtype=np.float64)


@dataclass(frozen=True)
class AuditProcess:
    """The same, one audited item after the other: what has to be kept of those before.

    Attributes
    ----------
    logs
        Logarithms of the products, one a factor.
    highest : float
        The largest W_t so far, 1 at the least.
    """

    logs: tuple[float, ...] = (0.0,) * len(FACTORS)
    highest: float = 1.0

    def after(self, wrong: ArrayLike, eta: float) -> AuditProcess:
        """Once these audited items (T,) have come as well."""
        errors = np.asarray(wrong, dtype=np.bool_)
        if not len(errors):
            return self
        logs = np.array(self.logs)[:, None] + _log_products(errors, eta)
        wealth = np.exp(np.logaddexp.reduce(logs, axis=0) - np.log(len(FACTORS)))
        return AuditProcess(tuple(logs[:, -1].tolist()), max(self.highest, float(wealth.max())))


def _log_products(errors: Bools, eta: float) -> Floats:
    rates = np.minimum(np.array(FACTORS) * eta, LARGEST)[:, None]
    steps = np.where(errors, np.log(rates / eta), np.log1p(-rates) - np.log1p(-eta))
    return np.asarray(np.cumsum(steps, axis=1), dtype=np.float64)


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

    def allowed(self, *, size: int, sampled: int, budget: int, unanswered: int = 0) -> int:
        """Largest number of sampled labels that the expert gives otherwise with which people's part is at
        most E - E_M; -1: none.

        A simple random sample of ``sampled`` of the ``size`` delivered items with a person's or a unanimous
        label that the expert has not seen.  What the sample shows is mended in the file, but for the
        ``unanswered`` items of the sample, which the expert could not label: each counts as wrong, and as
        wrong still.  With T wrong ones of ``size``, d of them mended and u unanswered, "T - d > E - E_M" is
        rejected where P[Hyp(size, E - E_M + d + 1, sampled) <= d + u] <= alpha_2: where it is true,
        T >= E - E_M + d + 1, so that P[Hyp(size, T, sampled) <= d + u] is as small, and d + u is what is
        drawn of T.  The probability never falls in d.
        """
        part, possible = budget - self.models_budget, sampled - unanswered

        def passes(differ: Ints) -> Bools:
            chance = tail(size, part + differ + 1, sampled, differ + unanswered)
            return np.asarray(chance <= float(self.people_level), dtype=np.bool_)

        return last_true(passes, -1, possible + 1)

    def smallest_sample(self, *, size: int, budget: int, differences: int = 0) -> int:
        """Least sample with which so many differences would pass."""
        low, high = 0, size
        while high - low > 1:
            middle = (low + high) // 2
            passes = self.allowed(size=size, sampled=middle, budget=budget) >= differences
            low, high = (low, middle) if passes else (middle, high)
        return high
