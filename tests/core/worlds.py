"""Synthetic worlds with known errors, and small helpers that the tests of the core share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.core.calibration import (
    Calibration,
    CalibrationRow,
    ObservedLosses,
    along,
    cumulative,
    sorted_losses,
)
from routing.core.chain import Chain, Policy
from routing.core.keys import V_MAX, Key, Thresholds, count_at_or_below, pack, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.plan import Plan


@dataclass(frozen=True)
class World:
    """A pool drawn from a source: scores, tie-breaks, answers ('0' is true) and losses of each model."""

    u: NDArray[np.float64]
    v: NDArray[np.int64]
    answers: NDArray[np.object_]
    losses: NDArray[np.float64]

    def wrong(self, thresholds: Thresholds) -> float:
        """T(theta): wrong labels in the pool."""
        keys = pack(self.u, self.v)
        order = np.argsort(keys)
        counts = count_at_or_below(keys[order], pack_thresholds([thresholds]))
        return float(along(cumulative(self.losses[order]), counts)[0])

    def observe(self, asked: NDArray[np.int64], drawn: int) -> ObservedLosses:
        """What people find out on the items ``asked``."""
        return sorted_losses(
            self.u[asked], self.v[asked], self.losses[asked], self.losses[asked], drawn=drawn
        )

    def pilot(self, items: NDArray[np.int64]) -> PilotData:
        return PilotData.of(self.u[items], self.v[items], self.answers[items].tolist())


RATES = {"power": (0.4, 0.2), "nested": (0.4, 0.2), "ties": (0.4, 0.2)}


def make_world(name: str, size: int, rng: np.random.Generator) -> World:
    """U uniform, model k wrong with probability RATES[k] U^2; ten classes.

    power: independent errors.  nested: the errors of the second model lie inside those of the first.  ties:
    power with U rounded to one decimal.
    """
    u = rng.random(size)
    rates = np.array(RATES[name]) * u[:, None] ** 2
    draws = rng.random((size, 1)) if name == "nested" else rng.random((size, len(RATES[name])))
    losses = (draws < rates).astype(np.float64)
    wrong = rng.integers(1, 10, (size, 1 if name == "nested" else len(RATES[name])))
    answers = np.where(losses > 0, wrong, 0).astype(str).astype(object)
    return World(np.round(u, 1) if name == "ties" else u, rng.integers(0, V_MAX, size), answers, losses)


def risk(name: str, thresholds: Thresholds) -> float:
    """R(theta) in closed form: the integral of RATES[k] U^2 over the band of each source."""
    reach = [0.0 if t is None else min(t.u + 0.05, 1.0) if name == "ties" else t.u for t in thresholds]
    first, second = RATES[name]
    return (first * reach[0] ** 3 + second * (reach[1] ** 3 - reach[0] ** 3)) / 3


def plan_of(size: int, m: int, **changes: object) -> Plan:
    """A plan at epsilon = alpha = 0.05, p = 0.9, the costs of the paper's language experiments."""
    settings: dict[str, object] = {
        "epsilon": "0.05",
        "alpha": "0.05",
        "target": "dataset",
        "m": m,
        "p": "0.9",
        "pool_size": size,
        "costs": (1000, 6000, 32768),
    }
    return Plan(**{**settings, **changes})  # type: ignore[arg-type]


def policies(
    thresholds: Sequence[Thresholds], costs: Sequence[float] | None = None, name: str = "x"
) -> Chain:
    """A chain with given thresholds after people alone, each step a little cheaper unless costs are given."""
    people: Thresholds = (None,) * len(thresholds[0])
    every = [people, *thresholds]
    cost = list(costs) if costs is not None else [float(len(every) - j) for j in range(len(every))]
    return Chain(
        name, tuple(Policy(t, (0,) * len(people) + (1,), 0.0, c) for t, c in zip(every, cost, strict=True))
    )


def at(u: float) -> Key:
    """The threshold "score at most u"."""
    return Key(u, V_MAX)


def calibration_of(
    u: Sequence[float],
    labels: Sequence[str | None],
    answers: Sequence[Sequence[str | None]],
    *,
    plan: Plan,
    asked: Sequence[bool] | None = None,
) -> Calibration:
    """A calibration set of items at positions 0, 1, ... with distinct tie-breaks."""
    was_asked = [True] * len(u) if asked is None else list(asked)
    return Calibration.from_rows(
        CalibrationRow(
            item_id=f"i{index}",
            position=index,
            order=index,
            asked=was_asked[index],
            p=plan.p,
            u=float(u[index]),
            v=index,
            label=labels[index] if was_asked[index] else None,
            answers=tuple(answers[index]),
        )
        for index in range(len(u))
    )
