"""Whose label is right in a run: the part of a plan about that, from what a manager typed to the core."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Project
from routing.core.exact import plain
from routing.core.plan import Plan, PlanError
from routing.core.reference.audit import DEFAULT_SHARE, LARGEST
from routing.core.reference.plan import HALF, ExpertPlan, FinalPlan, validate_expert_plan
from routing.core.rules import fixed_sequence
from routing.core_language import refusal_in_words
from routing.models import Run
from routing.models.runs import cost_of_people
from routing.runs.plan_fields import PLACES, PlanFields, refuse_too_fine
from routing.runs.roster import experts_of, shares_of_experts
from routing.runs.suggestions import refuse_suggestions

Reference = Run.Reference
OF_THE_FINAL_AUDIT = ("final_sample", "final_models_error", "final_models_alpha", "final_people_alpha")
OF_EXPERTS = (
    *("expert", "expert_cost", "recheck_share", "audit_share", "accepted_error"),
    *OF_THE_FINAL_AUDIT,
)
"""Fields of a plan that say something with the reference `expert` alone."""
PRICE_OF_EXPERTS = 3
"""Labels by annotators that one by an expert is taken to cost where nothing is said."""
ACCEPTED_ERROR = Decimal("0.05")
MOST_DRAWN = 1_000_000
DEAREST, PLACES_OF_MONEY = 10**8, 6
"""What the database keeps of a price."""


@dataclass(frozen=True)
class ReferenceChoice:
    """The reference of a plan, as columns of `Run` hold it.

    `cost_per_item` is what people, and no expert, cost on an item that they label; `experts` are several who
    share the work, with the share of each. `suggestions` says whether people may see what a model answered
    once the items are routed.
    """

    reference: str
    overlap: int
    overlap_share: Decimal
    cost_per_item: Decimal
    expert_name: str = ""
    expert_cost: Decimal | None = None
    recheck_share: Decimal | None = None
    audit_share: Decimal | None = None
    accepted_error: Decimal | None = None
    final_sample: int | None = None
    final_models_error: Decimal | None = None
    final_models_alpha: Decimal | None = None
    final_people_alpha: Decimal | None = None
    experts: tuple[tuple[str, Fraction], ...] = ()
    suggestions: bool = False

    @property
    def columns(self) -> Mapping[str, Any]:
        beside = ("cost_per_item", "experts")
        return {name: value for name, value in vars(self).items() if name not in beside}

    @property
    def by_expert(self) -> bool:
        return self.reference == Reference.EXPERT

    def expert_plan(self, plan: Plan) -> ExpertPlan:
        """The core's plan with the reference `expert`."""
        if self.expert_cost is None or self.recheck_share is None:
            raise ValueError(f"the reference is {self.reference!r}, not an expert")
        return ExpertPlan(
            plan,
            self.expert_cost,
            self.recheck_share,
            expert=self.expert_name,
            final=final_plan_of(self),
            experts=self.experts,
        )


def reference_of(project: Project, fields: PlanFields) -> ReferenceChoice:
    """Raises InputError, whose `where` names the field."""
    if fields.reference not in Reference.values:
        raise InputError(
            _("There is no reference %(value)r; choose one of %(names)s.")
            % {"value": fields.reference[:40], "names": ", ".join(Reference.values)},
            where="reference",
        )
    refuse_suggestions(project, fields)
    if fields.reference == Reference.EXPERT:
        return _expert(project, fields)
    for name in OF_EXPERTS:
        if getattr(fields, name):
            raise InputError(
                _("Only with an expert as the reference: leave this empty, or choose that reference."),
                where=name,
            )
    if fields.reference == Reference.PERSON and fields.roster and project.overlap > 1:
        raise InputError(
            _(
                "By a roster one person labels each item, and this project asks several people: leave the "
                "roster empty, or change the project's settings."
            ),
            where="roster",
        )
    several = (
        (2, Decimal(1)) if fields.reference == Reference.SETTLED else (project.overlap, project.overlap_share)
    )
    cost = cost_of_people(fields.reference, project.human_cost, *several)
    return ReferenceChoice(fields.reference, *several, cost, suggestions=fields.suggestions)


def _expert(project: Project, fields: PlanFields) -> ReferenceChoice:
    if fields.rule and fields.rule != fixed_sequence.RULE.name:
        raise InputError(
            _("With an expert as the reference three chains are tested in order: leave the rule empty."),
            where="rule",
        )
    if not fields.experts:
        raise InputError(_("Choose who the expert is: an annotator of this project."), where="expert")
    shares = shares_of_experts(fields)
    choice = ReferenceChoice(
        Reference.EXPERT,
        overlap=1,
        overlap_share=Decimal(1),
        cost_per_item=project.human_cost,
        expert_name=", ".join(sorted(shares)),
        experts=tuple(sorted(shares.items())) if len(shares) > 1 else (),
        expert_cost=_given(_price(fields.expert_cost), PRICE_OF_EXPERTS * project.human_cost),
        recheck_share=_given(fields.recheck_share, HALF),
        audit_share=_given(fields.audit_share, Decimal(DEFAULT_SHARE)),
        accepted_error=_given(fields.accepted_error, ACCEPTED_ERROR),
        **final_audit_of(fields),
    )
    for name in ("recheck_share", "audit_share", "accepted_error"):
        refuse_too_fine(name, getattr(choice, name))
    if choice.audit_share is None or not 0 <= choice.audit_share <= 1:
        raise InputError(_("Write a share from 0 to 1; 0 means no audit."), where="audit_share")
    if choice.accepted_error is None or not 0 < choice.accepted_error < Decimal(str(LARGEST)):
        raise InputError(
            _("Write a share above 0 and below %(most)s.") % {"most": LARGEST}, where="accepted_error"
        )
    return choice


