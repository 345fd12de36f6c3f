"""All tuples of thresholds at occurring scores of the calibration set, without listing them all.

What a tuple (u_1 .. u_{S-1}) observes and costs is a sum over the bands of the sources, so it splits into a
part of its *head* u_1 .. u_{S-2} and a part of its last threshold: head + last, both read off running sums.
`search` walks the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from routing.core.arrays import Floats, Ints, Keys
from routing.core.calibration import ObservedLosses, cumulative
from routing.core.keys import V_MAX, Key, Thresholds, pack, pack_threshold
from routing.core.plan import Plan


class RangeArgmin:
    """Positions of the least values of ``values`` (n,) in ranges; the last of equals.

    Level k of the table (sparse, n log n) holds the position for each range of length 2**k; two of them cover
    any range.
    """

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._levels = [np.arange(len(values), dtype=np.int64)]
        reach = 1
        while 2 * reach <= len(values):
            before = self._levels[-1]
            self._levels.append(self._better(before[:-reach], before[reach:]))
            reach *= 2

    def within(self, start: Ints, stop: Ints) -> Ints:
        """The position (r,) of the least value of start .. stop, both included, start <= stop."""
        level = np.frexp(stop - start + 1)[1] - 1
        result = np.empty(len(start), dtype=np.int64)
        for k in np.unique(level):
            here = level == k
            table = self._levels[k]
            result[here] = self._better(table[start[here]], table[stop[here] - 2**k + 1])
        return result

    def _better(self, first: Ints, second: Ints) -> Ints:
        return np.where(self._values[second] <= self._values[first], second, first)


TUPLES = 200_000
"""Largest number of heads u_1 .. u_{S-2} that is walked; with more, fewer scores are looked at."""


@dataclass(frozen=True)
class LeadingThresholds:
    """Rising tuples of places for all thresholds but the last.

    Attributes
    ----------
    places : (h, S - 2)
    ends : (h,)
        Where the band of the last model begins: the last place of the head.
    sums : (q, h)
        What to add to the last model's running sums at a place to get the sums of the whole tuple.
    cost : (h,)
        The same for `ScoreGrid.gain`: the summed cost of the tuple.
    """

    places: Ints
    ends: Ints
    sums: Floats
    cost: Floats


@dataclass(frozen=True)
class ScoreGrid:
    """Scores at which thresholds may lie; place 0 is "nothing goes here".

    Attributes
    ----------
    scores : (g,)
        Distinct scores, rising; threshold place j > 0 is scores[j - 1].
    drawn : (g + 1,)
        Calibration items, asked or not, at or below each place.
    paid : (g + 1, S)
        Cost of each source on the calibration items at or below each place.
    sums : (q, g + 1, S - 1)
        Running sums over the asked items at or below each place, by model: of the losses, of their squares
        and, where the probabilities of asking vary, of the losses divided by them and of those squares.
    """

    scores: Floats
    drawn: Ints
    paid: Floats
    sums: Floats

    @property
    def sources(self) -> int:
        return int(self.paid.shape[1])

    @property
    def last(self) -> Floats:
        """Running sums (q, g + 1) of the last model."""
        return np.asarray(self.sums[:, :, -1], dtype=np.float64)

    @cached_property
    def gain(self) -> Floats:
        """Summed cost (g + 1,) of sending the items up to each place to the last model instead of people."""
        return np.asarray(self.paid[:, -2] - self.paid[:, -1], dtype=np.float64)

    @cached_property
    def least(self) -> RangeArgmin:
        """Where `gain` is least between two places."""
        return RangeArgmin(self.gain)

    @cached_property
    def heads(self) -> LeadingThresholds:
        """All heads of S <= 3 sources; with more, those on as fine a grid as `TUPLES` allows."""
        length = self.sources - 2
        if length < 2:
            places = np.arange(len(self.scores) + 1 if length else 1, dtype=np.int64)[:, None][:, :length]
        else:
            places = _rising(self.coarse(_most_places(length, TUPLES)), length)
        ends = places[:, -1] if length else np.zeros(len(places), dtype=np.int64)
        tuples = np.column_stack([places, ends])  # the band of the last model is empty
        return LeadingThresholds(
            places=places,
            ends=ends,
            sums=self.totals(tuples) - self.last[:, ends],
            cost=self._summed_cost(tuples) - self.gain[ends],
        )

    def thresholds(self, places: Ints) -> Thresholds:
        """Keys of the threshold places (S - 1,): all items of a score go together, as in the paper."""
        return tuple(
            Key(float(self.scores[place - 1]), V_MAX) if place else None for place in places.tolist()
        )

    def keys(self, places: Ints) -> Keys:
        """The same for threshold places (r, S - 1) at once, as packed by `pack_thresholds`."""
        edges = np.append(pack_threshold(None), pack(self.scores, np.full(len(self.scores), V_MAX)))
        return np.asarray(edges[places], dtype=np.complex128)

    def coarse(self, count: int) -> Ints:
        """At most ``count`` places, the first and the last among them."""
        last = len(self.scores)
        return np.unique(np.linspace(0, last, min(count, last + 1)).round().astype(np.int64))

    def at(self, places: Ints) -> ScoreGrid:
        """The grid with fewer scores: rising ``places`` of this one, 0 among them."""
        return ScoreGrid(
            self.scores[places[1:] - 1], self.drawn[places], self.paid[places], self.sums[:, places]
        )

    def within(self, tuples: int) -> ScoreGrid:
        """The grid itself, or one with as many scores as make at most ``tuples`` tuples of thresholds."""
        count = _most_places(self.sources - 1, tuples)
        return self if count > len(self.scores) else self.at(self.coarse(count))

    def with_all_heads(self) -> ScoreGrid:
        """The grid itself, or one with as few scores that `heads` are all the tuples of its places."""
        length = self.sources - 2
        return self if length < 2 else self.at(self.coarse(_most_places(length, TUPLES)))

    def totals(self, places: Ints) -> Floats:
        """Sums (q, r) of threshold places (r, S - 1), in the order of `sums`."""
        total = np.zeros((len(self.sums), len(places)))
        start = np.zeros(len(places), dtype=np.int64)
        for source in range(self.sums.shape[2]):
            stop = places[:, source]
            total += self.sums[:, stop, source] - self.sums[:, start, source]
            start = stop
        return total

    def cost(self, places: Ints) -> Floats:
        """Mean routing cost per item (r,), the paper's C_hat: whoever labels is paid, nobody else."""
        return self._summed_cost(places) / max(int(self.drawn[-1]), 1)

    def _summed_cost(self, places: Ints) -> Floats:
        total = np.zeros(len(places))
        start = np.zeros(len(places), dtype=np.int64)
        for source in range(self.sources):
            stop = places[:, source] if source < places.shape[1] else np.full_like(start, len(self.drawn) - 1)
            total += self.paid[stop, source] - self.paid[start, source]
            start = stop
        return total


