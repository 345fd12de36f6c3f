"""From what a manager types to a plan of the core, and what that plan would mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Project
from routing.core import outlook as core_outlook
from routing.core.chain import number_of_chains
from routing.core.correctness import EXPERTS, meaning_of_right
from routing.core.every_score.build import called_where_needed
from routing.core.plan import Plan
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.promise import expert_outlook, settled_outlook
from routing.core_language import message_in_words
from routing.models import Run, Source
from routing.models.runs import people_per_item
from routing.runs.budget import checked_budget
from routing.runs.build_plan import BuiltPlan, build_plan
from routing.runs.labelling_pace import LabellingTime, expert_time_of, labelling_time_of
from routing.runs.ledger import spent_before
from routing.runs.measurements import Measured, measured_for
from routing.runs.missing_answers import MissingAnswers, missing_answers
from routing.runs.plan_fields import PlanFields
from routing.runs.plan_options import loss_of
from routing.runs.plan_warnings import plan_warnings
from routing.runs.reference import ReferenceChoice, final_audit_in_words, final_plan_of
from routing.runs.roster import people_of
from routing.runs.score import ChosenScore, resolve_score
from routing.sources.backend_for import backend_for
from routing.sources.score_fields import by_price
from routing.sources.usability import SourcesUsability, usability_of_sources, where_unusable_go

NEARLY_ALL = Fraction(9, 10)
"""Of the pool; where people label so much of it, whatever the thresholds, the plan says so."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that can be carried out, with what was found out to say so."""

    wanted: PlanFields
    sources: Sequence[Source]
    measured: Measured
    built: BuiltPlan
    score: ChosenScore
    budget: Decimal | None


