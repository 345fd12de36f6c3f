"""What a plan will probably save, from a pilot that nobody labelled, and which m and which models are best.

A rule says along which policies it would go, and what the pilot foretells of each (`ForecastPath`). Where
along the path the tests end depends on the draw: the number of errors that the asked items show is
hypergeometric, so that each end has its probability, and the plan an expected net saving. A forecast promises
nothing: what is certified rests on labels alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are read when they are used

from routing.core import outlook as core_outlook
from routing.core.arrays import Floats
from routing.core.chain import number_of_chains
from routing.core.forecast_paths import ForecastPath, paths_of
from routing.core.pilot import PilotData
from routing.core.plan import Plan

STEPS = 24
"""How many m are looked at."""
PLATEAU = 0.0025
"""Of the m whose expected saving is at most so far below the best, the smallest is proposed."""
WORTH = 0.01
"""By how much leaving a model out has to raise the expected saving before it is proposed."""
LIKELY = (0.1, 0.9)
ASTRAY = ((0.5, 0.25), (1.0, 0.5), (2.0, 0.25))
"""By which factors the errors may differ from the foretold ones, and with which weight: a pilot does not show
those that models share."""


@dataclass(frozen=True)
class Forecast:
    """What a plan will probably come to.

    Attributes
    ----------
    m, labels : int
        Items drawn, and labels by people for the calibration.
    net_saving : float
        Expected, against people labelling everything.
    low, high : float
        Four of five times it lies between these, over the draw and what the pilot cannot show (`ASTRAY`).
    net_cost : float
        Expected, of everything, in the currency of the plan.
    people : float
        Expected number of items that people label, those of the calibration included.
    certified : float
        Probability that any step beyond people alone is certified.
    """

    m: int
    labels: int
    net_saving: float
    low: float
    high: float
    net_cost: float
    people: float
    certified: float


@dataclass(frozen=True)
class Proposal:
    """The m that is expected to save most, and what half and twice as many would do.

    ``half`` and ``twice`` are None where they can certify nothing or there are not so many items.
    """

    best: Forecast
    half: Forecast | None
    twice: Forecast | None


def forecast(plan: Plan, paths: Sequence[ForecastPath]) -> Forecast:
    """What ``plan`` will probably save: along the path of most expected saving, where it has several.

    The paths' tests share alpha, so that of several one alone would do better than foretold.
    """
    return max((_along(plan, path) for path in paths), key=lambda found: found.net_saving)


def _along(plan: Plan, path: ForecastPath) -> Forecast:
    labels, size = int(plan.expected_labels), plan.pool_size
    tested, allowed = core_outlook.allowed_errors(plan, share=path.share)
    rest = size - labels
    wrong = np.maximum.accumulate(path.wrong) * size
    scenarios = [
        weight * _at_most(allowed, np.minimum(wrong * factor, size), tested / size)
        for factor, weight in ASTRAY
    ]
    passes = np.sum(scenarios, axis=0)
    passes[0] = 1.0  # people alone are never tested
    ends = passes - np.append(passes[1:], 0.0)
    net = np.minimum.accumulate(_net_costs(plan, path, labels))
    chosen = np.maximum.accumulate(np.where(net < np.append(np.inf, net[:-1]), np.arange(len(net)), 0))
    whole = size * float(plan.costs[-1])
    saving = 1 - net / whole
    expected = float(ends @ net)
    low, high = (_quantile(saving, ends, at) for at in LIKELY)
    return Forecast(
        m=plan.m,
        labels=labels,
        net_saving=1 - expected / whole,
        low=low,
        high=high,
        net_cost=expected,
        people=labels + rest * float(ends @ path.people[chosen]),
        certified=float(passes[1]) if len(passes) > 1 else 0.0,
    )


def _at_most(allowed: int, wrong: Floats, asked: float) -> Floats:
    """Probability (J,) that at most ``allowed`` of so many wrong items are among the asked ones, which are a
    share ``asked`` of all: binomial, as a hypergeometric number nearly is where few items are wrong.
    """
    if allowed < 0:
        return np.zeros(len(wrong))
    count = np.maximum(np.rint(wrong), allowed + 1)
    return np.where(wrong <= allowed, 1.0, scipy.special.bdtr(float(allowed), count.astype(np.int64), asked))


def _net_costs(plan: Plan, path: ForecastPath, labels: int) -> Floats:
    """Everything that a run pays that ends at each policy (J,), as in `routing.core.savings`."""
    first, *later, people = (float(cost) for cost in plan.costs)
    rest = plan.pool_size - labels
    outside = plan.pilot if plan.target == "population" else plan.pilot * rest / plan.pool_size
    return np.asarray(
        plan.pool_size * first
        + outside * sum(later)
        + labels * ((sum(later) if path.asking_cost is None else path.asking_cost) + people)
        + max(rest - outside, 0) * path.model_cost
        + rest * people * path.people,
        dtype=np.float64,
    )


def _quantile(values: Floats, weights: Floats, at: float) -> float:
    """Of values that grow along the path."""
    reached = np.searchsorted(np.cumsum(weights), at * weights.sum())
    return float(values[min(reached, len(values) - 1)])


def propose(plan: Plan, paths: Sequence[ForecastPath]) -> Proposal | None:
    """The m of most expected saving; None where no m can certify anything.

    Of nearly equal ones (`PLATEAU`) the smallest is taken: labels take people's time before anything is
    known. What is asked beside ``m`` stays as in ``plan``.
    """
    share = max(path.share for path in paths)

    def at(m: int) -> Forecast | None:
        changed = replace(plan, m=m)
        if not 1 <= m <= most_drawn(plan) or core_outlook.allowed_errors(changed, share=share)[1] < 0:
            return None
        return forecast(changed, paths)

    seen = [one for m in _candidates(plan) if (one := at(m)) is not None]
    if not seen:
        return None
    top = max(one.net_saving for one in seen)
    best = next(one for one in seen if one.net_saving >= top - PLATEAU)
    return Proposal(best, at(best.m // 2), at(2 * best.m))


@dataclass(frozen=True)
class Needless:
    """A model that does not pay: its place among those of the plan, and the expected savings, each at the m
    that is best, with all models and without it."""

    place: int
    now: float
    without: float


def worth_leaving_out(plan: Plan, pilot: PilotData, wrong: Floats) -> Needless | None:
    """The model without which ``plan`` is expected to save most more, by at least `WORTH`; None where each of
    them pays. What the pilot cost is spent and counts for neither.

    Parameters
    ----------
    pilot
        With ``own_scores``, of the first model too; a model without a score cannot be the first.
    """
    models = range(plan.sources - 1)
    if len(models) < 2 or pilot.own_scores is None:
        return None
    plan = replace(plan, pilot_size=0)
    now = _best_saving(plan, pilot, wrong, models)
    savings = {place: _best_saving(plan, pilot, wrong, [k for k in models if k != place]) for place in models}
    place = max(savings, key=lambda place: savings[place])
    if savings[place] <= now + WORTH or savings[place] <= 0:
        return None
    return Needless(place, now, savings[place])


def _best_saving(plan: Plan, pilot: PilotData, wrong: Floats, models: Sequence[int]) -> float:
    """Expected with these models alone; -inf where that cannot be."""
    kept = list(models)
    scores = np.empty((0, 0)) if pilot.own_scores is None else pilot.own_scores[:, kept]
    if np.isnan(scores[:, 0]).all():
        return -np.inf
    unusable = np.isnan(scores[:, 0])
    answers = pilot.answers[:, kept].copy()
    answers[unusable, 0] = None
    part = PilotData(
        np.where(unusable, 1.0, scores[:, 0]),
        pilot.v,
        answers,
        scores,
        None if pilot.costs is None else pilot.costs[:, kept],
    )
    few = replace(plan, costs=(*(plan.costs[k] for k in kept), plan.costs[-1]))
    found = propose(
        few,
        paths_of(few, part, np.where(unusable[:, None] & (np.arange(len(kept)) == 0), 0.0, wrong[:, kept])),
    )
    return found.best.net_saving if found else -np.inf


def most_drawn(plan: Plan) -> int:
    """Largest m: for the target population some items must be left over."""
    return plan.pool_size - (plan.pilot + 1 if plan.target == "population" else 0)


def _candidates(plan: Plan) -> list[int]:
    """Round numbers from the least that certifies to two thirds of the pool, ascending."""
    least = core_outlook.smallest_n(plan, chains=number_of_chains(plan)) / float(plan.p)
    most = max(2 * most_drawn(plan) / 3, least)
    spread = np.geomspace(max(least, 1), max(most, 1), STEPS)
    return sorted({min(_round(m), most_drawn(plan)) for m in spread})


def _round(m: float) -> int:
    """Up to two digits that count."""
    step = 10 ** max(0, len(str(int(m))) - 2)
    return int(-(-m // step) * step)
