"""From what a manager types to a plan of the core, and what that plan would mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import HypacError, InputError
from annotation.models import Membership, Project
from annotation.permissions import ROLES_BY_ACTION
from routing.core import outlook as core_outlook
from routing.core.chain import number_of_chains
from routing.core.choices import default_rule
from routing.core.correctness import MEANING
from routing.core.every_score.build import called_where_needed
from routing.core.exact import plain
from routing.core.plan import Plan, PlanError, cost_warnings, validate
from routing.core_language import in_words, refusal_in_words
from routing.models import Run, Source
from routing.models.runs import people_per_item, price_per_item
from routing.runs.budget import checked_budget
from routing.runs.measurements import Measured, measured_for
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
from routing.runs.score import ChosenScore, resolve_score
from routing.sources.backend_for import backend_for
from routing.sources.score_fields import has_own_score
from routing.sources.usability import NEARLY_ALL, SourcesUsability, usability_of_sources, where_unusable_go
from routing.sources.warnings import source_warnings


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
    people_per_item : Decimal
        How many people are asked about an item, on average.
    looked : routing.sources.usability.SourcesUsability
        How many answers of each source can be used, as far as that is known.
    measured : routing.runs.measurements.Measured
        What the models answered before the plan was chosen, if they did.
    sources, score
        The models of the run in their order, and the score of the first one.
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
    people_per_item: Decimal
    looked: SourcesUsability
    measured: Measured
    sources: tuple[Source, ...]
    score: ChosenScore
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
        return in_words(self.statistics.said) if self.scored else self._without_score

    @property
    def beside(self) -> str:
        """What the sentence leaves open, in English."""
        return MEANING

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
        return self.model_cost_at_least + self.labels_at_least * self.plan.costs[-1]

    @property
    def called_where_needed(self) -> list[str]:
        """Names of the models that are asked about drawn items only where the tests need it."""
        return [self.sources[place].name for place in called_where_needed(self.plan)]


def outlook_of_plan(*, project: Project, budget: Decimal | None = None, **fields: Any) -> PlanOutlook:
    """What a plan with these fields (see `PlanFields`) would mean, and whether its models are expected to
    stay within `budget`.

    Raises InputError, whose `where` names the field, for a plan that cannot be carried out.
    """
    wanted = PlanFields(**fields)
    sources = sources_of(project, leave_out=wanted.leave_out)
    measured = measured_for(project, target=wanted.target, sources=sources)
    if measured.usable and wanted.pilot_size is None:
        wanted = replace(wanted, pilot_size=measured.usable.size)
    plan, _ = build_plan(project=project, sources=sources, fields=wanted)
    score, score_params = score_for(project, sources[0], wanted)
    looked = usability_of_sources(project, sources, score=score, score_params=score_params)
    statistics = core_outlook.outlook(plan, chains=number_of_chains(plan))
    first, *later, people = plan.costs
    several = Decimal(plan.pilot) + plan.expected_labels
    calibration = plan.expected_labels * people
    models = plan.pool_size * first + several * sum(later, Decimal(0))
    maybe = plan.expected_labels * sum((plan.costs[place] for place in called_where_needed(plan)), Decimal(0))
    return PlanOutlook(
        statistics=statistics,
        pool_size=plan.pool_size,
        pilot_size=plan.pilot,
        currency=project.currency,
        calibration_cost=calibration,
        model_cost=models,
        model_cost_at_least=models - maybe,
        people_only=plan.pool_size * people,
        at_most=models + plan.pool_size * people,
        plan=plan,
        people_per_item=_people_per_item(project),
        looked=looked,
        measured=measured,
        sources=tuple(sources),
        score=ChosenScore(score, score_params),
        warnings=(
            *map(in_words, cost_warnings(plan)),
            *_sorted_by_price(sources),
            *source_warnings(project, sources, looked),
            *_too_few_people(project),
            *_beyond(checked_budget(budget), models, project.currency),
        ),
    )


def _people_per_item(project: Project) -> Decimal:
    return people_per_item(project.overlap, project.overlap_share)


def _too_few_people(project: Project) -> tuple[str, ...]:
    if project.overlap == 1:
        return ()
    members = Membership.objects.filter(
        project=project, user__is_active=True, is_active=True, role__in=ROLES_BY_ACTION["label"]
    ).count()
    if members >= project.overlap:
        return ()
    return (
        _(
            "%(wanted)s people are to label an item, and only %(members)s may label in this project: a "
            "manager will have to decide about every such item."
        )
        % {"wanted": project.overlap, "members": members},
    )


def _beyond(budget: Decimal | None, models: Decimal, currency: str) -> tuple[str, ...]:
    if budget is None or models <= budget:
        return ()
    return (
        _(
            "The models are expected to cost about %(models)s %(currency)s before the thresholds are "
            "known, more than the budget of %(budget)s %(currency)s: the run will stop there until "
            "the budget is raised."
        )
        % {"models": plain(models.quantize(Decimal("0.01"))), "currency": currency, "budget": plain(budget)},
    )


def sources_of(project: Project, *, leave_out: Sequence[str] = ()) -> list[Source]:
    """The models of the project but those of the names in `leave_out`, the cheapest first (`_by_price`).

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
    return _by_price([source for source in sources if source.name not in leave_out])


def _by_price(sources: list[Source]) -> list[Source]:
    """The cheapest first, of equal ones in their places: it is asked about every item. They stay as they are
    where the cheapest has no score by which its answers could be kept.
    """
    ordered = sorted(sources, key=lambda source: source.cost_per_label)
    try:
        return ordered if ordered == sources or has_own_score(ordered[0]) else sources
    except HypacError:
        return sources  # the outlook says what is wrong with the source


def _sorted_by_price(sources: Sequence[Source]) -> tuple[str, ...]:
    """That the models do not come in the order of their places, in a sentence."""
    if [source.position for source in sources] == sorted(source.position for source in sources):
        return ()
    names = ", ".join(source.name for source in sources)
    return (_("The models are taken in the order of their prices: %(names)s.") % {"names": names},)


def people_cost(project: Project) -> Decimal:
    """What people cost per item, on average."""
    return price_per_item(project.human_cost, project.overlap, project.overlap_share)


def build_plan(
    *, project: Project, sources: Sequence[Source], fields: PlanFields
) -> tuple[Plan, SamplingProbabilities]:
    """A plan of the core that can be carried out on the pool of this moment.

    Raises InputError, whose `where` names the field.
    """
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
                people_cost(project),
            ),
            bound=fields.bound,
            rule=fields.rule or default_rule(later_scores=later_scores(sources)),
            loss=loss.name,
            loss_params=loss.params,
            pilot_size=fields.pilot_size,
            split_share=split_share,
            data_set_size=data_set_size(project, target=fields.target, pool_size=pool_size),
        )
        validate(plan)
    except PlanError as error:
        where = "p_column" if error.field == "p_min" else error.field
        raise InputError(refusal_in_words(error), where=where) from None
    return plan, sampling


def score_for(project: Project, source: Source, fields: PlanFields) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the score of the first source that a run would freeze.

    Nothing asked for means the backend's own; what its answers lack for that is a warning and no refusal.
    Raises InputError, whose `where` names the field.
    """
    if fields.score or fields.score_params:
        loss = loss_of(project, fields.loss, fields.loss_params).function
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
    )
