"""The one contract of all bounds: a p-value for "target > r", and from it the upper confidence bound.

For J policies at once a bound turns what was observed into the p-values of H_j: "the target of policy j
exceeds r". The level-alpha upper bound is the largest r that is not rejected, found by bisection in r unless
a bound knows a closed form.  Nothing here looks at more than one policy: that is the business of the
selection rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats

BISECTIONS = 60
"""Halvings of [0, B]: 2**-60 is below the spacing of a float64 near any risk that matters."""

Risk = Fraction | Floats
"""A risk level: exact where it is a plan's epsilon, an array (J,) inside a bisection."""


@dataclass(frozen=True)
class Evidence:
    """What the asked items of one draw say about J policies.

    Attributes
    ----------
    total : (J,)
        Summed loss of each policy over the asked items, K.
    squares : (J,)
        Summed squared loss over the asked items.
    asked, drawn : int
        n and m: items that people were asked about, items of the calibration set.
    p : Fraction
        The probability of asking, constant.
    pool_size : int
        N.
    loss_bound : float
        B.
    binary : bool
        The loss takes the values 0 and 1 only.
    """

    total: Floats
    squares: Floats
    asked: int
    drawn: int
    p: Fraction
    pool_size: int
    loss_bound: float = 1.0
    binary: bool = True

    @classmethod
    def of_counts(cls, counts: Floats, *, asked: int, drawn: int, p: Fraction, pool_size: int) -> Evidence:
        """Evidence of a 0-1 loss from the numbers of observed errors."""
        total = np.asarray(counts, dtype=np.float64)
        return cls(total=total, squares=total, asked=asked, drawn=drawn, p=p, pool_size=pool_size)


class Bound(ABC):
    """One way to bound a target from above."""

    name: ClassVar[str]
    certifies: ClassVar[bool]
    """Whether its p-values hold for every sample size; one that does not never yields a certificate."""

    @abstractmethod
    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> str:
        """Why the bound is not valid for this target and loss, naming what to use instead; '' if it is."""

    @abstractmethod
    def p_values(self, evidence: Evidence, r: Risk, *, target: str) -> Floats:
        """P-values (J,) of the hypotheses "target > r"."""

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """Upper confidence bounds (J,) at level ``alpha``, each for its policy alone, by bisection in r.

        The bound is the infimum of the rejected r in [0, B], or B where none is rejected.
        """
        low = np.zeros(len(evidence.total))
        high = np.full(len(evidence.total), evidence.loss_bound)
        accepted_at_zero = self.p_values(evidence, low, target=target) > alpha
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            rejected = self.p_values(evidence, middle, target=target) <= alpha
            high = np.where(rejected, middle, high)
            low = np.where(rejected, low, middle)
        return np.where(accepted_at_zero, high, 0.0)

    def largest_count(self, evidence: Evidence, r: Fraction, alpha: float, *, target: str) -> int:
        """Most observed errors of a 0-1 loss that reject "target > r" at level ``alpha``; -1 where none does.

        By bisection; of ``evidence`` only the sizes are read.
        """
        low, high = -1, evidence.asked + 1
        while high - low > 1:
            middle = (low + high) // 2
            count = np.array([float(middle)])
            if self.p_values(replace(evidence, total=count, squares=count), r, target=target)[0] <= alpha:
                low = middle
            else:
                high = middle
        return low

    @abstractmethod
    def smallest_sample(
        self, *, epsilon: Fraction, alpha: float, p: Fraction, pool_size: int, loss_bound: float
    ) -> int:
        """Least number of asked items with which an observed loss of zero rejects "target > epsilon".

        May exceed the pool, where nothing can be certified at all.
        """


def as_array(r: Risk, size: int) -> Floats:
    """``r`` as floats of shape (size,)."""
    if isinstance(r, Fraction):
        return np.full(size, float(r))
    return np.broadcast_to(np.asarray(r, dtype=np.float64), (size,)).astype(np.float64)
