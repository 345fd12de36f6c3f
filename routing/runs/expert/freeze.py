"""What a run with an expert fixes before the first label: chains, critical values, the recheck set."""

import json
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from routing.core.plan import Plan
from routing.core.reference.chain import ReferenceChains, build_reference_chains
from routing.core.reference.documents import frozen_document, read_frozen
from routing.core.reference.forecast import PeopleForecast, SourceCosts
from routing.core.reference.plan import ExpertPlan
from routing.models import Certificate, Draw, Run
from routing.runs.chain_inputs import ChainInputs
from routing.runs.reference import expert_plan_of

OTHER_VALUES = failures.register(
    "other_critical_values",
    gettext_noop(
        "The critical values of this run were fixed by another version of HyPAC, which computes them "
        "otherwise. Analyse the run with that version."
    ),
)
MOST_ERRORS = 0.5
"""Of people, as a forecast: beyond it the estimate is of something else."""


def frozen_chains(run: Run, plan: Plan, inputs: ChainInputs) -> dict[str, Any]:
    """As plain JSON."""
    expert = expert_plan_of(run, plan)
    chains = build_reference_chains(
        expert,
        u=inputs.u,
        v=inputs.v,
        usable=inputs.usable,
        pilot=inputs.pilot,
        people=estimate_before(run.project_id, run.number),
    )
    # A run that was drawn before there were commitments keeps its critical values here.
    drawn = Draw.objects.filter(run=run, critical__isnull=True).first()
    values = {} if drawn is None else _critical_values(expert, drawn.n)
    return {**frozen_document(expert, chains, pilot=inputs.pilot), **values}


def critical_values(run: Run, plan: Plan, asked: int) -> dict[str, Any] | None:
    """n_B and the critical values, which follow from the number of asked items; None without an expert."""
    return _critical_values(expert_plan_of(run, plan), asked) if run.by_expert else None


def read_chains(run: Run, expert: ExpertPlan) -> tuple[ReferenceChains, SourceCosts]:
    """The frozen chains, and what models were taken to cost.

    Raises JobFailedError where the critical values that follow from the plan now are not the frozen ones: the
    labels have been given since, and nothing that decides may change after them.
    """
    frozen = run.chains or {}
    now = _critical_values(expert, run.draw.n)
    # Runs from before there were commitments hold them beside their chains.
    then = run.draw.critical or frozen
    if {name: then.get(name) for name in now} != now:
        raise OTHER_VALUES.error()
    return read_frozen(frozen, expert.plan)


def _critical_values(expert: ExpertPlan, asked: int) -> dict[str, Any]:
    return {
        "rechecked": expert.rechecked(asked),
        "weight": expert.weight,
        "levels": asdict(expert.levels(asked)),
    }


def estimate_before(project: int, number: int | None = None) -> PeopleForecast | None:
    """What the newest run of a project found about its people, or the newest before run `number`; None where
    none did.
    """
    rows = Certificate.objects.filter(run__project=project, run__reference=Run.Reference.EXPERT)
    if number is not None:
        rows = rows.filter(run__number__lt=number)
    newest = rows.order_by("-run__number").values_list("document", flat=True).first()
    return None if newest is None else forecast_in(json.loads(newest))


def forecast_in(document: dict[str, Any]) -> PeopleForecast | None:
    """What a certificate says about people; None where that is nothing."""
    people = document["result"]["people"]
    error, found = people["estimate"], people["caught"] + people["shared"]
    if not error or not found:
        return None
    return PeopleForecast(error=min(error, MOST_ERRORS), shared=people["shared"] / found)
