"""Which tuples of thresholds pass a test of their own: the feasible set of the paper's rules.

Three ways, by what the bound looks at.  All follow from one fact: for a fixed head u_1 .. u_{S-2} the
observed loss never falls as the last threshold rises.

* Errors counted, or the mean alone: the last thresholds that pass are those up to one place, found by
  bisection.  Nothing is assumed of the costs: the cheapest of them is looked up, whatever their shape.
* Anything else (the normal approximation with losses between 0 and B may fall as a loss is added): block by
  block of all tuples, the cheapest possible first, up to where the rest cannot be cheaper; left out are
  those whose observed mean is above epsilon already.
* Bounds that bet along the draw read every row for every tuple: block by block on fewer scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.bounds import Bound, Evidence
from routing.core.calibration import ObservedLosses
from routing.core.grid import ScoreGrid
from routing.core.plan import Plan

TESTED = 60_000_000
"""Most tuples that are tested block by block: all pairs of 10,000 scores."""
BET = 60
"""Most scores for a bound that bets along the draw, if that makes at most `BETS` tuples."""
BETS = 2_000
CELLS = 2**18
"""Tuples per block."""
BETTING_CELLS = 128
GUESSES = 10_000
"""Tuples of the first guess at the least cost."""
HALF = Decimal("0.5")
ROUNDING = 1e-9
"""By how much a sum of losses may miss its true value, as a share."""


@dataclass(frozen=True)
class Search:
    """The tuples of ``grid`` whose own bound on ``target`` is at most the plan's epsilon at its level alpha.

    The choices come as places (r, S - 1), r = 0 where no tuple passes.
    """

    plan: Plan
    losses: ObservedLosses
    bound: Bound
    target: str
    grid: ScoreGrid

    @classmethod
    def over(cls, plan: Plan, losses: ObservedLosses, bound: Bound, target: str, grid: ScoreGrid) -> Search:
        """The search on as many scores of ``grid`` as the bound has the time for."""
        search = cls(plan, losses, bound, target, grid)
        if bound.sequential:
            fewer = grid.within(BETS)
            return replace(search, grid=fewer.at(fewer.coarse(BET + 1)))
        if search._by_bisection:
            return search
        # With all heads on the grid: else the first guess might be a tuple that is never looked at.
        return replace(search, grid=grid.within(TESTED).with_all_heads())

    @property
    def scores(self) -> int:
        """Number of scores at which each threshold was looked for."""
        heads = self.grid.heads.places
        return len(np.unique(heads)) - 1 if heads.shape[1] else len(self.grid.scores)

    @property
    def _by_counting(self) -> bool:
        return self.bound.counts_only and self.plan.constant_p and self.plan.loss_function().binary

    @property
    def _by_bisection(self) -> bool:
        return self._by_counting or self.bound.mean_only

    def cheapest(self) -> Ints:
        """Tuples among which is the cheapest that passes."""
        heads, gain = self.grid.heads, self.grid.least
        if self._by_bisection:
            reach = self._reach
            some = np.flatnonzero(reach >= heads.ends)
            return np.column_stack([heads.places[some], gain.within(heads.ends[some], reach[some])])
        head, last = self._cheapest_by_blocks()
        return np.column_stack([heads.places[head], last])

    def furthest(self) -> Ints:
        """Tuples among which is the one that passes with the largest last threshold, then the largest before
        it, and so on.
        """
        heads = self.grid.heads
        if self._by_bisection:
            some = np.flatnonzero(self._reach >= heads.ends)
            return np.column_stack([heads.places[some], self._reach[some]])
        head, last = self._furthest_by_blocks()
        return np.column_stack([heads.places[head], last])

    def passes(self, head: Ints, last: Ints) -> Bools:
        """Whether the tuples of heads ``head`` (r,) and last places ``last`` (r,) pass."""
        heads = self.grid.heads
        if self.bound.sequential:
            places = np.column_stack([heads.places[head], last])
            evidence = self.losses.evidence_of(self.plan, self.grid.keys(places))
        else:
            evidence = self._evidence(heads.sums[:, head] + self.grid.last[:, last])
        alpha = float(self.plan.alpha)
        values = self.bound.p_values(evidence, self.plan.risk_limit, target=self.target, level=alpha)
        return np.asarray(values <= alpha, dtype=np.bool_)

    def _evidence(self, sums: Floats) -> Evidence:
        """Evidence of tuples with ``sums`` (q, r) as in the grid."""
        sums = np.maximum(sums, 0.0)  # a difference of running sums may miss zero by a rounding
        evidence = self.losses.evidence(self.plan, sums[0], sums[1])
        if self.plan.p_min is None:
            return evidence
        p_min = Fraction(self.plan.p_min)
        return replace(evidence, weighted=sums[2], weighted_squares=sums[3], p_min=p_min)

    @cached_property
    def _reach(self) -> Ints:
        """The largest last place (h,) with which each head passes; below its end where none does."""
        heads, last = self.grid.heads, self.grid.last
        if self._by_counting:
            most = self.bound.largest_count(
                self._evidence(np.zeros((2, 1))),
                self.plan.risk_limit,
                float(self.plan.alpha),
                target=self.target,
            )
            passing = np.searchsorted(last[0], most - heads.sums[0], side="right")
            return np.asarray(passing - 1, dtype=np.int64)
        low, high = heads.ends - 1, np.full(len(heads.ends), last.shape[1])
        while len(open_ := np.flatnonzero(high - low > 1)):
            middle = (low[open_] + high[open_]) // 2
            good = self.passes(open_, middle)
            low[open_] = np.where(good, middle, low[open_])
            high[open_] = np.where(good, high[open_], middle)
        return low

    @property
    def _cells(self) -> int:
        return BETTING_CELLS if self.bound.sequential else CELLS

    @cached_property
    def _limit(self) -> Ints:
        """The largest last place (h,) that may pass for each head; below its end where none may."""
        heads, last = self.grid.heads, self.grid.last
        if not self.bound.above_mean or self.plan.alpha > HALF:
            return np.full(len(heads.ends), last.shape[1] - 1)
        if self.plan.constant_p:
            row, share = 0, self.plan.exact_p
        else:
            row, share = 2, Fraction(1)
        most = float(self.plan.risk_limit * share * self.losses.drawn) * (1 + ROUNDING)
        within = np.searchsorted(last[row], most - heads.sums[row], side="right")
        return np.asarray(within - 1, dtype=np.int64)

    def _cheapest_by_blocks(self) -> tuple[Ints, Ints]:
        """Heads and last places of the cheapest tuples that pass."""
        heads, gain = self.grid.heads, self.grid.gain
        places = np.arange(len(gain))
        possible = np.flatnonzero(self._limit >= heads.ends)
        ends, limit = heads.ends[possible], self._limit[possible]
        least = heads.cost[possible] + gain[self.grid.least.within(ends, limit)]
        order = np.argsort(least, kind="stable")
        best = self._first_guess()
        found_heads, found_last = np.empty(0, np.int64), np.empty(0, np.int64)
        step = max(1, self._cells // len(gain))
        for start in range(0, len(order), step):
            block = order[start : start + step]
            if least[block[0]] > best:
                break
            cost = heads.cost[possible[block], None] + gain
            may = (places >= ends[block, None]) & (places <= limit[block, None]) & (cost <= best)
            row, last = np.nonzero(may)
            good = self.passes(possible[block[row]], last)
            if good.any():
                found_heads = np.concatenate([found_heads, possible[block[row[good]]]])
                found_last = np.concatenate([found_last, last[good]])
                paid = heads.cost[found_heads] + gain[found_last]
                best = float(paid.min())
                found_heads, found_last = found_heads[paid == best], found_last[paid == best]
        return found_heads, found_last

    def _first_guess(self) -> float:
        """Cost of the cheapest tuple that passes on a few scores: what need not be tested on all of them."""
        few = self.grid.within(GUESSES)
        if self.bound.sequential or len(few.scores) == len(self.grid.scores):
            return np.inf
        head, last = replace(self, grid=few)._cheapest_by_blocks()
        return float((few.heads.cost[head] + few.gain[last]).min(initial=np.inf))

    def _furthest_by_blocks(self) -> tuple[Ints, Ints]:
        """Heads and last places of the tuples that pass with the largest last place."""
        heads, limit = self.grid.heads, self._limit
        step = max(1, self._cells // len(heads.ends))
        for stop in range(int(limit.max()) + 1, 0, -step):
            columns = np.arange(max(stop - step, 0), stop)
            head, column = np.nonzero((heads.ends[:, None] <= columns) & (columns <= limit[:, None]))
            good = self.passes(head, columns[column])
            if good.any():
                last = columns[column[good]]
                largest = last == last.max()
                return head[good][largest], last[largest]
        return np.empty(0, np.int64), np.empty(0, np.int64)
