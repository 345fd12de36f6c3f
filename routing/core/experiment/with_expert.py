"""The reference `expert` as a method of an experiment: people are a source that may err."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypedDict

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.experiment.measure import SLACK, Measured, Terms
from routing.core.experiment.split import Split
from routing.core.experiment.table import People, Table
from routing.core.keys import pack
from routing.core.plan import Plan, PlanError
from routing.core.reference.chain import ReferenceChains, build_reference_chains
from routing.core.reference.forecast import model_costs
from routing.core.reference.plan import ExpertPlan, validate_expert_plan
from routing.core.reference.select import select_with_expert
from routing.core.reference.sources import CHECKED, EXPERT, PERSON, AskedLabels, source_losses
from routing.core.rules import fixed_sequence

WITH_EXPERT = "with_expert"


@dataclass(frozen=True)
class ExpertDecision:
    """One policy, and what the expert has seen for it.

    Attributes
    ----------
    sources : (N,)
        Of each item: a model, K + PERSON, K + CHECKED or K + EXPERT.
    seen : (n,)
        Which of the asked items the expert labelled.
    """

    sources: Ints
    seen: Bools


def refusal_with_expert(table: Table, plan: Plan) -> str:
    """Why it cannot run on the table, in a sentence; '' if it can."""
    if table.people is None:
        return f"'{WITH_EXPERT}' needs a column human1 with what people say, and expert or y_true"
    if table.p is not None:
        return f"'{WITH_EXPERT}' asks about all drawn items with one probability"
    try:
        validate_expert_plan(_plan(table, plan))
    except PlanError as error:
        return str(error)
    return ""


def _plan(table: Table, plan: Plan) -> ExpertPlan:
    """The plan with half of the asked items rechecked, as runs have it by default."""
    cost = Decimal(f"{_people(table).expert_cost.mean():.12g}")
    return ExpertPlan(replace(plan, rule=fixed_sequence.RULE.name), cost)


def _people(table: Table) -> People:
    if table.people is None:
        raise ValueError("the table does not say what annotators would label")
    return table.people


def decide_with_expert(split: Split, plan: Plan) -> ExpertDecision:
    """What a run of ``plan`` would choose on this draw."""
    table, run = split.table, _plan(split.table, plan)
    u, asked = table.u[:, 0], split.asked_items
    # Over slices of the first score alone: a table's other scores would need one chain for each epsilon.
    pilot = split.pilot(plan.target, plan.pilot)
    pilot = pilot and replace(pilot, own_scores=None)
    # Such chains depend on no epsilon: one set serves all of a draw.
    chains: ReferenceChains = split.once(
        WITH_EXPERT,
        lambda: build_reference_chains(run, u=u, v=split.v, usable=table.usable[:, 0], pilot=pilot),
    )
    losses = _losses(table)
    labels = AskedLabels.of(
        pack(np.where(table.usable[asked, 0], u[asked], 1.0), split.v[asked]),
        rechecked=run.rechecked(len(asked)),
        models=losses["models"][asked],
        usable=losses["usable"][asked],
        person=losses["person"][asked],
        answered=losses["answered"][asked],
        looks=losses["looks"][asked],
        labelled=losses["labelled"][asked],
        alike=_alike(table)[asked],
        order=np.flatnonzero(split.asked),
    )
    chosen = select_with_expert(run, chains, labels, model_costs(run, chains.slices, pilot))
    keys = pack(np.where(table.usable[:, 0], u, 1.0), split.v)
    return ExpertDecision(chosen.sources(keys), labels.seen)


class _Losses(TypedDict):
    models: Floats
    usable: Bools
    person: Floats
    answered: Bools
    looks: Bools
    labelled: Bools


def _losses(table: Table) -> _Losses:
    """What `source_losses` wants to know of every item, all of whom somebody could label."""
    people, everybody = _people(table), np.ones(table.size, dtype=np.bool_)
    return {
        "models": people.models,
        "usable": table.usable,
        "person": people.loss,
        "answered": everybody,
        "looks": (table.loss[:, -1] > 0) | ~table.usable[:, -1],
        "labelled": everybody,
    }


def _alike(table: Table) -> Bools:
    """Whether annotator and all models say the same (N,)."""
    return np.asarray(((table.loss == 0) & table.usable).all(axis=1))


def measure_with_expert(split: Split, decision: ExpertDecision, terms: Terms) -> Measured:
    """The data set under ``decision``; savings are against annotators labelling everything, as elsewhere."""
    table, models = split.table, split.table.models
    people, sources, rows = _people(table), decision.sources, np.arange(table.size)
    asked, seen = split.asked_items, split.asked_items[decision.seen]
    inputs = _losses(table)
    loss = source_losses(**inputs)[0][rows, sources]
    loss[seen] = 0.0
    unseen = asked[~decision.seen]  # all say the same of these
    loss[unseen] = np.where(sources[unseen] == models + EXPERT, 0.0, people.loss[unseen])
    needed = np.zeros((table.size, models + 2), dtype=np.bool_)
    for nominal in range(models):
        for source in range(nominal, models):
            here = (sources == nominal) & (table.final[:, nominal] >= source)
            needed[:, source] |= here
        # Where no model has an answer the expert labels.
        needed[:, models + 1] |= (sources == nominal) & (table.final[:, nominal] == models)
    human = (sources == models + PERSON) | (sources == models + CHECKED)
    needed[:, models] = human
    needed[:, models - 1] |= sources == models + CHECKED
    needed[:, models + 1] |= (sources == models + EXPERT) | ((sources == models + CHECKED) & inputs["looks"])
    costs = np.column_stack([table.costs, people.expert_cost])
    routed = (needed * costs).sum(axis=1)
    outside = np.ones(table.size, dtype=np.bool_)
    outside[asked] = False
    needed[:, 0] = True
    needed[asked, : models + 1] = True
    needed[asked, models + 1] = sources[asked] == models + EXPERT
    needed[seen, models + 1] = True
    needed[split.pilot_items(terms.target, terms.pilot_size), :models] = True
    every = table.costs[:, -1]
    total = float(loss.sum())
    return Measured(
        error=total / table.size,
        test_error=float(loss[outside].mean()) if outside.any() else 0.0,
        violated=total > terms.epsilon * table.size + SLACK,
        routing_saving=1 - float(routed[outside].sum() / every[outside].sum()) if outside.any() else 0.0,
        net_saving=1 - float((needed * costs).sum()) / float(every.sum()),
        human_labels=int(needed[:, models:].sum()),
    )
