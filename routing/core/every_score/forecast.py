"""The cascade's path, without a label: from people alone towards the cheapest policies.

Everything is told in ranks, shares of the items in the order of one model's score: t1 and th of the first
model, t2 of the last.  The pilot says where the two models disagree; the price L of an error, in labels by
people, falls from policy to policy, and each policy is the cheapest for its price.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Floats
from routing.core.pilot_losses import isotonic

RANKS = 200
POLICIES = 201
"""Policies of a path, people alone included."""
PRICES = np.geomspace(30_000.0, 0.5, 400)
FLOOR = 1e-4
SHARED = 0.25
"""Part of the mean disagreement that is added to both models, times the squared rank: errors they share."""
START_FORECAST, START_PATH = 0.2, 0.25
"""Parts of the error budget up to which the first model may start alone."""

GRID: Floats = (np.arange(RANKS) + 0.5) / RANKS


@dataclass(frozen=True)
class PilotPair:
    """What the pilot says about a model and the last one; g items.

    Attributes
    ----------
    first, last : (g,)
        Mid-ranks of the two models' scores.
    u_first, u_last : (g,)
        The scores; the split of a disagreement looks at them.
    differs : (g,)
        y: the loss of the first model's answer if the last one's were true, in [0, 1].
    """

    first: Floats
    last: Floats
    u_first: Floats
    u_last: Floats
    differs: Floats


@dataclass(frozen=True)
class CascadePath:
    """Policies in ranks, each (J,), and what the pilot foretells of them.

    Attributes
    ----------
    t1, th, t2
    errors : (J,)
        F / N: forecast share of errors among all items.
    cost : (J,)
        Of the last model and of people per item, in labels by people.
    """

    t1: Floats
    th: Floats
    t2: Floats
    errors: Floats
    cost: Floats


@dataclass(frozen=True)
class CascadeForecast:
    """Predicted losses of a model and the last one, h1 and h2, along the ranks."""

    pair: PilotPair

    def first(self, ranks: Floats) -> Floats:
        """h1: isotonic(r_k -> y w) + mean(y) r^2 / 4 + 1e-4."""
        return self._predicted(self.pair.first, self.pair.differs * self._share, ranks)

    def last(self, ranks: Floats) -> Floats:
        """h2: isotonic(r_K -> y (1 - w)) + the same."""
        return self._predicted(self.pair.last, self.pair.differs * (1 - self._share), ranks)

    @property
    def _share(self) -> Floats:
        """w = U_k / (U_k + U_K): the first model's part of a disagreement; one half where both are sure."""
        total = self.pair.u_first + self.pair.u_last
        return np.where(total > 0, self.pair.u_first / np.where(total > 0, total, 1.0), 0.5)

    def _predicted(self, seen: Floats, part: Floats, ranks: Floats) -> Floats:
        shared = SHARED * self.pair.differs.mean() * ranks**2
        return np.asarray(isotonic(seen, part, ranks) + shared + FLOOR, dtype=np.float64)

    def path(self, rho: float) -> CascadePath:
        """The cheapest policy at each price of an error, evenly spread over what changes.

        V(r) = rho + the pilot's mean of min(L h2, 1) around r is what calling the last model costs at rank r
        of the first, with the errors that it leaves; people cost 1.
        """
        pair, h1, h2 = self.pair, self.first(GRID), self.last(GRID)
        paid = np.minimum(PRICES[:, None] * self.last(pair.last), 1.0)
        around = np.maximum.accumulate(rho + paid @ _kernel(pair.first), axis=1)
        t1 = _until(PRICES[:, None] * h1 > np.minimum(around, 1.0))
        th = np.maximum((around < 1).sum(axis=1) / RANKS, t1)
        t2 = (PRICES[:, None] * h2 <= 1).mean(axis=1)
        steps = np.maximum.accumulate(np.vstack([np.zeros(3), np.column_stack([t1, th, t2])]), axis=0)
        return self.foretold(rho, *_evenly(steps).T)

    def foretold(self, rho: float, t1: Floats, th: Floats, t2: Floats) -> CascadePath:
        """The policies with these ranks and what the pilot's items would bring under them."""
        pair = self.pair
        delivered = pair.first <= t1[:, None]
        called = ~delivered & (pair.first <= th[:, None])
        kept = called & (pair.last <= t2[:, None])
        errors = (delivered * self.first(pair.first) + kept * self.last(pair.last)).mean(axis=1)
        people = 1 - delivered.mean(axis=1) - kept.mean(axis=1)
        return CascadePath(t1, th, t2, errors, rho * called.mean(axis=1) + people)

    def start(self, path: CascadePath, budget: float) -> float:
        """x: up to which rank the first model starts alone, where the last one is dear.

        The smaller of the rank where the forecast of its errors, max(isotonic(r_k -> y), h1) + 1 / (2 g),
        sums up to .2 ``budget`` (a share of all items), and the t1 of the last policy with F <= .25 budget.
        """
        pair = self.pair
        worst = np.maximum(isotonic(pair.first, pair.differs, GRID), self.first(GRID))
        reached = np.cumsum(worst + 0.5 / len(pair.first)) / RANKS >= START_FORECAST * budget
        alone = float(_until(reached[None, :])[0])
        fitting = np.flatnonzero(path.errors <= START_PATH * budget)
        return min(alone, float(path.t1[fitting[-1]]) if len(fitting) else 0.0)

    def with_start(self, path: CascadePath, rho: float, x: float) -> CascadePath:
        """To t1 = x in steps of 1 / 200 without the last model, then on with at least x.

        Policies with th <= x are left out: they would call nothing, and take what the last step takes.
        """
        steps = np.append(np.arange(0, x, 1 / RANKS), x)
        on = path.th > x
        return self.foretold(
            rho,
            np.concatenate([steps, np.maximum(path.t1[on], x)]),
            np.concatenate([steps, path.th[on]]),
            np.concatenate([np.zeros(len(steps)), path.t2[on]]),
        )


def _kernel(seen: Floats) -> Floats:
    """Weights (g, 200) of the pilot's items around each rank: Gaussian, their sum 1 in each column."""
    width = max(0.03, 1 / max(4, min(20, len(seen) // 10)))
    distance = (GRID - seen[:, None]) / width
    # The nearest item has weight 1, so that no column vanishes where the pilot is thin.
    nearest = np.abs(distance).min(axis=0)
    weights = np.exp((nearest**2 - distance**2) / 2)
    return np.asarray(weights / weights.sum(axis=0), dtype=np.float64)


def _until(reached: np.ndarray) -> Floats:
    """Share (J,) of the ranks before the first that is ``reached`` (J, 200); 1 where none is."""
    return np.where(reached.any(axis=1), reached.argmax(axis=1), RANKS) / RANKS


def _evenly(steps: Floats) -> Floats:
    """201 policies (t1, th, t2) along ``steps`` (J, 3), evenly in the sum of max(|dt1|, |dt2|).

    Of several that differ in th alone the first is kept.
    """
    moved = np.append(0.0, np.abs(np.diff(steps[:, [0, 2]], axis=0)).max(axis=1))
    kept = np.append(True, moved[1:] > 0)
    along = np.cumsum(moved)[kept]
    at = np.linspace(0.0, along[-1], POLICIES)
    if len(along) < 2:
        return steps[:1]
    return np.column_stack([np.interp(at, along, column) for column in steps[kept].T])