def score_grid(plan: Plan, u: Floats, losses: ObservedLosses, *, costs: Floats | None = None) -> ScoreGrid:
    """The grid of the calibration items with scores ``u`` (m,) and of the losses of those asked about.

    It depends on the plan's costs, and on whether its p varies, alone: plans that differ in epsilon may
    share one.

    Parameters
    ----------
    costs : (m, S), optional
        Cost of each source on each item of ``u``; the plan's costs per label without them.

    Raises
    ------
    ValueError
        Shapes do not fit, or costs cannot be used.
    """
    if costs is not None and costs.shape != (len(u), plan.sources):
        raise ValueError(
            f"costs of shape {costs.shape} came for {len(u)} calibration items and {plan.sources} sources; "
            "give one row per item of the draw, asked or not, and one column per source, people last"
        )
    if costs is not None and not (np.all(costs >= 0) and costs[:, -1].any()):
        raise ValueError("a cost is negative or missing, or people cost nothing: then nothing can be saved")
    scores = np.unique(u)
    order = np.argsort(u, kind="stable")
    drawn = np.concatenate([[0], np.searchsorted(u[order], scores, side="right")]).astype(np.int64)
    if costs is None:
        paid = drawn[:, None] * np.array([float(cost) for cost in plan.costs])
    else:
        paid = cumulative(costs[order])[drawn]
    limits = pack(scores, np.full(len(scores), V_MAX))
    asked = np.concatenate([[0], np.searchsorted(losses.keys, limits, side="right")])
    values = [losses.upper, losses.upper**2]
    if not plan.constant_p:
        if losses.weights is None:
            raise ValueError("the probabilities of asking vary: give each observed loss its weight 1 / p_i")
        weighted = losses.upper * losses.weights[:, None]
        values += [weighted, weighted**2]
    return ScoreGrid(scores, drawn, paid, np.stack([cumulative(value)[asked] for value in values]))


def _most_places(length: int, tuples: int) -> int:
    """Most places of which there are at most ``tuples`` rising tuples of ``length``; at least two."""
    low, high = 2, tuples
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if comb(middle + length - 1, length) <= tuples else (low, middle)
    return low


def _rising(places: Ints, length: int) -> Ints:
    """All rising tuples (r, length) of ``places``, in their order."""
    flat = np.fromiter(_flatten(combinations_with_replacement(places.tolist(), length)), dtype=np.int64)
    return flat.reshape(-1, length)


def _flatten(tuples: Iterator[tuple[int, ...]]) -> Iterator[int]:
    for entry in tuples:
        yield from entry
