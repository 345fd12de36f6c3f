"""Small helpers that the tests of the core share; its worlds are those of testbed.known_truth."""

from __future__ import annotations

from collections.abc import Sequence

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.chain import Chain, Policy
from routing.core.keys import V_MAX, Key, Thresholds
from routing.core.plan import Plan
from testbed.known_truth import make_world, risk
from testbed.settings import World, plan_of

__all__ = ["World", "at", "calibration_of", "make_world", "plan_of", "policies", "risk"]


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
