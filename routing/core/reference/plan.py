"""The plan of a run whose reference is an expert: what is fixed, beside an ordinary plan, before a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from routing.core.documents import DECIMAL, DocumentError
from routing.core.exact import NumberError, plain, to_decimal, to_fraction
from routing.core.messages import Message, declare, gettext_noop, say
from routing.core.plan import Plan, PlanError, validate
from routing.core.reference.audit import FinalAudit
from routing.core.reference.recheck import default_weight, effort, recheck_levels, rechecked
from routing.core.reference.roster import EXPERT, Roster, RosterError
from routing.core.rules import every_score
from routing.core.targets.dataset import Levels

MOST_SAMPLED = 10**8
CHAINS = 3
"""Chains that are tested, each at alpha divided by it."""
HALF = Decimal("0.5")
DIGITS = 28
LONGEST_NAME = 200
HEAVIEST = 10**6
"""Largest w."""
LARGEST_EFFORT = 5 * 10**10
"""Of `recheck.effort`: a minute or two on one core."""


@dataclass(frozen=True)
class FinalPlan:
    """What is fixed with the plan of the run.

    Attributes
    ----------
    sample : int
        n_F, how many labels are drawn; all, where there are no more.
    models_error : Decimal
        The share of all items that models may get wrong: E_M = floor(models_error N).
    models_alpha, people_alpha : Decimal
        alpha_1 and alpha_2.
    """

    sample: int
    models_error: Decimal
    models_alpha: Decimal
    people_alpha: Decimal

    def audit(self, pool_size: int) -> FinalAudit:
        models, people = to_fraction(self.models_alpha), to_fraction(self.people_alpha)
        return FinalAudit(int(to_fraction(self.models_error) * pool_size), models, people)

    @property
    def alpha(self) -> Decimal:
        """How often the certificate may be false."""
        return self.models_alpha + self.people_alpha

    @property
    def document(self) -> dict[str, Any]:
        return {
            "sample": self.sample,
            "models_error": plain(self.models_error),
            "models_alpha": plain(self.models_alpha),
            "people_alpha": plain(self.people_alpha),
        }


def read_final_plan(document: Mapping[str, Any]) -> FinalPlan:
    """The plan of a final audit, as its certificate has it. Raises DocumentError."""
    sample = document.get("sample")
    numbers = [document.get(name) for name in ("models_error", "models_alpha", "people_alpha")]
    if type(sample) is not int or not 1 <= sample <= MOST_SAMPLED:
        raise DocumentError("final audit: plan.sample is no whole number above 0")
    if not all(isinstance(one, str) and DECIMAL.fullmatch(one) for one in numbers):
        raise DocumentError("final audit: a number of its plan is no text of a decimal number")
    return FinalPlan(sample, *(Decimal(str(one)) for one in numbers))


@dataclass(frozen=True)
class ExpertPlan:
    """A plan with the reference `expert`.

    Attributes
    ----------
    plan : Plan
        Its costs are those of the models and, last, of one label by a person, c_h.
    expert_cost : Decimal
        c_e.
    recheck_share : Decimal
        r: of the asked items on which annotator and models agree, the expert labels those among the first
        r n.  1 where shared mistakes or slips of the expert are likely, or n is small.
    weight : int
        w; 0 means `default_weight`.
    expert : str
        Her name, as the certificate is to say it.
    final : FinalPlan or None
        Of the final audit; where there is one, a policy is chosen of which the calibration certifies the
        models' part, if there is any.
    experts : names and fractions
        Where several share the work, each with her share of it, in the order of the names: the reference is
        then the one whose item it is by `Roster`, for the duty `EXPERT`.  Empty where one does all.
    """

    plan: Plan
    expert_cost: Decimal
    recheck_share: Decimal = HALF
    weight: int = 0
    expert: str = "the expert"
    final: FinalPlan | None = None
    experts: tuple[tuple[str, Fraction], ...] = ()

    def __post_init__(self) -> None:
        for name in ("expert_cost", "recheck_share"):
            try:
                object.__setattr__(self, name, to_decimal(getattr(self, name)))
            except NumberError as error:
                raise PlanError(name, say("plan.field", field=name, error=error.said)) from error
        if not 0 < self.recheck_share <= 1:
            raise PlanError("recheck_share", say("expert.recheck_share", share=plain(self.recheck_share)))
        object.__setattr__(self, "experts", tuple(sorted(self.experts)))
        if not self.weight:
            object.__setattr__(self, "weight", default_weight(self.recheck_share))

    @property
    def names(self) -> tuple[str, ...]:
        """Of all experts."""
        return tuple(name for name, _ in self.experts) or (self.expert,)

    @property
    def who(self) -> str | Message:
        """All of them, to be filled into a sentence: "Eve", "Eve or Uma"."""
        *others, last = self.names
        return say("expert.one_of", names=", ".join(others), last=last) if others else last

    @property
    def all_rechecked(self) -> bool:
        """Whether the expert labels every asked item, r = 1."""
        return self.recheck_share == 1

    @property
    def level(self) -> Fraction:
        """Level of each chain."""
        return self.plan.exact_alpha / CHAINS

    def rechecked(self, asked: int) -> int:
        """n_B."""
        return rechecked(self.recheck_share, asked)

    def levels(self, asked: int, level: Fraction | None = None) -> Levels:
        """The numbers that decide along each chain, for n asked items; or at another ``level``.

        Of so few that all are rechecked they are those of single counts, which `weight` only makes stricter.
        """
        rechecked = self.rechecked(asked)
        return recheck_levels(
            pool_size=self.plan.pool_size,
            asked=asked,
            rechecked=rechecked,
            weight=self.weight if rechecked < asked else 1,
            budget=self.plan.budget,
            level=self.level if level is None else level,
        )

    @property
    def models_and_expert(self) -> Plan:
        """The plan of the chain of models and expert alone: every model's own score, c_h := c_e, alpha / 3.

        Alpha is rounded down, as a third of a decimal need not be one.
        """
        share = Context(prec=DIGITS, rounding=ROUND_FLOOR).divide(self.plan.alpha, Decimal(CHAINS))
        costs = (*self.plan.costs[:-1], self.expert_cost)
        return replace(self.plan, costs=costs, alpha=share, rule=every_score.RULE.name)


def validate_expert_plan(run: ExpertPlan) -> None:
    """Raise `PlanError` at the first part that cannot be carried out."""
    plan = run.plan
    validate(plan)
    if plan.measured_elsewhere:
        raise PlanError("loss", say("expert.measured_elsewhere"))
    if plan.target != "dataset" or plan.bound_rule().name != "hypergeometric" or plan.data_set_size:
        raise PlanError("target", say("expert.target"))
    if run.expert_cost <= 0:
        raise PlanError("expert_cost", say("expert.cost", cost=plain(run.expert_cost)))
    if run.all_rechecked and run.weight != 1:
        raise PlanError("weight", say("expert.weight", weight=run.weight))
    _refuse_names(run)
    if not 1 <= run.weight <= HEAVIEST:
        raise PlanError("weight", say("expert.heavy", weight=run.weight, most=HEAVIEST))
    work = effort(
        pool_size=plan.pool_size,
        asked=plan.m,
        rechecked=run.rechecked(plan.m),
        weight=run.weight,
        budget=plan.budget,
    )
    if work > LARGEST_EFFORT:
        raise PlanError("recheck_share", say("expert.effort", pool=plan.pool_size, m=plan.m))
    if not run.all_rechecked and run.rechecked(plan.m) >= plan.m:
        raise PlanError("recheck_share", say("expert.nearly_all", share=plain(run.recheck_share)))
    if to_fraction(run.recheck_share) * to_fraction(plan.expected_labels) < 1:
        raise PlanError(
            "recheck_share",
            say("expert.no_recheck", share=plain(run.recheck_share), labels=plain(plan.expected_labels)),
        )


def _refuse_names(run: ExpertPlan) -> None:
    if len(", ".join(run.names)) > LONGEST_NAME or not all(
        name.strip() and name.isprintable() for name in run.names
    ):
        raise PlanError("expert", say("expert.name", most=LONGEST_NAME))
    if not run.experts:
        return
    if len(run.experts) == 1:
        raise PlanError("expert", say("expert.alone", name=run.names[0]))
    if twice := [name for name in run.names if run.names.count(name) > 1]:
        raise PlanError("expert", say("expert.twice", name=twice[0]))
    try:
        Roster.of("", dict(run.experts), duty=EXPERT)
    except RosterError as error:
        raise PlanError("expert", error.said) from error


SAYS = {
    "expert.one_of": gettext_noop("%(names)s or %(last)s"),
    "expert.alone": gettext_noop("%(name)s shares the work of the expert with nobody; leave out her share"),
    "expert.twice": gettext_noop("%(name)s is named twice among the experts"),
    "expert.recheck_share": gettext_noop(
        "r = %(share)s: the share of the asked items that the expert labels in any case must be above 0 and "
        "at most 1"
    ),
    "expert.target": gettext_noop(
        "with an expert as the reference, the promise is about one delivered data set, labels are right or "
        "wrong, and every item of the data set is in the pool; choose the target 'dataset' and an exact loss"
    ),
    "expert.measured_elsewhere": gettext_noop(
        "with an expert as the reference, people's labels are compared with hers and with models' answers, "
        "and no loss that is measured elsewhere comes for these; choose one person or two people as the "
        "reference, or a loss that is computed here"
    ),
    "expert.cost": gettext_noop("a label by the expert costs %(cost)s: give a cost above 0"),
    "expert.weight": gettext_noop(
        "where the expert labels every asked item, each error counts once, not %(weight)s times"
    ),
    "expert.name": gettext_noop(
        "say who the expert is, in one line of at most %(most)s characters: the certificate names her"
    ),
    "expert.heavy": gettext_noop(
        "an error on a rechecked item counts %(weight)s times; give a whole number from 1 to %(most)s"
    ),
    "expert.effort": gettext_noop(
        "with a pool of %(pool)s items and m = %(m)s, what may pass takes hours to compute; let the expert "
        "label every asked item (r = 1), or draw fewer"
    ),
    "expert.nearly_all": gettext_noop(
        "with r = %(share)s the expert labels every asked item: write 1, then each error counts once"
    ),
    "expert.no_recheck": gettext_noop(
        "r = %(share)s of %(labels)s asked items is less than one item: the expert would recheck nothing; "
        "raise r or ask about more items"
    ),
}
declare(SAYS)
