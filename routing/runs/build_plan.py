"""From the fields of a plan to a plan of the core that can be carried out on the items of this moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Project
from routing.core.choices import default_rule
from routing.core.plan import Plan, PlanError, validate
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.settled import settled_fault
from routing.core.rules import fixed_sequence
from routing.core_language import refusal_in_words
from routing.models import Run, Source
from routing.runs.later.plan import later_audit_share_of
from routing.runs.plan_fields import (
    PlanFields,
    SamplingProbabilities,
    refuse_too_fine,
    refuse_unknown_names,
    sampling_probabilities,
    share_of,
)
from routing.runs.plan_options import later_scores, loss_of
from routing.runs.pool import data_set_size, nothing_to_plan_for, pool_of, size_of_pool
from routing.runs.reference import ReferenceChoice, checked_expert_plan, reference_of


@dataclass(frozen=True)
class BuiltPlan:
    """A plan of the core, with whom people are asked with, and whose label is right; `expert` is the plan
    around it with the reference `expert`, and None with another. `later_audit_share` is None but for the
    target `population`.
    """

    plan: Plan
    sampling: SamplingProbabilities
    reference: ReferenceChoice
    expert: ExpertPlan | None
    later_audit_share: Decimal | None


def build_plan(*, project: Project, sources: Sequence[Source], fields: PlanFields) -> BuiltPlan:
    """A plan of the core that can be carried out on the pool of this moment.

    Raises InputError, whose `where` names the field.
    """
    reference = reference_of(project, fields)
    for name in ("epsilon", "alpha"):
        refuse_too_fine(name, getattr(fields, name))
    split_share = share_of(fields)
    items = pool_of(project, fields.target)
    pool_size = size_of_pool(project, fields.target)
    if not pool_size:
        raise nothing_to_plan_for(project)
    refuse_unknown_names(fields)
    loss = loss_of(project, fields.loss, fields.loss_params)
    sampling = sampling_probabilities(fields, items)
    later_audit_share = later_audit_share_of(fields, loss.function)
    try:
        plan = Plan(
            epsilon=fields.epsilon,
            alpha=fields.alpha,
            target=fields.target,
            m=fields.m,
            p=sampling.p,
            p_min=sampling.p_min,
            pool_size=pool_size,
            costs=(
                *(source.cost_per_label for source in sources),
                reference.cost_per_item,
            ),
            bound=fields.bound,
            rule=_rule(fields, sources, reference),
            loss=loss.name,
            loss_params=loss.params,
            pilot_size=fields.pilot_size,
            split_share=split_share,
            data_set_size=_with_what_people_labelled(project, fields, pool_size, reference),
        )
        validate(plan)
    except PlanError as error:
        where = "p_column" if error.field == "p_min" else error.field
        raise InputError(refusal_in_words(error), where=where) from None
    expert = checked_expert_plan(reference, plan) if reference.by_expert else None
    if reference.reference == Run.Reference.SETTLED and settled_fault(plan):
        raise InputError(
            _(
                "Two people and a third can be the reference where the promise is about the data set, and a "
                "label is the same as another or not: choose the target “dataset” and an exact loss."
            ),
            where="reference",
        )
    return BuiltPlan(plan, sampling, reference, expert, later_audit_share)


def _with_what_people_labelled(
    project: Project, fields: PlanFields, pool_size: int, reference: ReferenceChoice
) -> int | None:
    """What one person labelled before counts as right where one person does, and in no other promise."""
    if reference.reference != Run.Reference.PERSON:
        return None
    return data_set_size(project, target=fields.target, pool_size=pool_size)


def _rule(fields: PlanFields, sources: Sequence[Source], reference: ReferenceChoice) -> str:
    if reference.by_expert:
        return fixed_sequence.RULE.name
    return fields.rule or default_rule(later_scores=later_scores(sources))
