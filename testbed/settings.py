"""A pool, and a setting that says how pools come about and what a run on them looks like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

from routing.core.bins import Bins
from routing.core.calibration import ObservedLosses, along, cumulative, sorted_losses
from routing.core.keys import V_MAX, Thresholds, count_at_or_below, pack, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.plan import Plan

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANGUAGE = (1000, 6000, 32768)
"""Tokens per label: a small model, a large one, people; the costs of the paper's language experiments."""
CLASSES = 10
MULTIPLIER = 0xD1342543DE82EF95 & V_MAX | 1
"""Of a pseudo-random generator: spreads the numbers of 53 bits that it multiplies."""


@dataclass(frozen=True)
class World:
    """A pool: scores and tie-breaks (N,), answers (0: right) and losses (N, S - 1).

    ``own`` are the models' own scores, where they have any; ``blank`` marks items that nobody can label.
    """

    u: Floats
    v: Ints
    answers: NDArray[Any]
    losses: Floats
    own: Floats | None = None
    blank: NDArray[np.bool_] | None = None

    def wrong(self, thresholds: Thresholds) -> float:
        """T(theta): wrong labels in the pool."""
        keys = pack(self.u, self.v)
        order = np.argsort(keys)
        counts = count_at_or_below(keys[order], pack_thresholds([thresholds]))
        return float(along(cumulative(self.losses[order]), counts)[0])

    @cached_property
    def ties(self) -> Ints:
        """Tie-breaks (N, K) of each model's score, from those of the first by odd multipliers."""
        odd = [pow(MULTIPLIER, k, V_MAX + 1) for k in range(self.losses.shape[1])]
        spread = self.v.astype(np.uint64)[:, None] * np.array(odd, dtype=np.uint64)
        return (spread & np.uint64(V_MAX)).astype(np.int64)

    def observe(self, asked: Ints, drawn: int) -> ObservedLosses:
        """What people find out on the items ``asked``, which come in the order of the draw."""
        upper, lower = self.observed(asked)
        return sorted_losses(self.u[asked], self.v[asked], upper, lower, drawn=drawn)

    def observed(self, asked: Ints) -> tuple[Floats, Floats]:
        """Losses (n, S - 1) of the items ``asked``, with 1 and with 0 where nobody can label."""
        losses = self.losses[asked]
        if self.blank is None:
            return losses, losses
        nobody = self.blank[asked, None]
        return np.where(nobody, 1.0, losses), np.where(nobody, 0.0, losses)

    def pilot(self, items: Ints) -> PilotData:
        """What the models say about ``items``."""
        own = None if self.own is None else self.own[items]
        return PilotData(self.u[items], self.v[items], self.answers[items].astype(str).astype(object), own)


@dataclass(frozen=True)
class Setting:
    """A synthetic world: U uniform, model k wrong with probability a polynomial in U.

    Attributes
    ----------
    rates : S - 1 tuples
        Coefficients of each model's error probability in powers of U.
    nested : bool
        The errors of a later model lie inside those of the one before it; else they are independent.
    decimals : int or None
        U is rounded to so many decimals.
    unlabelled : float
        Share of the items with a wrong answer that nobody can label.
    bar : float or None
        Points of net saving that a run may stay below the best chain in hindsight; None: reported only.
    held_out : bool
        Nothing was ever chosen by looking at this world; drawn only where it is asked for by name.
    """

    name: str
    rates: tuple[tuple[float, ...], ...]
    costs: tuple[int | str, ...] = LANGUAGE
    size: int = 3000
    m: int = 500
    p: str = "0.9"
    epsilon: str = "0.05"
    nested: bool = False
    decimals: int | None = None
    unlabelled: float = 0.0
    bar: float | None = None
    held_out: bool = False

    targets = ("dataset", "pool", "population")

    def plan(self, target: str, **changes: Any) -> Plan:
        return plan_of(
            self.size,
            self.m,
            **{"p": self.p, "epsilon": self.epsilon, "costs": self.costs, "target": target, **changes},
        )

    def draw(self, rng: np.random.Generator) -> World:
        """A fresh pool."""
        u = rng.random(self.size)
        probability = np.column_stack([polynomial.polyval(u, rate) for rate in self.rates])
        models = 1 if self.nested else len(self.rates)
        wrong = rng.random((self.size, models)) < probability
        answers = np.where(wrong, rng.integers(1, CLASSES, (self.size, models), dtype=np.int8), 0)
        blank = None
        if self.unlabelled:
            blank = wrong.any(axis=1) & (rng.random(self.size) < self.unlabelled)
        score = u if self.decimals is None else np.round(u, self.decimals)
        return World(score, rng.integers(0, V_MAX, self.size), answers, wrong.astype(np.float64), blank=blank)

    def risk(self, thresholds: Thresholds) -> float:
        """R(theta) in closed form: the integral of each model's error probability over its band."""
        half = 0.0 if self.decimals is None else 0.5 * 10.0**-self.decimals
        reach = [0.0, *(0.0 if t is None else min(t.u + half, 1.0) for t in thresholds)]
        parts = [self._below(k, reach[k + 1]) - self._below(k, reach[k]) for k in range(len(self.rates))]
        return float(sum(parts))

    def bin_losses(self, world: World, slices: Bins) -> Floats:
        """The true mean error probability of each model in each slice (S - 1, b)."""
        half = 0.0 if self.decimals is None else 0.5 * 10.0**-self.decimals
        ends = np.array([0.0, *(min(end.u + half, 1.0) for end in slices.ends)])
        middle = (ends[:-1] + ends[1:]) / 2
        width = np.diff(ends)
        losses = np.empty((len(self.rates), len(width)))
        for k, rate in enumerate(self.rates):
            mass = self._below(k, ends[1:]) - self._below(k, ends[:-1])
            losses[k] = np.where(
                width > 0, mass / np.where(width > 0, width, 1.0), polynomial.polyval(middle, rate)
            )
        return losses

    def _below(self, model: int, u: Any) -> Any:
        return polynomial.polyval(u, polynomial.polyint(self.rates[model]))


def plan_of(size: int, m: int, **changes: Any) -> Plan:
    """A plan at epsilon = alpha = 0.05, p = 0.9, the costs of the paper's language experiments."""
    settings: dict[str, Any] = {
        "epsilon": "0.05",
        "alpha": "0.05",
        "target": "dataset",
        "m": m,
        "p": "0.9",
        "pool_size": size,
        "costs": LANGUAGE,
    }
    return Plan(**{**settings, **changes})