def final_audit_of(fields: PlanFields) -> dict[str, Any]:
    """The plan of the final audit, as columns of `Run` hold it: by default half of the errors are left to
    models, and half of alpha to the test of them.

    Raises InputError, whose `where` names the field.
    """
    if not fields.final_sample:
        for name in OF_THE_FINAL_AUDIT[1:]:
            if getattr(fields, name) is not None:
                raise InputError(
                    _("Say how many labels are drawn for the final audit, or leave this empty."), where=name
                )
        return {}
    if not 1 <= fields.final_sample <= MOST_DRAWN:
        raise InputError(
            _("Write a whole number from 1 to %(most)s.") % {"most": f"{MOST_DRAWN:,}"}, where="final_sample"
        )
    half = fields.alpha / 2
    chosen: dict[str, Decimal] = {
        "final_models_error": _given(fields.final_models_error, _rounded(fields.epsilon / 2)),
        "final_models_alpha": _given(fields.final_models_alpha, _rounded(half)),
        "final_people_alpha": _given(fields.final_people_alpha, _rounded(half)),
    }
    for name in OF_THE_FINAL_AUDIT[1:]:
        refuse_too_fine(name, chosen[name])
    if not 0 <= chosen["final_models_error"] <= fields.epsilon:
        raise InputError(
            _("Models may get wrong from none to epsilon of the items: the rest is left to people."),
            where="final_models_error",
        )
    for name in ("final_models_alpha", "final_people_alpha"):
        if not 0 < chosen[name] < fields.alpha:
            raise InputError(_("Write a number above 0 and below alpha."), where=name)
    if chosen["final_models_alpha"] + chosen["final_people_alpha"] > fields.alpha:
        raise InputError(
            _("How often the two tests may be missed comes to more than alpha together."),
            where="final_people_alpha",
        )
    return {"final_sample": fields.final_sample, **chosen}


def _rounded(value: Decimal) -> Decimal:
    """Down to what the database keeps."""
    return value.quantize(Decimal(1).scaleb(-PLACES), rounding=ROUND_FLOOR)


def final_plan_of(run: Run | ReferenceChoice) -> FinalPlan | None:
    """What is planned of a final audit; None where none is."""
    numbers = (run.final_models_error, run.final_models_alpha, run.final_people_alpha)
    models_error, models_alpha, people_alpha = numbers
    if run.final_sample is None or models_error is None or models_alpha is None or people_alpha is None:
        return None
    return FinalPlan(run.final_sample, models_error, models_alpha, people_alpha)


def final_audit_in_words(run: ExpertPlan, final: FinalPlan) -> str:
    """What a final audit would need, at the least: were every label a person's, as then most may be wrong."""
    audit, plan = final.audit(run.plan.pool_size), run.plan
    allowed = audit.allowed(
        size=plan.pool_size, sampled=min(final.sample, plan.pool_size), budget=plan.budget
    )
    told = {
        "sample": f"{final.sample:,}",
        "models": f"{audit.models_budget:,}",
        "people": f"{plan.budget - audit.models_budget:,}",
        "allowed": f"{max(allowed, 0):,}",
        "alpha": plain(final.alpha),
        "cost": plain(run.expert_cost * min(final.sample, plan.pool_size)),
    }
    words = _(
        "The final audit leaves %(models)s wrong items to models and %(people)s to people, asks the expert "
        "about up to %(sample)s labels more, at up to %(cost)s, and adds %(alpha)s to the accepted risk "
        "(alpha)."
    )
    if allowed < 0:
        least = audit.smallest_sample(size=plan.pool_size, budget=plan.budget)
        words += " " + _(
            "Where people label nearly everything, so few cannot certify anything: with %(least)s it could."
        ) % {"least": f"{least:,}"}
        return words % told
    return (words + " " + _("At least %(allowed)s of the drawn labels may turn out to be wrong.")) % told


def _price(value: Decimal | None) -> Decimal | None:
    """Raises InputError where the database would not keep it as it is."""
    if value is not None and (
        not value.is_finite() or value >= DEAREST or value != round(value, PLACES_OF_MONEY)
    ):
        raise InputError(
            _("Write a price below %(most)s with at most %(places)s places after the point.")
            % {"most": f"{DEAREST:,}", "places": PLACES_OF_MONEY},
            where="expert_cost",
        )
    return value


def _given(value: Decimal | None, default: Decimal) -> Decimal:
    return default if value is None else value


def checked_expert_plan(choice: ReferenceChoice, plan: Plan) -> ExpertPlan:
    """Raises InputError, whose `where` names the field, where the plan cannot be carried out."""
    try:
        run = choice.expert_plan(plan)
        validate_expert_plan(run)
    except PlanError as error:
        raise InputError(refusal_in_words(error), where=error.field) from None
    return run


def expert_plan_of(run: Run, plan: Plan) -> ExpertPlan:
    """The core's plan of a run with the reference `expert`, around its ordinary `plan`."""
    if run.expert_cost is None or run.recheck_share is None:
        raise ValueError(f"the reference of run {run.pk} is {run.reference!r}, not an expert")
    shares = experts_of(run).shares
    return ExpertPlan(
        plan,
        run.expert_cost,
        run.recheck_share.normalize(),
        expert=run.expert_name,
        final=final_plan_of(run),
        experts=shares if len(shares) > 1 else (),
    )
