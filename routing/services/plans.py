"""From what a manager types to a plan of the core, and what that plan would mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from django.db.models import Exists, OuterRef, QuerySet

from annotation.errors import InputError
from annotation.models import Item, Label, Project
from routing.backends import open_backend
from routing.core import plan as core_plan
from routing.core import planner
from routing.core.scores import SCORES
from routing.models import DrawItem, PilotItem, PoolItem, Run, Source
from routing.services.source_warnings import recorded_warnings

PLACES = 8


@dataclass(frozen=True)
class Outlook:
    """What a plan would mean, before any label. Money is in the project's currency.

    Attributes
    ----------
    statistics : routing.core.planner.Outlook
        Smallest number of labels, expected number, allowed errors, and a sentence that says so.
    pool_size : int
        N, the items that the run would cover.
    calibration_cost : Decimal
        People on the asked items, on average.
    model_cost : Decimal
        Source 1 on the pool, the others on the pilot and the asked items; their bands come on top.
    people_only : Decimal
        What it would cost to have people label everything.
    warnings : sentences
    """

    statistics: planner.Outlook
    pool_size: int
    pilot_size: int
    currency: str
    calibration_cost: Decimal
    model_cost: Decimal
    people_only: Decimal
    warnings: tuple[str, ...]

    @property
    def committed(self) -> Decimal:
        """What is spent before the thresholds are known."""
        return self.calibration_cost + self.model_cost


def outlook(
    *,
    project: Project,
    epsilon: Decimal,
    alpha: Decimal,
    target: str = "dataset",
    m: int,
    p: Decimal,
    pilot_size: int | None = None,
) -> Outlook:
    """Raises InputError, whose `where` names the field, for a plan that cannot be carried out."""
    sources = sources_of(project)
    plan = build_plan(
        project=project,
        sources=sources,
        pool_size=pool_of(project, target).count(),
        epsilon=epsilon,
        alpha=alpha,
        target=target,
        m=m,
        p=p,
        pilot_size=pilot_size,
    )
    statistics = planner.outlook(plan, chains=1 if plan.sources == 2 else 2)
    first, *later, people = plan.costs
    several = Decimal(plan.pilot) + plan.expected_labels
    return Outlook(
        statistics=statistics,
        pool_size=plan.pool_size,
        pilot_size=plan.pilot,
        currency=project.currency,
        calibration_cost=plan.expected_labels * people,
        model_cost=plan.pool_size * first + several * sum(later, Decimal(0)),
        people_only=plan.pool_size * people,
        warnings=(*core_plan.cost_warnings(plan), *recorded_warnings(project, sources)),
    )


def sources_of(project: Project) -> list[Source]:
    """The models of the project, cheapest place first. Raises InputError where there is none."""
    sources = list(project.sources.order_by("position"))
    if not sources:
        raise InputError("The project has no model yet: add a source first.", where="sources")
    return sources


def pool_of(project: Project, target: str) -> QuerySet[Item]:
    """The items that a run planned now would cover, in the order of import: those that nobody has labelled.

    For the target `population` also none that an earlier run drew, or its pilot used: a random sample of the
    source's items must not have been looked at before. And none of a pool whose rest people were given by
    thresholds: what they left is no random sample, but the items that the models find easy.
    """
    items = project.items.filter(~Exists(Label.objects.filter(item=OuterRef("pk"))))
    if target == Run.Target.POPULATION:
        items = items.filter(
            ~Exists(DrawItem.objects.filter(item=OuterRef("pk"))),
            ~Exists(PilotItem.objects.filter(item=OuterRef("pk"))),
            ~Exists(PoolItem.objects.filter(item=OuterRef("pk"), run__routed_batch__isnull=False)),
        )
    return items.order_by("position")


def build_plan(
    *,
    project: Project,
    sources: Sequence[Source],
    pool_size: int,
    epsilon: Decimal,
    alpha: Decimal,
    target: str,
    m: int,
    p: Decimal,
    pilot_size: int | None,
) -> core_plan.Plan:
    """A plan of the core that can be carried out. Raises InputError, whose `where` names the field."""
    for name, value in (("epsilon", epsilon), ("alpha", alpha), ("p", p)):
        _refuse_too_fine(name, value)
    if not pool_size:
        if target == Run.Target.POPULATION and project.items.exists():
            raise InputError(
                "Earlier runs have drawn, used or routed every item. For this target, import new items from "
                "the same source first.",
                where="target",
            )
        raise InputError("There is no item without a label: import data first.", where="m")
    try:
        plan = core_plan.Plan(
            epsilon=epsilon,
            alpha=alpha,
            target=target,
            m=m,
            p=p,
            pool_size=pool_size,
            costs=(*(source.cost_per_label for source in sources), project.human_cost),
            pilot_size=pilot_size,
        )
        core_plan.validate(plan)
    except core_plan.PlanError as error:
        raise InputError(f"{error}.", where=error.field) from None
    return plan


def score_name(source: Source, wanted: str | None) -> str:
    """The uncertainty score of the first source: the one asked for, else the backend's own."""
    name = wanted or open_backend(source.backend, source.params).default_score
    if name not in SCORES:
        raise InputError(
            f"There is no score {name!r}; choose one of {', '.join(SCORES.names())}.", where="score"
        )
    return name


def plan_of(run: Run) -> core_plan.Plan:
    """The plan that a run stored."""
    costs = run.run_sources.order_by("position").values_list("cost_per_label", flat=True)
    return core_plan.Plan(
        epsilon=run.epsilon.normalize(),
        alpha=run.alpha.normalize(),
        target=run.target,
        m=run.m,
        p=run.p.normalize(),
        pool_size=run.pool_size,
        costs=(*costs, run.human_cost),
        bound=run.bound,
        rule=run.rule,
        loss=run.loss,
        pilot_size=run.pilot_items.count(),
    )


def _refuse_too_fine(name: str, value: Decimal) -> None:
    try:
        number = Decimal(value)
        exponent = number.normalize().as_tuple().exponent
    except (InvalidOperation, TypeError, ValueError):
        raise InputError("Write a number such as 0.05.", where=name) from None
    if not isinstance(exponent, int):
        raise InputError("Write a number such as 0.05.", where=name)
    if -exponent > PLACES:
        raise InputError(f"Write at most {PLACES} places after the point.", where=name)
