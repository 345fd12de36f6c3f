"""What is foretold of each slice of the pool, without a label: losses against the expert, and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Floats
from routing.core.bins import Bins
from routing.core.pilot import PilotData
from routing.core.pilot_losses import (
    FLOOR,
    assumed,
    disagreement,
    final_answers,
    half_isotonic_half_logistic,
    pass_on_costs,
)
from routing.core.reference.plan import ExpertPlan

CHEAP_MODEL, BEST_MODEL = 0.8, 0.45
"""Parts of the disagreement between a model and the best one that each is charged with."""
AT_FIRST, BY_RANK = 0.6, 0.8
"""People's error grows by these along the ranks, its mean given."""


@dataclass(frozen=True)
class PeopleForecast:
    """What is assumed of people before a run: from an earlier run's estimates where there are any.

    Attributes
    ----------
    error : float
        Share of people's labels that differ from the expert's.
    shared : float
        Part of these on which the best model says the same.
    """

    error: float = 0.03
    shared: float = 0.25


@dataclass(frozen=True)
class Foretold:
    """Of each source in each slice, (K + 3, b): loss per item, and cost per item beyond the first model."""

    losses: Floats
    costs: Floats


def foretell(
    run: ExpertPlan, slices: Bins, pilot: PilotData | None, people: PeopleForecast | None = None
) -> Foretold:
    """What each source is expected to get wrong, by rank.

    D is half the isotonic, half the logistic regression of "model k and the best model differ" on the rank;
    model k is charged with .8 D, the best with .45 D of the model before it.  `person` is wrong on a share
    that grows from .6 to 1.4 of its mean; of it a part is shared with the best model, in the shape of that
    model's errors, which is what `checked` lets through.  Costs of `checked` count a second look wherever
    person or best model err.
    """
    people = people or PeopleForecast()
    models = _models(run, slices, pilot)
    person = people.error * (AT_FIRST + BY_RANK * slices.rho)
    best = models[-1]
    checked = np.minimum(people.shared * person.mean() * best / best.mean(), person)
    losses = np.vstack([models, np.maximum(person, FLOOR), np.maximum(checked, FLOOR), np.zeros_like(person)])
    looks = np.minimum(best + person, 1.0)
    return Foretold(losses, source_costs(run, slices, pilot, looks))


def source_costs(run: ExpertPlan, slices: Bins, pilot: PilotData | None, looks: Floats) -> Floats:
    """Cost per item of each source in each slice, (K + 3, b), where a share ``looks`` (b,) of what goes to
    `checked` needs the expert.
    """
    prices = np.array([float(cost) for cost in (*run.plan.costs[:-1], run.expert_cost)])
    costs = pass_on_costs(slices, prices, pilot)
    person, expert = float(run.plan.costs[-1]), prices[-1]
    total = costs.models + costs.people
    on_best = np.full(len(slices.rho), prices[-2] if len(prices) > 2 else 0.0)
    return np.vstack([total[:-1], np.full(len(looks), person), person + on_best + expert * looks, total[-1]])


def _models(run: ExpertPlan, slices: Bins, pilot: PilotData | None) -> Floats:
    """Losses of the models (K, b)."""
    models = run.plan.sources - 1
    if pilot is None or not len(pilot.u) or models == 1:
        return np.maximum(assumed(slices, models)[:-1], FLOOR)
    loss, rho = run.plan.loss_function(), slices.ranks(pilot.u)
    answers = final_answers(pilot.answers)
    losses = np.empty((models, len(slices.rho)))
    for k in range(models - 1):
        outcome = disagreement(answers[:, k], answers[:, -1], loss)
        fit = half_isotonic_half_logistic(rho, outcome, slices.rho, loss.bound)
        losses[k] = CHEAP_MODEL * fit
        losses[-1] = BEST_MODEL * fit
    return np.maximum(losses, FLOOR)
