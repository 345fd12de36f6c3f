"""What a target is: a quantity to keep at or below epsilon, how a chain is tested for it, and its plain
words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence
from routing.core.exact import percent, plain
from routing.core.rules.fixed_sequence import Verdict, prefix


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
        if binary and constant_p:
            return "hypergeometric" if self.finite else "binomial"
        return "hoeffding_bentkus" if self.finite and not constant_p else "betting_upper"

    def judge(
        self, *, bound: Bound, evidence: Evidence, lower: Floats, epsilon: Fraction, level: Fraction
    ) -> Verdict:
        """Test a chain at ``level``.

        Parameters
        ----------
        evidence
            K+ of every policy (J,): an asked item that nobody could label counts B where a model labels it.
        lower : (J,)
            K- of every policy: such an item counts 0.
        """
        limit = float(level)
        if evidence.binary:
            allowed = bound.largest_count(evidence, epsilon, limit, target=self.name)
            passes = evidence.total <= allowed
            allowances = np.full(len(passes), float(allowed))
        else:
            passes = bound.p_values(evidence, epsilon, target=self.name) <= limit
            allowances = np.full(len(passes), np.nan)
        length = prefix(passes)
        limits = {"errors": int(allowed)} if evidence.binary else {}
        return Verdict(np.arange(len(passes)) < length, {"all": length}, allowances, limits=limits)

    def allowed(self, *, bound: Bound, evidence: Evidence, epsilon: Fraction, level: Fraction) -> int:
        """Largest number of observed errors with which a policy can be certified; -1 where none is."""
        return bound.largest_count(evidence, epsilon, float(level), target=self.name)

    @abstractmethod
    def sentence(self, epsilon: Decimal, alpha: Decimal) -> str:
        """What a certificate promises, in words for somebody who answers for the quality of the data."""

    @staticmethod
    def _odds(epsilon: Decimal, alpha: Decimal) -> str:
        return f"with probability at least {percent(1 - alpha)} over the random draw (alpha = {plain(alpha)})"
