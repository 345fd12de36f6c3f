"""The last model alone, in reserve beside a cascade: called on all asked items only where that pays.

Where the last model is dear, a chain of it alone costs its price on every asked item.  But where the first
model is useless, no cascade saves anything, and no pilot without labels can tell which of two models that
disagree is the wrong one.  The labels can.  So a small share of alpha is kept for this chain whatever
happens; once the other chains are tested, the asked items that the last model was called on say how often it
errs along its own score, and the chain is tested if that lets expect a saving.  Whether it is tested may
depend on anything: its share is spent either way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Bools
from routing.core.every_score.chain import ScoreChain
from routing.core.every_score.losses import AskedItems
from routing.core.pilot_losses import isotonic
from routing.core.plan import Plan

SAMPLE = 60
"""Answers of the last model that are looked at, at least."""
MARGIN = 0.02
"""Saving beyond the price of the calls that has to be in sight, as a part of what people alone would cost."""


@dataclass(frozen=True)
class Reserve:
    """The question whether the chain is worth its calls.

    Attributes
    ----------
    plan : Plan
    chain : ScoreChain
    most : float
        Errors that its policies may show, less what chance may add.
    least : float
        Cost per item, of later models and people, of the best policy that is certified without it.
    """

    plan: Plan
    chain: ScoreChain
    most: float
    least: float

    @property
    def _people(self) -> float:
        return float(self.plan.costs[-1])

    @property
    def _price(self) -> float:
        return float(self.plan.costs[self.chain.models[0]])

    def sample(self, asked: AskedItems, called: Bools) -> Bools:
        """The items (n,) to call the model on first, beside those that it was ``called`` on: none where no
        outcome would be worth it, else those that are missing to 60, the first in draw order.
        """
        more = np.zeros_like(called)
        if self._saves(asked, called, self._price):
            more[np.flatnonzero(~called)[: max(SAMPLE - np.count_nonzero(called), 0)]] = True
        return more

    def pays(self, asked: AskedItems, called: Bools) -> bool:
        """Whether the labels of the items that the model was ``called`` on (n,) let expect that it does.

        Its errors are regressed on the place of its score among the chain's quantiles (isotonic); the
        furthest policy whose forecast errors fit is what the chain is expected to certify.
        """
        if not called.any() or self.most <= 0:
            return False
        model, steps = self.chain.models[0], self.chain.size - 1
        place = np.searchsorted(self.chain.thresholds[:, 0], asked.items.keys[called, model])
        loss = np.where(asked.items.usable[called, model], asked.upper[called, model], 0.0)
        grid = np.arange(1, steps + 1, dtype=np.float64)
        errors = np.cumsum(isotonic(place.astype(np.float64), loss, grid)) / steps
        furthest = np.count_nonzero(errors * asked.asked <= self.most) / steps
        return self._saves(asked, called, self._price + (1 - furthest) * self._people)

    def _saves(self, asked: AskedItems, called: Bools, cost: float) -> bool:
        """Whether a policy of this cost per item would save more than the calls and the margin."""
        rest = self.plan.pool_size - asked.asked
        calls = self._price * (asked.asked - np.count_nonzero(called))
        margin = MARGIN * self.plan.pool_size * self._people
        return bool((self.least - cost) * rest - calls > margin)
