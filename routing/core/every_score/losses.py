"""What people found out about the asked items, and what it says about the policies of a chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.bounds import Evidence
from routing.core.calibration import evidence_of_sums
from routing.core.every_score.chain import CELLS, ScoreChain, Sources, blocks
from routing.core.every_score.items import ScoredItems
from routing.core.plan import Plan


@dataclass(frozen=True)
class AskedItems:
    """The n asked items, in draw order.

    Attributes
    ----------
    items : ScoredItems of n
    upper, lower : (n, K)
        Loss of each model's own answer, with B and 0 where nobody could label; read where it is usable.
    drawn : int
        m.
    known : (n, K)
        Whether the model has been asked about the item; what it would say of the others is not read.
    places : (n,)
        Place of each item in the draw, 0 .. m - 1, rising.
    weights : (n,) or None
        1 / p_i; read only where the plan's p varies.
    """

    items: ScoredItems
    upper: Floats
    lower: Floats
    drawn: int
    known: Bools
    places: Ints
    weights: Floats | None = None

    @classmethod
    def of(
        cls,
        items: ScoredItems,
        upper: Floats,
        lower: Floats | None = None,
        *,
        drawn: int,
        known: Bools | None = None,
        places: Ints | None = None,
        weights: Floats | None = None,
    ) -> AskedItems:
        """All answers known, everything labelled and everything asked about, unless said otherwise."""
        return cls(
            items,
            upper,
            upper if lower is None else lower,
            drawn,
            np.ones(upper.shape, dtype=np.bool_) if known is None else known,
            np.arange(len(upper)) if places is None else places,
            weights,
        )

    @property
    def asked(self) -> int:
        """n."""
        return len(self.upper)

    def missing(self, chain: ScoreChain) -> dict[int, Ints]:
        """First policy (n,) of ``chain`` for which an unknown answer of each of its models is needed; J where
        none.  Unknown answers count as usable: whether another model has to stand in for one shows later.
        """
        first = {model: np.full(self.asked, chain.size, dtype=np.int64) for model in chain.models}
        incomplete = np.flatnonzero(~self.known[:, list(chain.models)].all(axis=1))
        for part in blocks(chain.size, len(incomplete)):
            rows = incomplete[part]
            items, unknown = self.items.rows(rows), ~self.known[rows]
            calls = chain.calls(replace(items, usable=items.usable | unknown))
            for model, needed in calls.items():
                open_ = unknown[:, model] & needed.any(axis=0)
                first[model][rows] = np.where(open_, needed.argmax(axis=0), chain.size)
        first[chain.models[0]][~self.known[:, chain.models[0]]] = min(1, chain.size)
        return first

    def called(self, chain: ScoreChain, reached: int) -> Bools:
        """The items (n, K) that the first ``reached`` policies of ``chain`` call each model on."""
        called = np.zeros(self.upper.shape, dtype=np.bool_)
        called[:, chain.models[0]] = True
        head = chain.head(reached)
        for part in blocks(reached, self.asked):
            for model, needed in head.calls(self.items.rows(part)).items():
                called[part, model] = needed.any(axis=0)
        return called

    def totals(self, chain: ScoreChain) -> tuple[Floats, Floats, Floats]:
        """K+, the sum of squares behind it, and K- of each policy; each (J,)."""
        upper, squares, lower = np.zeros(chain.size), np.zeros(chain.size), np.zeros(chain.size)
        for part in blocks(chain.size, self.asked):
            source = chain.delivers(self.items.rows(part))
            above, below = self._of(self.upper[part], source), self._of(self.lower[part], source)
            upper += above.sum(axis=1)
            squares += (above**2).sum(axis=1)
            lower += below.sum(axis=1)
        return upper, squares, lower

    def evidence(self, plan: Plan, chain: ScoreChain) -> tuple[Evidence, Floats]:
        """All that is observed about the policies of ``chain``, and their K-."""
        upper, squares, lower = self.totals(chain)
        evidence = evidence_of_sums(plan, upper, squares, asked=self.asked, drawn=self.drawn)
        if plan.constant_p:
            evidence = replace(
                evidence, rows=lambda start, stop: self._rows(chain, start, stop), places=self.places
            )
            return evidence, lower
        weighted, weighted_squares = self._weighted(chain)
        evidence = replace(
            evidence,
            weighted=weighted,
            weighted_squares=weighted_squares,
            p_min=Fraction(plan.p_min or 0),
            rows=lambda start, stop: self._weighted_rows(chain, start, stop),
        )
        return evidence, lower

    def _rows(self, chain: ScoreChain, start: int, stop: int) -> Floats:
        """Losses (stop - start, n) on the asked items, in draw order."""
        return self._of(self.upper, chain.delivers(self.items, slice(start, stop)))

    def _weighted_rows(self, chain: ScoreChain, start: int, stop: int) -> Floats:
        """Z l / p_i (stop - start, m) on all drawn items, in draw order."""
        if self.weights is None:
            raise ValueError("the probabilities of asking vary, so every asked item needs its 1 / p_i")
        rows = self._rows(chain, start, stop)
        losses = np.zeros((len(rows), self.drawn))
        losses[:, self.places] = rows * self.weights
        return losses

    def _weighted(self, chain: ScoreChain) -> tuple[Floats, Floats]:
        step = max(1, CELLS // max(self.drawn, 1))
        parts = [self._weighted_rows(chain, start, start + step) for start in range(0, chain.size, step)]
        sums = [(rows.sum(axis=1), (rows**2).sum(axis=1)) for rows in parts]
        return np.concatenate([one for one, _ in sums]), np.concatenate([two for _, two in sums])

    @staticmethod
    def _of(losses: Floats, source: Sources) -> Floats:
        """``losses`` (n, K) of whoever labels, 0 of people; (J, n)."""
        with_people = np.column_stack([losses, np.zeros(len(losses))])
        return np.asarray(with_people[np.arange(len(losses)), source], dtype=np.float64)
