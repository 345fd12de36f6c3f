"""The plan of a run whose reference is an expert: what is fixed, beside an ordinary plan, before a label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from routing.core.exact import NumberError, plain, to_decimal
from routing.core.messages import declare, gettext_noop, say
from routing.core.plan import Plan, PlanError, validate
from routing.core.reference.recheck import default_weight, effort, recheck_levels, rechecked
from routing.core.rules import every_score
from routing.core.targets.dataset import Levels

CHAINS = 3
"""Chains that are tested, each at alpha divided by it."""
HALF = Decimal("0.5")
DIGITS = 28
LONGEST_NAME = 200
HEAVIEST = 10**6
"""Largest w."""
LARGEST_EFFORT = 2 * 10**11
"""Of `recheck.effort`: some ten minutes on one core."""


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
    """

    plan: Plan
    expert_cost: Decimal
    recheck_share: Decimal = HALF
    weight: int = 0
    expert: str = "the expert"

    def __post_init__(self) -> None:
        for name in ("expert_cost", "recheck_share"):
            try:
                object.__setattr__(self, name, to_decimal(getattr(self, name)))
            except NumberError as error:
                raise PlanError(name, say("plan.field", field=name, error=error.said)) from error
        if not 0 < self.recheck_share <= 1:
            raise PlanError("recheck_share", say("expert.recheck_share", share=plain(self.recheck_share)))
        if not self.weight:
            object.__setattr__(self, "weight", default_weight(self.recheck_share))

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

    def levels(self, asked: int) -> Levels:
        """The numbers that decide along each chain, for n asked items."""
        return recheck_levels(
            pool_size=self.plan.pool_size,
            asked=asked,
            rechecked=self.rechecked(asked),
            weight=self.weight,
            budget=self.plan.budget,
            level=self.level,
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
    if plan.target != "dataset" or plan.bound_rule().name != "hypergeometric" or plan.data_set_size:
        raise PlanError("target", say("expert.target"))
    if run.expert_cost <= 0:
        raise PlanError("expert_cost", say("expert.cost", cost=plain(run.expert_cost)))
    if run.all_rechecked and run.weight != 1:
        raise PlanError("weight", say("expert.weight", weight=run.weight))
    if not run.expert.strip() or len(run.expert) > LONGEST_NAME or not run.expert.isprintable():
        raise PlanError("expert", say("expert.name", most=LONGEST_NAME))
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
    if run.rechecked(int(plan.expected_labels)) < 1:
        raise PlanError(
            "recheck_share",
            say("expert.no_recheck", share=plain(run.recheck_share), labels=plain(plan.expected_labels)),
        )


SAYS = {
    "expert.recheck_share": gettext_noop(
        "r = %(share)s: the share of the asked items that the expert labels in any case must be above 0 and "
        "at most 1"
    ),
    "expert.target": gettext_noop(
        "with an expert as the reference, the promise is about one delivered data set, labels are right or "
        "wrong, and every item of the data set is in the pool; choose the target 'dataset' and an exact loss"
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
    "expert.no_recheck": gettext_noop(
        "r = %(share)s of %(labels)s asked items is less than one item: the expert would recheck nothing; "
        "raise r or ask about more items"
    ),
}
declare(SAYS)