@dataclass(frozen=True)
class PlanOutlook:
    """What a plan would mean, before any label. Money is in the project's currency.

    Attributes
    ----------
    statistics : routing.core.outlook.Outlook
        Smallest number of labels, expected number, allowed errors, and a sentence that says so.
    pool_size : int
        N, the items that the run would cover.
    calibration_cost : Decimal
        People on the asked items, on average.
    model_cost, model_cost_at_least : Decimal
        Source 1 on the pool, the others on the pilot and the asked items; their bands come on top. The least
        leaves out calls on asked items that are made only where the tests need them.
    people_only : Decimal
        What it would cost to have people label everything.
    at_least, at_most : Decimal
        The whole run: the least that is spent before the result and on the items that no model can answer;
        and where nothing can be certified and people label the rest. What lies between depends on the
        thresholds.
    plan : routing.core.plan.Plan
    reference : routing.runs.reference.ReferenceChoice
    expert
        The plan with the reference `expert` around it; None with another one.
    people_per_item : Decimal
        How many people are asked about an item, on average.
    people_time, expert_time : routing.runs.labelling_pace.LabellingTime
        For a label by an annotator, and by the expert.
    looked : routing.sources.usability.SourcesUsability
        How many answers of each source can be used, as far as that is known.
    missing
        Of sources whose answers are sent in, the items of the run for which there is none.
    measured : routing.runs.measurements.Measured
        What the models answered before the plan was chosen, if they did.
    sources, score
        The models of the run in their order, and the score of the first one.
    alpha_spent : Decimal
        By earlier draws on these items (`ledger.spent_before`).
    warnings : sentences
    """

    statistics: core_outlook.Outlook
    pool_size: int
    pilot_size: int
    currency: str
    calibration_cost: Decimal
    model_cost: Decimal
    model_cost_at_least: Decimal
    people_only: Decimal
    at_most: Decimal
    plan: Plan
    reference: ReferenceChoice
    expert: ExpertPlan | None
    people_per_item: Decimal
    people_time: LabellingTime
    expert_time: LabellingTime
    looked: SourcesUsability
    missing: Sequence[MissingAnswers]
    measured: Measured
    sources: tuple[Source, ...]
    score: ChosenScore
    alpha_spent: Decimal
    warnings: tuple[str, ...]

    @property
    def labels_at_least(self) -> Decimal:
        """Items that people label whatever the thresholds, on average: those of the calibration, and of the
        others those for which no model has a usable answer.
        """
        return core_outlook.labels_at_least(self.plan, unanswered=self.looked.nobody)

    @property
    def people_at_least(self) -> int:
        """The same in whole items."""
        return int(self.labels_at_least)

    @property
    def nearly_all(self) -> str:
        """That nearly everything goes to people, in a sentence; "" where that is not known."""
        if self.people_at_least < NEARLY_ALL * self.pool_size:
            return ""
        return _(
            "Nearly everything would go to people: about %(people)s of %(items)s items, whatever the "
            "thresholds."
        ) % {"people": f"{self.people_at_least:,}", "items": f"{self.pool_size:,}"}

    @property
    def scored(self) -> bool:
        """Whether any answer of the first source has a usable score; where not, none of them can be kept."""
        return self.looked.scored

    @property
    def binary(self) -> bool:
        """Whether the loss counts errors."""
        return self.plan.loss_function().binary

    @property
    def sentence(self) -> str:
        """What the plan can promise, or why the first source gives it nothing to promise with."""
        if self.scored:
            return self.statistics.sentence
        return self._without_score

    @property
    def sentence_in_words(self) -> str:
        """The same in the language of the reader."""
        return message_in_words(self.statistics.said) if self.scored else self._without_score

    @property
    def beside(self) -> str:
        """What the sentence leaves open, in English."""
        kind = EXPERTS if self.reference.experts else self.reference.reference
        return meaning_of_right(certified=False, reference=kind)

    @property
    def final_audit(self) -> str:
        """What the final audit leaves to whom, in sentences; "" where none is planned."""
        final = final_plan_of(self.reference)
        return "" if self.expert is None or final is None else final_audit_in_words(self.expert, final)

    @property
    def expert_labels(self) -> tuple[int, int] | None:
        """The least and the most that the expert labels of the calibration set; None without an expert."""
        return None if self.expert is None else (self.expert.rechecked(self.labels), self.labels)

    @property
    def _without_score(self) -> str:
        return _(
            "No answer of the first source has a usable score, by which answers are routed: none "
            "of them can be kept. %(then)s Name a column that holds one, or put another source first."
        ) % {"then": where_unusable_go(first=True)}

    @property
    def labels(self) -> int:
        """Labels by people that the plan reckons with: m p, whole ones only, as in the sentence."""
        return int(self.plan.expected_labels)

    @property
    def for_the_test(self) -> int | None:
        """Labels that the test itself is made on, where the first ones teach the chain."""
        tested = self.statistics.expected_tested_labels
        return tested if tested < int(self.plan.expected_labels) else None

    @property
    def answers(self) -> int | None:
        """How many answers by people the calibration takes, on average; None where it is one per item."""
        if self.people_per_item == 1:
            return None
        return int(self.plan.expected_labels * self.people_per_item)

    @property
    def committed(self) -> Decimal:
        """What is spent before the thresholds are known, at most."""
        return self.calibration_cost + self.model_cost

    @property
    def at_least(self) -> Decimal:
        people = self.labels_at_least * self.plan.costs[-1]
        if self.expert is not None and self.expert_labels is not None:
            people += self.expert_labels[0] * self.expert.expert_cost
        return self.model_cost_at_least + people

    @property
    def called_where_needed(self) -> list[str]:
        """Names of the models that are asked about drawn items only where the tests need it."""
        return [self.sources[place].name for place in called_where_needed(self.plan)]


def check_plan(*, project: Project, budget: Decimal | None = None, **fields: Any) -> CheckedPlan:
    """Raises InputError, whose `where` names the field, for a plan (see `PlanFields`) that cannot be carried
    out.
    """
    wanted = PlanFields(**fields)
    sources = sources_of(project, leave_out=wanted.leave_out)
    measured = measured_for(project, target=wanted.target, sources=sources)
    if measured.usable and wanted.pilot_size is None:
        wanted = replace(wanted, pilot_size=measured.usable.size)
    built = build_plan(project=project, sources=sources, fields=wanted)
    people_of(project, wanted)  # who is to label can be wrong, too
    score = ChosenScore(*score_for(project, sources[0], wanted))
    return CheckedPlan(wanted, sources, measured, built, score, checked_budget(budget))


