"""What a target is: a quantity to keep at or below epsilon, how a chain is tested for it, and its plain
words.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from routing.core.arrays import Bools, Floats
from routing.core.bounds.base import Bound, Evidence, full_losses, recommended
from routing.core.correctness import NOT_COUNTED, odds_of, spent_said
from routing.core.exact import percent, plain
from routing.core.messages import Message, say
from routing.core.rules.fixed_sequence import Verdict, prefix

BLOCK = 16
"""Policies that a sequential bound tests at first; twice as many each time as long as all of them pass."""


@dataclass(frozen=True)
class LearningSplit:
    """What the asked items that taught a chain say about its J policies; the tests are made on the rest.

    Attributes
    ----------
    size : int
        n_A.
    upper, lower : (J,)
        K+ and K- over these items.
    """

    size: int
    upper: Floats
    lower: Floats


@dataclass(frozen=True)
class Guarantee:
    """What the words of a certificate depend on.

    Attributes
    ----------
    epsilon, alpha : Decimal
    spent : Decimal or None
        What earlier draws on these items spent of alpha beside.
    binary : bool
        The loss counts labels that differ from people's.
    loss : str
        Name of the loss.
    through_pool : bool
        The bound speaks about the whole pool, whatever the target.
    whole_size : int or None
        Items of the delivered data set, where it holds more than the pool.
    labelled_before : int
        How many of these people had labelled before the run.
    """

    epsilon: Decimal
    alpha: Decimal
    spent: Decimal | None = None
    binary: bool = True
    loss: str = "zero_one"
    through_pool: bool = False
    whole_size: int | None = None
    labelled_before: int = 0


class Target(ABC):
    """One of the three promises."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The name in words, for pages."""
    summary: ClassVar[str]
    """One plain sentence for somebody who has to choose."""
    finite: ClassVar[bool]
    """Whether it speaks about the items of one pool (an exact budget E) or about the source they came from.
    """

    def default_bound(self, *, binary: bool, constant_p: bool = True) -> str:
        """Name of the bound that serves where the plan names none: the tightest that is valid."""
        return recommended(target=self.name, binary=binary, constant_p=constant_p)

    def judge(
        self,
        *,
        bound: Bound,
        evidence: Evidence,
        lower: Floats,
        epsilon: Fraction,
        level: Fraction,
        taught: LearningSplit | None = None,
    ) -> Verdict:
        """Test a chain at ``level``.

        Parameters
        ----------
        evidence
            K+ of every policy (J,): an asked item that nobody could label counts B where a model labels it.
            Where part of the asked items taught the chain: of the others, a simple random sample of the N' =
            N - n_A items that taught nothing.
        lower : (J,)
            K- of every policy: such an item counts 0.
        epsilon
            Largest mean loss over the whole pool.
        taught
            What the part that taught the chain says about it; its known losses are taken off what is allowed.
        """
        size = len(evidence.total)
        known = taught if self.finite else None  # of a source that never ends, nothing is used up
        whole = evidence.pool_size + (known.size if known else 0)
        spent = known.upper if known else np.zeros(size)
        limits = {}
        if counted(bound, evidence):
            allowed = self._allowed(bound, evidence, epsilon * whole, spent, level)
            passes = evidence.total <= allowed
            limits = {"errors": self._count(bound, evidence, epsilon * whole, Fraction(0), level)}
        else:
            allowed = np.full(size, np.nan)
            passes = self._rejected(bound, evidence, epsilon * whole, spent, level)
        length = prefix(passes)
        return Verdict(np.arange(size) < length, {"all": length}, allowed, limits=limits)

    def judge_nested(
        self, *, bound: Bound, evidence: Evidence, lower: Floats, epsilon: Fraction, level: Fraction
    ) -> Verdict:
        """Test a chain at ``level`` along which the items that each policy gets wrong only become more.

        Parameters as of `judge`.  Here K+ never falls along the chain, and the order of testing changes
        nothing; another target may know a better test.
        """
        return self.judge(bound=bound, evidence=evidence, lower=lower, epsilon=epsilon, level=level)

    def attained(self, *, bound: Bound, evidence: Evidence, epsilon: Fraction, verdict: Verdict) -> float:
        """The level that the tests of ``verdict`` really have, at the whole numbers that decide them.

        Of ``evidence`` only the sizes are read.  Where no number of errors decides, there is no saying.
        """
        if not verdict.limits:
            return np.inf
        return self._chance(bound, evidence, epsilon, verdict.limits["errors"])

    def _chance(self, bound: Bound, evidence: Evidence, epsilon: Fraction, count: int) -> float:
        """P-value of "the target is more than ``epsilon``" at so many errors; 0 where none may be seen."""
        if count < 0:
            return 0.0
        return float(bound.p_values(full_losses(evidence, count), epsilon, target=self.name)[0])

    def allowed(
        self, *, bound: Bound, evidence: Evidence, epsilon: Fraction, level: Fraction, first: int = 0
    ) -> int:
        """Most observed errors, each costing B, with which a policy can be certified; -1 where none does.

        A forecast where more than their number matters: as if they came evenly along the draw, and as often
        among the ``first`` asked items, which taught the chain, as among the others.  Of ``evidence`` only
        the sizes are read; they are those of the others.
        """
        whole = epsilon * (evidence.pool_size + first)
        if not self.finite:
            return bound.largest_count(evidence, epsilon, float(level), target=self.name)
        if not first:
            return self._count(bound, evidence, whole, Fraction(0), level)
        low, high = -1, evidence.asked + 1
        while high - low > 1:
            middle = (low + high) // 2
            spent = Fraction(evidence.loss_bound) * (-(-middle * first // max(evidence.asked, 1)))
            left = (whole - spent) / evidence.pool_size
            seen = full_losses(evidence, middle)
            values = bound.p_values(seen, max(left, Fraction(0)), target=self.name, level=float(level))
            low, high = (middle, high) if left >= 0 and values[0] <= level else (low, middle)
        return low

    def _allowed(
        self, bound: Bound, evidence: Evidence, allowance: Fraction, spent: Floats, level: Fraction
    ) -> Floats:
        """Largest passing number of errors (J,) of policies that have ``spent`` (J,) of ``allowance``."""
        distinct, place = np.unique(spent, return_inverse=True)
        counts = [self._count(bound, evidence, allowance, Fraction(errors), level) for errors in distinct]
        return np.array(counts, dtype=np.float64)[place]

    def _count(
        self, bound: Bound, evidence: Evidence, allowance: Fraction, spent: Fraction, level: Fraction
    ) -> int:
        left = allowance - spent
        if left < 0:
            return -1
        return bound.largest_count(evidence, left / evidence.pool_size, float(level), target=self.name)

    def _rejected(
        self, bound: Bound, evidence: Evidence, allowance: Fraction, spent: Floats, level: Fraction
    ) -> Bools:
        """Whether "the mean loss exceeds what is left" is rejected, (J,).

        A bound that bets along the rows is asked block by block, only as far as the first failure.
        """
        size = len(evidence.total)
        left = (float(allowance) - spent) / evidence.pool_size
        exact = None if spent.any() else allowance / evidence.pool_size
        passes = np.zeros(size, dtype=np.bool_)
        start, width = 0, BLOCK if bound.sequential else size
        while start < size:
            stop = min(start + width, size)
            values = bound.p_values(
                part(evidence, start, stop),
                np.maximum(left[start:stop], 0.0) if exact is None else exact,
                target=self.name,
                level=float(level),
            )
            passes[start:stop] = (values <= float(level)) & (left[start:stop] >= 0)
            if prefix(passes[:stop]) < stop:
                break
            start, width = stop, 2 * width
        return passes

    def promises(self, guarantee: Guarantee) -> list[Message]:
        """What a certificate promises, in sentences for somebody who answers for the quality of the data."""
        return [
            self.claim(guarantee),
            say(NOT_COUNTED),
            *self.qualifications(guarantee),
            *spent_said(guarantee.alpha, guarantee.spent),
        ]

    def claim(self, guarantee: Guarantee) -> Message:
        """What is at most epsilon, and how often."""
        params = {
            "epsilon": plain(guarantee.epsilon),
            **odds_of(guarantee.alpha, guarantee.spent),
        }
        kind, of = "differ", ""
        if guarantee.binary:
            params["share"] = percent(guarantee.epsilon)
        if guarantee.loss != "zero_one" or not guarantee.binary:
            kind = "loss" if guarantee.binary else "mean"
            params["loss"] = guarantee.loss
        if (size := self.size_named(guarantee)) is not None:
            of, params["size"] = "_of", str(size)
        return Message(f"{self.name}.{kind}{of}", params)

    def size_named(self, guarantee: Guarantee) -> int | None:
        """The number of items that the claim names, if it names one."""
        return None

    def qualifications(self, guarantee: Guarantee) -> list[Message]:
        """What else belongs to it, in sentences."""
        return []


def counted(bound: Bound, evidence: Evidence) -> bool:
    """Whether the number of observed errors decides every test of ``bound``."""
    return evidence.binary and evidence.constant_p and bound.counts_only


def part(evidence: Evidence, start: int, stop: int) -> Evidence:
    """What is known about the policies ``start`` .. ``stop`` - 1."""
    here = slice(start, stop)
    rows = evidence.rows
    return replace(
        evidence,
        total=evidence.total[here],
        squares=evidence.squares[here],
        weighted=None if evidence.weighted is None else evidence.weighted[here],
        weighted_squares=None if evidence.weighted_squares is None else evidence.weighted_squares[here],
        rows=None if rows is None else lambda first, last: rows(start + first, start + last),
    )
