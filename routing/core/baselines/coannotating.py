"""CoAnnotating as the paper restates it: no correction, no bound (paper, Appendix E, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.baselines.base import Labelled
from routing.core.calibration import cumulative
from routing.core.cascade import Decision, Stage
from routing.core.messages import Message, declare, gettext_noop, say

PLACES = 60
"""With three models or more, at most so many scores are tried for each threshold but the last."""


@dataclass(frozen=True)
class CoAnnotating:
    """The thresholds of least calibration cost among those whose observed mean loss is at most epsilon.

    For each u_1 among the calibration scores the largest u_2 is taken.  The mean is over the asked items,
    the only ones with a label, weighted by 1 / p_i.  Without a feasible pair people label everything.
    """

    name: str = "coannotating"
    bound: str = ""
    holds_level: bool = False
    own_sample: bool = False
    summary: ClassVar[Message] = say("baseline.coannotating")

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        return None

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        order = np.argsort(sample.u[:, 0], kind="stable")
        scores = sample.u[order, 0]
        last = np.flatnonzero(np.append(np.diff(scores) > 0, True)) + 1
        ends = np.concatenate([[0], last])
        weight = np.where(sample.asked, 1 / sample.p, 0.0)
        weighted = np.where(sample.asked[:, None], weight[:, None] * sample.loss, 0.0)
        loss = cumulative(weighted[order])[ends]
        cost = cumulative(sample.cost[order])[ends]
        places = _pairs(loss, epsilon * weight.sum() + 1e-9)
        models = tuple(range(sample.models))
        if not len(places):
            return Decision(models, tuple(Stage(k, 0, -np.inf) for k in models))
        people = cost[-1, -1] - cost[places[:, -1], -1]
        best = places[int(np.argmin(_total(cost, places) + people))]
        limits = [float(scores[ends[place] - 1]) if place else -np.inf for place in best]
        return Decision(models, tuple(Stage(k, 0, limits[k]) for k in models))


def _pairs(loss: Floats, most: float) -> Ints:
    """Rising places (r, K) with at most ``most`` observed loss in all: for each head, the largest last one.

    Place 0, "nothing goes here", is no score that occurs, so the algorithm does not try it.
    """
    size, models = loss.shape
    heads = _heads(size, models - 1)
    start = heads[:, -1] if models > 1 else np.zeros(1, np.int64)
    spent = _total(loss, heads) if models > 1 else np.zeros(1)
    # Losses are never negative, so the running sums of the last model never fall.
    final = loss[:, -1]
    end = np.searchsorted(final, most - spent + final[start], side="right") - 1
    fits = (spent <= most) & (end >= 1)
    return np.column_stack([heads, end])[fits].astype(np.int64)


def _heads(size: int, length: int) -> Ints:
    """Rising places (r, length) from 1 to size - 1."""
    if length == 0:
        return np.empty((1, 0), np.int64)
    if length == 1:
        return np.arange(1, size)[:, None]
    places = np.unique(np.linspace(1, size - 1, PLACES).round().astype(np.int64))
    return np.array(list(combinations_with_replacement(places.tolist(), length)), dtype=np.int64)


def _total(sums: Floats, places: Ints) -> Floats:
    """Sum (r,) over the bands that ``places`` (r, k) cut off, each from its own column of running sums."""
    total = np.zeros(len(places))
    start = np.zeros(len(places), np.int64)
    for k in range(places.shape[1]):
        total += sums[places[:, k], k] - sums[start, k]
        start = places[:, k]
    return total


SAYS = {
    "baseline.coannotating": gettext_noop(
        "The cheapest thresholds whose observed error is at most epsilon, without any bound."
    ),
}
declare(SAYS)
