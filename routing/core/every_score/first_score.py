"""The chain for a last model without a score: all thresholds on the first model's score."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.bins import Bins
from routing.core.chain import foretold_losses, greedy_chain
from routing.core.every_score.chain import FIRST_SCORE, ScoreChain
from routing.core.every_score.forecast import START_FORECAST, START_PATH
from routing.core.keys import pack_thresholds
from routing.core.pilot import PilotData
from routing.core.pilot_losses import disagreement, final_answers, isotonic, pass_on_costs
from routing.core.plan import Plan


def first_score_chain(plan: Plan, slices: Bins, pilot: PilotData | None, *, start: bool) -> ScoreChain:
    """The chain of `fixed_sequence`; with ``start`` the first model starts alone, up to a rank x."""
    prices = np.array([float(cost) for cost in plan.costs])
    name, losses = foretold_losses(slices, plan, pilot)
    chain = greedy_chain(name, slices, losses, pass_on_costs(slices, prices, pilot))
    ends = pack_thresholds([(None, *slices.ends)])[0]
    levels = np.searchsorted(ends, chain.thresholds).astype(np.int64)  # slices at or below each threshold
    if start and pilot is not None:
        x = min(
            _alone(plan, slices, pilot, losses),
            _up_to(levels, slices, losses, START_PATH * budget_of(plan)),
        )
        steps = np.repeat(np.arange(x + 1)[:, None], levels.shape[1], axis=1)
        levels = np.vstack([steps, np.maximum(levels[levels[:, -1] > x], x)])
    return ScoreChain(name, FIRST_SCORE, tuple(range(levels.shape[1])), ends[levels])


def budget_of(plan: Plan) -> float:
    """Largest total loss of the pool; E items where the loss counts them."""
    return plan.budget if plan.loss_function().binary else float(plan.risk_limit * plan.pool_size)


def _alone(plan: Plan, slices: Bins, pilot: PilotData, losses: Floats) -> int:
    """Slices before the forecast of the first model's errors sums up to .2 E."""
    loss, answers = plan.loss_function(), final_answers(pilot.answers)
    differs = disagreement(answers[:, 0], answers[:, -1], loss)
    worst = np.maximum(isotonic(slices.ranks(pilot.u), differs, slices.rho), losses[0])
    scale = plan.pool_size / int(slices.sizes.sum())
    summed = scale * np.cumsum(slices.sizes * (worst + loss.bound / (2 * len(pilot.u))))
    return int(np.count_nonzero(summed < START_FORECAST * budget_of(plan)))


def _up_to(levels: Ints, slices: Bins, losses: Floats, budget: float) -> int:
    """Slices of the first model in the last policy whose forecast loss is at most ``budget``."""
    sums = np.hstack([np.zeros((len(losses), 1)), np.cumsum(losses * slices.sizes, axis=1)])
    start, total = np.zeros(len(levels), dtype=np.int64), np.zeros(len(levels))
    for model in range(levels.shape[1]):
        total += sums[model, levels[:, model]] - sums[model, start]
        start = levels[:, model]
    fitting = np.flatnonzero(total <= budget)
    return int(levels[fitting[-1], 0]) if len(fitting) else 0