def outlook_of_plan(
    *, project: Project, budget: Decimal | None = None, seconds: int | None = None, **fields: Any
) -> PlanOutlook:
    """What a plan with these fields (see `PlanFields`) would mean, and whether its models are expected to
    stay within `budget`. `seconds` are what an annotator needs for a label; None for what was measured.

    Raises InputError, whose `where` names the field, for a plan that cannot be carried out.
    """
    checked = check_plan(project=project, budget=budget, **fields)
    wanted, sources, built = checked.wanted, checked.sources, checked.built
    plan, reference, score = built.plan, built.reference, checked.score
    looked = usability_of_sources(project, sources, score=score.name, score_params=score.params)
    statistics = _statistics(plan, reference, built.expert)
    first, *later, people = plan.costs
    several = Decimal(plan.pilot) + plan.expected_labels
    # The expert labels every asked item at most; and where nothing is certified, everything.
    dearest = people if built.expert is None else built.expert.expert_cost
    calibration = plan.expected_labels * (people if built.expert is None else people + dearest)
    models = plan.pool_size * first + several * sum(later, Decimal(0))
    people_time = labelling_time_of(project)
    if seconds is not None:
        people_time = replace(people_time, seconds=seconds)
    spent = spent_before(project, plan.target)
    maybe = plan.expected_labels * sum((plan.costs[place] for place in called_where_needed(plan)), Decimal(0))
    return PlanOutlook(
        statistics=statistics,
        pool_size=plan.pool_size,
        pilot_size=plan.pilot,
        currency=project.currency,
        calibration_cost=calibration,
        model_cost=models,
        model_cost_at_least=models - maybe,
        people_only=plan.pool_size * dearest,
        at_most=models + plan.pool_size * dearest + calibration - plan.expected_labels * dearest,
        plan=plan,
        reference=reference,
        expert=built.expert,
        people_per_item=people_per_item(reference.overlap, reference.overlap_share),
        people_time=people_time,
        expert_time=expert_time_of(project, experts=wanted.experts, people=people_time.seconds),
        looked=looked,
        missing=missing_answers(project, sources, target=wanted.target),
        measured=checked.measured,
        sources=tuple(sources),
        score=score,
        alpha_spent=spent,
        warnings=plan_warnings(
            project,
            plan,
            spent=spent,
            sources=sources,
            looked=looked,
            reference=reference,
            expert=built.expert,
            later_audit_share=built.later_audit_share,
            seconds=people_time.seconds,
            models=models,
            budget=checked.budget,
        ),
    )


def _statistics(plan: Plan, reference: ReferenceChoice, expert: ExpertPlan | None) -> core_outlook.Outlook:
    """In the words of the reference: who labels, and from whose label models may differ."""
    if expert is not None:
        return expert_outlook(expert)
    if reference.reference == Run.Reference.SETTLED:
        return settled_outlook(plan, chains=number_of_chains(plan))
    return core_outlook.outlook(plan, chains=number_of_chains(plan))


def sources_of(project: Project, *, leave_out: Sequence[str] = ()) -> list[Source]:
    """The models of the project but those of the names in `leave_out`, the cheapest first (`by_price`).

    Raises InputError where there is none, none is left, or a name is unknown.
    """
    sources = list(project.sources.order_by("position"))
    if not sources:
        raise InputError(_("The project has no model yet: add a source first."), where="sources")
    names = {source.name for source in sources}
    if unknown := sorted(set(leave_out) - names):
        raise InputError(
            _("There is no model %(name)r; there are %(names)s.")
            % {"name": unknown[0], "names": ", ".join(sorted(names))},
            where="leave_out",
        )
    if len(names) == len(set(leave_out)):
        raise InputError(_("Leave at least one model in the plan."), where="leave_out")
    return by_price([source for source in sources if source.name not in leave_out])


def score_for(project: Project, source: Source, fields: PlanFields) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the score of the first source that a run would freeze.

    Nothing asked for means the backend's own; what its answers lack for that is a warning and no refusal.
    Raises InputError, whose `where` names the field.
    """
    if fields.score or fields.score_params:
        loss = loss_of(project, fields.loss, fields.loss_params).computed_here
        return resolve_score(project, source, fields.score or None, fields.score_params, loss=loss)
    return backend_for(source).default_score, {}


def plan_of(run: Run) -> Plan:
    """The plan that a run stored."""
    costs = run.run_sources.order_by("position").values_list("cost_per_label", flat=True)
    return Plan(
        epsilon=run.epsilon.normalize(),
        alpha=run.alpha.normalize(),
        target=run.target,
        m=run.m,
        p=run.p.normalize(),
        p_min=None if run.p_min is None else run.p_min.normalize(),
        pool_size=run.pool_size,
        costs=(*costs, run.cost_per_item),
        bound=run.bound,
        rule=run.rule,
        loss=run.loss,
        loss_params=run.loss_params,
        pilot_size=run.pilot_items.count(),
        split_share=run.split_share.normalize(),
        data_set_size=run.whole_size,
        alpha_spent=None if run.alpha_spent is None else run.alpha_spent.normalize(),
    )
