"""Bounds that bet along the draw: tight for bounded losses, because they learn the variance as they go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import log
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats
from routing.core.bounds.base import Bound, Evidence, Risk, as_array, evenly, recommended
from routing.core.bounds.wealth import BettingPath
from routing.core.messages import Message, declare, gettext_noop, say

FETCHED = 1 << 20
"""Losses asked from `Evidence.rows` at a time: bounds the memory."""
WORKED = 1 << 16
"""Losses worked on at a time: they stay in the processor's cache, which is ten times as fast."""
PRECISION = 1e-10
"""Width of the bracket at which the search for an upper bound stops, as a part of the range."""


class Betting(Bound):
    """What both bets share; each says at which odds it plays and whether the pool is finite."""

    sequential: ClassVar[bool] = True
    counts_only: ClassVar[bool] = False
    hedges: ClassVar[int]
    """Hypotheses among which the capital is divided at the start: p = hedges / max C_t."""

    def p_values(self, evidence: Evidence, r: Risk, *, target: str, level: float = 0.05) -> Floats:
        """P-values (J,); the bets are tuned to ``level`` and valid at any.

        Raises
        ------
        ValueError
            ``evidence`` has no rows.
        """
        risk = as_array(r, len(evidence.total)) / self.scale(evidence)

        def value(path: BettingPath, chosen: slice) -> Floats:
            p = self.hedges * np.exp(-path.growth(risk[chosen]))
            return np.asarray(np.minimum(p, 1.0), dtype=np.float64)

        return self._along(evidence, value, target=target, level=level)

    def upper(self, evidence: Evidence, alpha: float, *, target: str) -> Floats:
        """Upper bounds (J,): the end that is rejected of a bracket around the root, narrower than 1e-10 B.

        The capital never falls in r, so there is one root.
        """
        from scipy.optimize import elementwise  # takes half a second, which a process seldom needs

        scale = self.scale(evidence)
        most = evidence.loss_bound / scale
        aim = log(self.hedges / alpha)

        def value(path: BettingPath, chosen: slice) -> Floats:
            everything = np.arange(len(path.losses))
            highest = np.full(len(everything), most)
            unbounded = path.growth(highest) < aim

            def excess(r: Floats, index: Floats) -> Floats:
                # Far from the root the capital says nothing about where it lies; keep the steps sane.
                growth = path.take(index.astype(np.int64)).growth(r)
                return np.asarray(np.minimum(growth, 2 * aim + 1) - aim, dtype=np.float64)

            bounded = everything[~unbounded]
            if len(bounded):
                found = elementwise.find_root(
                    excess,
                    (np.zeros(len(bounded)), highest[bounded]),
                    args=(bounded.astype(np.float64),),
                    tolerances={"xatol": PRECISION * most, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0},
                )
                ends, values = np.array(found.bracket), np.array(found.f_bracket)
                highest[bounded] = np.where(values >= 0, ends, np.inf).min(axis=0)
            return highest * scale

        return self._along(evidence, value, target=target, level=alpha)

    @abstractmethod
    def plays(self, *, target: str, level: float) -> tuple[float, bool]:
        """Logarithm of the capital that the bets aim at, and whether mu_t follows a finite pool."""

    @staticmethod
    @abstractmethod
    def scale(evidence: Evidence) -> float:
        """M: a target of r means rows of mean r / M."""

    def scaled(self, evidence: Evidence, rows: Floats) -> Floats:
        """The rows that are bet on, in [0, 1], from those of `Evidence.rows`."""
        return rows / self.scale(evidence)

    def _along(
        self, evidence: Evidence, value: Callable[[BettingPath, slice], Floats], *, target: str, level: float
    ) -> Floats:
        """``value`` (j,) of the paths of every few policies and their places, together (J,)."""
        rows_of = evidence.rows
        if rows_of is None:
            raise ValueError(
                f"the bound {self.name!r} bets along the losses in draw order, but `Evidence.rows` is missing"
            )
        policies = len(evidence.total)
        log_odds, finite = self.plays(target=target, level=level)
        steps = max(evidence.drawn, 1)
        fetched, worked = max(1, FETCHED // steps), max(1, WORKED // steps)
        result = np.empty(policies)
        for first in range(0, policies, fetched):
            rows = self.scaled(evidence, rows_of(first, min(first + fetched, policies)))
            for start in range(0, len(rows), worked):
                part = rows[start : start + worked]
                chosen = slice(first + start, first + start + len(part))
                path = BettingPath.of(part, log_odds=log_odds, pool_size=evidence.pool_size, finite=finite)
                result[chosen] = value(path, chosen)
        return result


class BettingUpper(Betting):
    """p = 1 / max_t C_t, the capital C_t = prod_j (1 - l~_j (x_j - mu_j)) after t losses in draw order.

    Constant p: the n asked rows, unweighted, scaled by B; a finite pool's mu_t is the mean of what is left.
    Varying p: all m rows Z l / p_i, scaled by B / p_min, and new items from the source only.
    """

    name: ClassVar[str] = "betting_upper"
    title: ClassVar[str] = gettext_noop("Betting bound")
    summary: ClassVar[str] = gettext_noop(
        "The usual choice where a label can be more or less wrong, as with a distance between numbers."
    )
    certifies: ClassVar[bool] = True
    hedges: ClassVar[int] = 1

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        if constant_p or target == "population":
            return None
        use = recommended(target=target, binary=binary, constant_p=constant_p)
        return say("bound.constant_p_for", bound=self.name, target=target, use=use)

    def plays(self, *, target: str, level: float) -> tuple[float, bool]:
        return log(1 / level), target != "population"

    @staticmethod
    def scale(evidence: Evidence) -> float:
        return evidence.loss_bound / (1.0 if evidence.constant_p else evidence.smallest_p)


class PaperBetting(Betting):
    """The paper's appendix on valid bounds: the upper end of its two-sided confidence set.

    Along all m rows W_i = Z_i l_i / p_i, scaled by B / p, with ln(2 / alpha) in the bets.  The capital is
    halved between "the mean is more than r" and "less than r"; only the first half speaks about the upper
    end, so p = 2 / max_t C_t.
    """

    name: ClassVar[str] = "betting"
    title: ClassVar[str] = gettext_noop("Two-sided betting bound of the paper")
    summary: ClassVar[str] = gettext_noop(
        "For reproducing the paper only; the one-sided betting bound needs fewer labels."
    )
    certifies: ClassVar[bool] = False
    hedges: ClassVar[int] = 2

    def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> Message | None:
        use = recommended(target=target, binary=binary, constant_p=constant_p)
        return say("bound.paper", bound=self.name, use=use)

    def plays(self, *, target: str, level: float) -> tuple[float, bool]:
        return log(2 / level), False

    @staticmethod
    def scale(evidence: Evidence) -> float:
        return evidence.loss_bound / evidence.smallest_p

    def scaled(self, evidence: Evidence, rows: Floats) -> Floats:
        """X_i = p W_i / B of all m rows: for a constant p, 0 where nobody was asked."""
        if not evidence.constant_p:
            return super().scaled(evidence, rows)
        places = evidence.places
        if places is None:
            places = evenly(evidence.asked, evidence.drawn)
        every = np.zeros((len(rows), evidence.drawn))
        every[:, places] = rows / evidence.loss_bound
        return every


SAYS = {
    "bound.constant_p_for": gettext_noop(
        "the bound '%(bound)s' needs one probability of asking for all items for the target '%(target)s'; "
        "use '%(use)s'"
    ),
    "bound.paper": gettext_noop(
        "the bound '%(bound)s' is there to reproduce the paper and never certifies; use '%(use)s'"
    ),
}
declare(SAYS)
