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

    @property
    def models(self) -> int:
        """K."""
        return len(self.losses) - 3


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
    return Foretold(losses, model_costs(run, slices, pilot).with_people(run, looks).total)


@dataclass(frozen=True)
class SourceCosts:
    """Cost per item beyond the first model of some sources in each slice of the pool.

    Attributes
    ----------
    models, people : (sources, b)
        What is paid for later models, and for annotator and expert.
    """

    models: Floats
    people: Floats

    @property
    def total(self) -> Floats:
        return self.models + self.people

    def with_people(self, run: ExpertPlan, looks: Floats) -> SourceCosts:
        """Of all K + 3 sources, from those of the K models, where a share ``looks`` (b,) of what goes to
        `checked` needs the expert.
        """
        none, person, expert = np.zeros_like(looks), float(run.plan.costs[-1]), float(run.expert_cost)
        best = float(run.plan.costs[-2]) if run.plan.sources > 2 else 0.0
        return SourceCosts(
            np.vstack([self.models, none, none + best, none]),
            np.vstack([self.people, none + person, person + expert * looks, none + expert]),
        )


def model_costs(run: ExpertPlan, slices: Bins, pilot: PilotData | None) -> SourceCosts:
    """Of the K models, each with what follows where it has no usable answer; known before any label."""
    prices = np.array([float(cost) for cost in (*run.plan.costs[:-1], run.expert_cost)])
    costs = pass_on_costs(slices, prices, pilot)
    return SourceCosts(costs.models[:-1], costs.people[:-1])


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
