"""Betting against "the mean is more than r": how a capital grows along losses in the order of the draw.

At step t the share l~_t of the capital is staked on the loss x_t being below mu_t, the mean that the rest of
the items would have if the target were exactly r.  If the target is more than r, the capital C_t is a
non-negative supermartingale that starts at 1, and Ville's inequality gives P(max C_t >= c) <= 1 / c.

Waudby-Smith, I. and Ramdas, A. (2024), Estimating means of bounded random variables by betting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Bools, Floats, Ints

IMPOSSIBLE = 1e3
"""Logarithm of the capital where no pool has so high a target: its p-value, exp(-1000), is 0."""


@dataclass(frozen=True)
class BettingPath:
    """Losses of some policies along the draw, scaled to [0, 1], with all that does not depend on r.

    Attributes
    ----------
    losses : (J, n)
    bets : (J, n)
        lambda_t, from the losses before t only.
    before : (J, n) or None
        Sum of the losses before t, for a finite pool; None where mu_t is r.
    pool_size : int
        N, read for a finite pool only.
    """

    losses: Floats
    bets: Floats
    before: Floats | None
    pool_size: int

    @classmethod
    def of(cls, losses: Floats, *, log_odds: float, pool_size: int, finite: bool) -> BettingPath:
        """The path of ``losses`` (J, n); ``log_odds`` is the logarithm of the capital that is aimed at."""
        steps = losses.shape[1]
        ordinal = np.arange(2.0, steps + 2.0)  # t + 1
        sums = np.cumsum(losses, axis=1)
        deviations = losses - (0.5 + sums) / ordinal
        np.square(deviations, out=deviations)
        variance = np.cumsum(deviations, axis=1, out=deviations)
        variance += 0.25
        variance /= ordinal
        bets = np.empty_like(losses)
        bets[:, :1] = 0.25
        bets[:, 1:] = variance[:, :-1]
        np.sqrt(2.0 * log_odds / max(steps, 1) / bets, out=bets)
        return cls(losses, bets, sums - losses if finite else None, pool_size)

    def take(self, index: Ints) -> BettingPath:
        """The paths of the policies ``index`` (j,)."""
        if len(index) == len(self.losses):
            return self
        before = None if self.before is None else self.before[index]
        return BettingPath(self.losses[index], self.bets[index], before, self.pool_size)

    def growth(self, r: Floats) -> Floats:
        """Logarithm of the largest capital, (J,), at the scaled risks ``r`` (J,); 0 where nothing is won.

        0 also where the losses already reach N r, `IMPOSSIBLE` where the rest of the pool cannot.
        """
        risk = r[:, None]
        if self.before is None:
            mean = risk
        else:
            left = self.pool_size - np.arange(self.losses.shape[1], dtype=np.float64)
            mean = (self.pool_size * risk - self.before) / left
        room = 1.0 - mean
        void = mean >= 1.0
        stake = np.minimum(self.bets, 0.5 / np.where(void, 1.0, room))
        stake *= self.losses - mean
        # A stake loses at most half of the capital, so the logarithm is finite; what is void is overruled.
        capital = np.log(np.maximum(1.0 - stake, 0.25))
        np.cumsum(capital, axis=1, out=capital)
        best = np.maximum(capital.max(axis=1, initial=0.0), 0.0)
        best = np.where(void.any(axis=1), IMPOSSIBLE, best)
        return np.where(self._reached(r), 0.0, best)

    def _reached(self, r: Floats) -> Bools:
        """Whether the losses seen make "more than r" certain or leave nothing to bet on; (J,)."""
        if self.before is None:
            return np.asarray(r <= 0.0)
        return np.asarray(self.losses.sum(axis=1) >= self.pool_size * r)
