"""All tuples of thresholds at occurring scores of the calibration set, without listing them all.

For fixed u_1 .. u_{S-2} the observed loss never falls as u_{S-1} rises, so the feasible last thresholds are
found by bisection: a problem of S - 2 dimensions instead of S - 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.calibration import ObservedLosses, cumulative
from routing.core.keys import V_MAX, Key, Thresholds, pack

TUPLES = 200_000
"""Largest number of tuples u_1 .. u_{S-2} that is walked; with more, fewer scores are looked at."""


@dataclass(frozen=True)
class ScoreGrid:
    """Scores at which thresholds may lie; place 0 is "nothing goes here".

    Attributes
    ----------
    scores : (g,)
        Distinct scores, rising; threshold place j > 0 is scores[j - 1].
    drawn : (g + 1,)
        Calibration items, asked or not, at or below each place.
    sums : (g + 1, S - 1)
        Observed loss of each model on the asked items at or below each place.
    """

    scores: Floats
    drawn: Ints
    sums: Floats

    def thresholds(self, places: Ints) -> Thresholds:
        """Keys of the threshold places (S - 1,): all items of a score go together, as in the paper."""
        return tuple(
            Key(float(self.scores[place - 1]), V_MAX) if place else None for place in places.tolist()
        )

    def coarse(self, count: int) -> Ints:
        """At most ``count`` places, the first and the last among them."""
        last = len(self.scores)
        return np.unique(np.linspace(0, last, min(count, last + 1)).round().astype(np.int64))

    def loss(self, places: Ints) -> Floats:
        """Observed loss (r,) of threshold places (r, S - 1)."""
        total = np.zeros(len(places))
        start = np.zeros(len(places), dtype=np.int64)
        for source in range(self.sums.shape[1]):
            stop = places[:, source]
            total += self.sums[stop, source] - self.sums[start, source]
            start = stop
        return total

    def cost(self, places: Ints, prices: Floats) -> Floats:
        """Mean routing cost per item (r,), the paper's C_hat: whoever labels is paid, nobody else."""
        edges = np.column_stack([np.zeros(len(places), np.int64), self.drawn[places]])
        edges = np.column_stack([edges, np.full(len(places), self.drawn[-1])])
        paid = (np.diff(edges, axis=1) * prices).sum(axis=1)
        return np.asarray(paid / max(int(self.drawn[-1]), 1), dtype=np.float64)


def score_grid(u: Floats, losses: ObservedLosses) -> ScoreGrid:
    """The grid of the calibration items with scores ``u`` (m,) and of the losses of those asked about."""
    scores = np.unique(u)
    limits = pack(scores, np.full(len(scores), V_MAX))
    drawn = np.searchsorted(np.sort(u), scores, side="right")
    asked = np.searchsorted(losses.keys, limits, side="right")
    sums = cumulative(losses.upper)[np.concatenate([[0], asked])]
    return ScoreGrid(scores, np.concatenate([[0], drawn]).astype(np.int64), sums)


def feasible_places(grid: ScoreGrid, most: int) -> Ints:
    """Threshold places (r, S - 1) with at most ``most`` observed errors: for each start, the largest last
    place.
    """
    models = grid.sums.shape[1]
    last = grid.sums[:, -1]
    if models == 1:
        return np.array([[int(np.searchsorted(last, most, side="right")) - 1]], dtype=np.int64)
    heads = _heads(grid, models - 1)
    ends = heads[:, -1]
    spent = grid.loss(np.column_stack([heads, ends]))  # the last model's band is empty
    furthest = np.searchsorted(last, most - spent + last[ends], side="right").astype(np.int64) - 1
    fits = spent <= most
    return np.column_stack([heads, furthest])[fits]


def _heads(grid: ScoreGrid, length: int) -> Ints:
    """Rising tuples (r, length) of places: all of them for one, else on as fine a grid as `TUPLES` allows."""
    if length == 1:
        return np.arange(len(grid.scores) + 1, dtype=np.int64)[:, None]
    count = 2
    while comb(count + length, length) <= TUPLES:
        count += 1
    places = grid.coarse(count)
    flat = np.fromiter(_flatten(combinations_with_replacement(places.tolist(), length)), dtype=np.int64)
    return flat.reshape(-1, length)


def _flatten(tuples: Iterator[tuple[int, ...]]) -> Iterator[int]:
    for entry in tuples:
        yield from entry
