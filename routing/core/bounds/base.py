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
from math import ceil
from typing import ClassVar, Protocol

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.messages import Message, declare, gettext_noop

BISECTIONS = 60
"""Halvings of [0, B]: 2**-60 is below the spacing of a float64 near any risk that matters."""
LARGEST_SAMPLE = 1 << 40
"""Where the search for a sample that certifies gives up."""
LONGEST_PATH = 1 << 18
"""The same where a bound has to walk along the sample, in a pool that is no larger."""

Risk = Fraction | Floats
"""A risk level: exact where it is a plan's epsilon, an array (J,) inside a bisection."""


class RowSource(Protocol):
    """Losses of the policies row by row, in the order of the draw, for bounds that bet along it."""

    def __call__(self, start: int, stop: int) -> Floats:
        """Policies ``start`` .. ``stop`` - 1: (stop - start, n) losses of the asked rows for a constant p,
        else (stop - start, m) weighted losses Z l / p_i of all drawn rows.
        """


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
        The probability of asking; where it varies, its mean over the pool.
    pool_size : int
        N.
    loss_bound : float
        B.
    binary : bool
        The loss takes the values 0 and 1 only.
    weighted, weighted_squares : (J,) or None
        Sums of Z l / p_i and of its square over the drawn items; None for a constant p.
    p_min : Fraction or None
        The smallest p_i of the plan; None for a constant p.
    rows : RowSource or None
        The losses in draw order; only bounds that are `Bound.sequential` need them.
    places : (n,) or None
        For a constant p, the places of the asked rows among the m drawn ones, in draw order, for a bound that
        reads those rows as well; None: as if they came evenly.
    """

    total: Floats
    squares: Floats
    asked: int
    drawn: int
    p: Fraction
    pool_size: int
    loss_bound: float = 1.0
    binary: bool = True
    weighted: Floats | None = None
    weighted_squares: Floats | None = None
    p_min: Fraction | None = None
    rows: RowSource | None = None
    places: Ints | None = None

    @property
    def constant_p(self) -> bool:
        """Whether every item was asked about with one probability."""
        return self.p_min is None

    @property
    def smallest_p(self) -> float:
        return float(self.p if self.p_min is None else self.p_min)

    @property
    def mean(self) -> Floats:
        """Mean loss (J,) of the asked items, unweighted; 0 where nobody was asked."""
        return self.total / max(self.asked, 1)

    @property
    def weighted_mean(self) -> Floats:
        """R_hat of Eq. (5), (J,): the sum of Z l / p_i divided by m."""
        weighted = self.total / float(self.p) if self.weighted is None else self.weighted
        return weighted / max(self.drawn, 1)

    @property
    def weighted_mean_square(self) -> Floats:
        """The sum of (Z l / p_i)^2 divided by m, (J,)."""
        squares = (
            self.squares / float(self.p) ** 2 if self.weighted_squares is None else self.weighted_squares
        )
        return squares / max(self.drawn, 1)

    @classmethod
    def of_counts(cls, counts: Floats, *, asked: int, drawn: int, p: Fraction, pool_size: int) -> Evidence:
        """Evidence of a 0-1 loss from the numbers of observed errors."""
        total = np.asarray(counts, dtype=np.float64)
        return cls(total=total, squares=total, asked=asked, drawn=drawn, p=p, pool_size=pool_size)


def recommended(*, target: str, binary: bool, constant_p: bool = True) -> str:
    """Name of the tightest bound for a target, a loss and a way of asking: what a refusal names."""
    population = target == "population"
    if binary and constant_p:
        return "binomial" if population else "hypergeometric"
    return "betting_upper" if constant_p or population else "hoeffding_bentkus"


class Bound(ABC):
    """One way to bound a target from above."""

    name: ClassVar[str]
    title: ClassVar[str] = ""
    """The name in words, for pages."""
    summary: ClassVar[str] = ""
    """One plain sentence for somebody who has to choose."""
    certifies: ClassVar[bool]
    """Whether its p-values hold for every sample size; one that does not never yields a certificate."""
    sequential: ClassVar[bool] = False
    """Whether it reads `Evidence.rows`, the losses in the order of the draw."""
    counts_only: ClassVar[bool] = True
    """Whether, for a 0-1 loss and a constant p, its p-value depends on the number of observed errors alone
    and never falls as that grows, so that `largest_count` decides every test."""
    mean_only: ClassVar[bool] = False
    """Whether, for every loss, its p-value depends on the mean loss alone (the weighted one where p varies)
    and never falls as that grows: along a rising loss one bisection then finds the furthest policy."""
    above_mean: ClassVar[bool] = False
    """Whether, at a level of at most 1/2, its upper bound is never below the observed mean (the weighted
    one): policies beyond that then need no test."""

    @abstractmethod
    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        """Why the bound is not valid for this target and loss, naming what to use instead; None if it is."""

    @abstractmethod
    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        """P-values (J,) of the hypotheses "target > r".

        ``level`` is the level of the test that will be made with them: a bound may be tuned to it, and is
        valid whatever it is.
        """

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """Upper confidence bounds (J,) at level ``alpha``, each for its policy alone, by bisection in r.

        The bound is the infimum of the rejected r in [0, B], or B where none is rejected.
        """
        low = np.zeros(len(evidence.total))
        high = np.full(len(evidence.total), evidence.loss_bound)
        accepted_at_zero = self.p_values(evidence, low, target=target, level=alpha) > alpha
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            rejected = self.p_values(evidence, middle, target=target, level=alpha) <= alpha
            high = np.where(rejected, middle, high)
            low = np.where(rejected, low, middle)
        return np.where(accepted_at_zero, high, 0.0)

    def largest_count(self, evidence: Evidence, r: Fraction, alpha: float, *, target: str) -> int:
        """Most observed errors that reject "target > r" at level ``alpha``; -1 where none does.

        By bisection; of ``evidence`` only the sizes are read.  An error costs B.  Where the count decides
        nothing (the bound is not `counts_only`, p varies, or the loss has other values) this is a forecast,
        never used to certify: errors come evenly along the draw and weigh the same.
        """
        low, high = -1, evidence.asked + 1
        while high - low > 1:
            middle = (low + high) // 2
            observed = full_losses(evidence, middle)
            if self.p_values(observed, r, target=target, level=alpha)[0] <= alpha:
                low = middle
            else:
                high = middle
        return low

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
        """Least number of asked items with which an observed loss of zero rejects "target > epsilon".

        By bisection, unless a bound knows better.  More than the pool holds where nothing can be certified
        at all.  Where ``p_min`` is given p varies, and ``p`` is its mean.
        """
        none = np.zeros(1)

        def certifies(asked: int) -> bool:
            drawn = ceil(asked / p)
            weighted = None if p_min is None else none
            sizes = Evidence(
                none, none, asked, drawn, p, pool_size, loss_bound, False, weighted, weighted, p_min
            )
            observed = full_losses(sizes, 0)
            return bool(self.p_values(observed, epsilon, target=target, level=alpha)[0] <= alpha)

        most = LARGEST_SAMPLE
        if self.sequential:
            most = max(LONGEST_PATH, pool_size) if target == "population" else pool_size
        low, high = 0, 1
        while not certifies(min(high, most)):
            if high >= most:
                return most + 1
            low, high = high, 2 * high
        high = min(high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if certifies(middle) else (middle, high)
        return high


def full_losses(evidence: Evidence, count: int) -> Evidence:
    """What one policy would show that has ``count`` full losses B, coming evenly along the draw.

    Only the sizes of ``evidence`` are read; where p varies, a loss weighs 1 / p with the mean p.
    """
    loss = evidence.loss_bound
    total, squares = np.array([count * loss]), np.array([count * loss**2])
    steps, value = evidence.asked, loss
    if not evidence.constant_p:
        steps, value = evidence.drawn, loss / float(evidence.p)

    def rows(start: int, stop: int) -> Floats:
        line = np.zeros(steps)
        line[evenly(count, steps)] = value
        return line[None, :][start:stop]

    weighted = None if evidence.constant_p else np.array([count * value])
    weighted_squares = None if evidence.constant_p else np.array([count * value**2])
    return replace(
        evidence,
        total=total,
        squares=squares,
        weighted=weighted,
        weighted_squares=weighted_squares,
        rows=rows,
        places=None,
    )


def evenly(count: int, steps: int) -> Ints:
    """Places (count,) that cut ``steps`` places into parts of one size."""
    return ((np.arange(count) + 0.5) * steps / max(count, 1)).astype(np.int64)


def as_array(r: Risk, size: int) -> Floats:
    """``r`` as floats of shape (size,)."""
    if isinstance(r, Fraction):
        return np.full(size, float(r))
    return np.broadcast_to(np.asarray(r, dtype=np.float64), (size,)).astype(np.float64)


SAYS = {
    "bound.constant_p": gettext_noop(
        "the bound '%(bound)s' needs one probability of asking for all items; use '%(use)s'"
    ),
    "bound.binary": gettext_noop("the bound '%(bound)s' needs a loss of 0 or 1; use '%(use)s'"),
}
declare(SAYS)
