"""The plan of a run: everything that is fixed before any label exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any, TypeGuard

from routing.core.bounds import BOUNDS, Bound
from routing.core.exact import NumberError, error_budget, plain, to_decimal
from routing.core.losses import Loss, MeasuredElsewhere, make_loss
from routing.core.losses.base import LossError
from routing.core.messages import CoreError, Message, declare, gettext_noop, say
from routing.core.registry import UnknownNameError
from routing.core.rules import RULES, split_fixed_sequence
from routing.core.targets import TARGETS, Target

SPLIT_SHARE = Decimal("0.3")
PILOT_LIMIT = 200
PILOT_SHARE = 5
PILOT_PRICE = Decimal("0.01")
"""Largest cost of a default pilot, as a part of what people would cost for the whole pool."""
PILOT_LEAST = 30
"""Fewer items foretell less than a shape that is assumed for nothing."""
MAGNITUDE = 30
"""A number has its first digit at most this many places before or after the point: as a float it is then
neither infinite nor 0."""
LARGEST_POOL = 2**53
"""Beyond it a float no longer tells one item more or less."""


class PlanError(CoreError):
    """A plan that cannot be carried out: ``field`` names the part that is wrong, the message what to do."""

    def __init__(self, field: str, said: Message) -> None:
        super().__init__(said)
        self.field = field


@dataclass(frozen=True)
class Plan:
    """One run, as planned.

    Attributes
    ----------
    epsilon, alpha : Decimal
        Largest share of wrong labels, and probability over the draw of exceeding it.
    target : str
        What the share is of: "dataset", "pool" or "population".
    m, p
        Size of the calibration set; probability that people are asked about one of its items.
    pool_size : int
        N.
    costs : S decimals
        Cost per label of source 1 .. S, cheapest model first and people last.
    bound, rule, loss : str
        Names in the registries; "" for ``bound`` means the default of the target.
    pilot_size : int or None
        None means `default_pilot_size`.
    loss_params : mapping
        Parameters of the loss, plain JSON.
    p_min : Decimal or None
        None: people are asked about every drawn item with probability ``p``.  Else the probabilities p_i
        vary, this is the smallest and ``p`` their mean over the pool.
    split_share : Decimal
        Part of the asked items that `split_fixed_sequence` learns its chain from.
    data_set_size : int or None
        N_all, for a second draw under the target "dataset": items of the delivered data set, the pool and
        others that people have labelled already.  These count as right, so that the pool may hold all of
        floor(epsilon N_all) wrong labels.  None: the data set is the pool.
    alpha_spent : Decimal or None
        What earlier draws on these items have spent of alpha, so that the promise speaks of both together;
        None: it does not ask.

    Numbers may be given as text, whole numbers or Decimals; a float is read by its shortest text form.
    """

    epsilon: Decimal
    alpha: Decimal
    target: str
    m: int
    p: Decimal
    pool_size: int
    costs: tuple[Decimal, ...]
    bound: str = ""
    rule: str = "fixed_sequence"
    loss: str = "zero_one"
    pilot_size: int | None = None
    loss_params: Mapping[str, Any] = field(default_factory=dict)
    p_min: Decimal | None = None
    split_share: Decimal = SPLIT_SHARE
    data_set_size: int | None = None
    alpha_spent: Decimal | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "alpha", "p", "split_share"):
            object.__setattr__(self, name, _decimal(name, getattr(self, name)))
        if self.p_min is not None:
            object.__setattr__(self, "p_min", _decimal("p_min", self.p_min))
        if self.alpha_spent is not None:
            object.__setattr__(self, "alpha_spent", _decimal("alpha_spent", self.alpha_spent))
        object.__setattr__(self, "costs", tuple(_decimal("costs", cost) for cost in self.costs))

    @property
    def constant_p(self) -> bool:
        """Whether every drawn item is asked about with one probability."""
        return self.p_min is None

    @property
    def sources(self) -> int:
        """S, people included."""
        return len(self.costs)

    @property
    def whole_size(self) -> int:
        """N_all: items of the delivered data set."""
        return self.pool_size if self.data_set_size is None else self.data_set_size

    @property
    def budget(self) -> int:
        """E = floor(epsilon N_all)."""
        return error_budget(self.epsilon, self.whole_size)

    @property
    def risk_limit(self) -> Fraction:
        """Largest mean loss over the pool, epsilon N_all / N: epsilon where the data set is the pool."""
        return self.exact_epsilon * Fraction(self.whole_size, self.pool_size)

    @property
    def exact_epsilon(self) -> Fraction:
        return Fraction(self.epsilon)

    @property
    def exact_alpha(self) -> Fraction:
        return Fraction(self.alpha)

    @property
    def exact_p(self) -> Fraction:
        return Fraction(self.p)

    @property
    def expected_labels(self) -> Decimal:
        """Expected number of calibration labels, m p."""
        return self.m * self.p

    @property
    def pilot(self) -> int:
        """Number of pilot items."""
        if self.pilot_size is not None:
            return self.pilot_size
        if self.rule == split_fixed_sequence.RULE.name:
            return 0  # its chain is learnt from labels
        size = default_pilot_size(self.pool_size, self.costs)
        # Under "population" the pilot and the calibration set are disjoint, and some item must be left over.
        return min(size, max(self.pool_size - self.m - 1, 0)) if self.target == "population" else size

    @property
    def measured_elsewhere(self) -> bool:
        """Whether losses come with the labels; then every answer about an asked item has to be there."""
        return isinstance(self.loss_function(), MeasuredElsewhere)

    def loss_function(self) -> Loss:
        return make_loss(self.loss, self.loss_params)

    def target_rule(self) -> Target:
        return TARGETS.get(self.target)

    def bound_rule(self) -> Bound:
        """The bound, the target's default where the plan names none."""
        name = self.bound or self.target_rule().default_bound(
            binary=self.loss_function().binary, constant_p=self.constant_p
        )
        return BOUNDS.get(name)


def _decimal(field: str, value: Decimal) -> Decimal:
    try:
        number = to_decimal(value)
    except NumberError as error:
        raise PlanError(field, say("plan.field", field=field, error=error.said)) from error
    if number and not -MAGNITUDE <= number.adjusted() <= MAGNITUDE:
        raise PlanError(field, say("plan.magnitude", field=field, number=str(number), most=MAGNITUDE))
    return number


def default_pilot_size(pool_size: int, costs: Sequence[Decimal]) -> int:
    """Items of the pilot: at most 200, N / 5, and as many as cost 1 % of what people would cost for the pool.

    None where that is fewer than 30, and none for one model and people, whose chain needs no predictions.
    ``costs`` are those of all sources, people last; the first model's answers are paid for anyway.
    """
    if len(costs) <= 2:
        return 0
    size = min(PILOT_LIMIT, pool_size // PILOT_SHARE)
    later = sum(costs[1:-1])
    if later > 0:
        size = min(size, floor(PILOT_PRICE * pool_size * costs[-1] / later))
    return size if size >= PILOT_LEAST else 0


def validate(plan: Plan) -> None:
    """Raise `PlanError` at the first part of ``plan`` that cannot be carried out."""
    _validate_levels(plan)
    _validate_sizes(plan)
    _validate_costs(plan)
    _validate_names(plan)


def validate_level(part: str, value: Decimal) -> None:
    """Raise `PlanError` where `part`, epsilon or alpha, is not between 0 and 1."""
    if not 0 < value < 1:
        raise PlanError(part, say(f"plan.{part}", value=plain(value)))


def _validate_levels(plan: Plan) -> None:
    for part in ("epsilon", "alpha"):
        validate_level(part, getattr(plan, part))
    if not 0 < plan.p <= 1:
        raise PlanError("p", say("plan.p", value=plain(plan.p)))
    if not 0 < plan.split_share < 1:
        raise PlanError("split_share", say("plan.split_share", value=plain(plan.split_share)))
    if plan.p_min is not None and not 0 < plan.p_min <= plan.p:
        raise PlanError("p", say("plan.p_min", least=plain(plan.p_min), mean=plain(plan.p)))


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _validate_sizes(plan: Plan) -> None:
    pool = plan.pool_size
    for part in ("pool_size", "m"):
        value = getattr(plan, part)
        if not _whole(value) or not 1 <= value <= LARGEST_POOL:
            raise PlanError(part, say("plan.size", field=part, value=repr(value), most=LARGEST_POOL))
    if plan.m > pool:
        raise PlanError("m", say("plan.m_above_pool", m=plan.m, pool=pool))
    if plan.data_set_size is not None:
        _validate_data_set(plan)
    if plan.pilot_size is not None and (not _whole(plan.pilot_size) or not 0 <= plan.pilot_size <= pool):
        raise PlanError("pilot_size", say("plan.pilot", pool=pool, value=repr(plan.pilot_size)))
    if plan.target == "population" and plan.m + plan.pilot >= pool:
        raise PlanError("m", say("plan.nothing_left", m=plan.m, pilot=plan.pilot, pool=pool))
    if floor(plan.m * plan.p) < 1:
        raise PlanError("m", say("plan.no_label", labels=plain(plan.expected_labels)))


def _validate_data_set(plan: Plan) -> None:
    size = plan.data_set_size
    if not _whole(size) or not plan.pool_size <= size <= LARGEST_POOL:
        raise PlanError("data_set_size", say("plan.data_set", size=repr(size), pool=plan.pool_size))
    if plan.target != "dataset":
        raise PlanError("data_set_size", say("plan.data_set_target", target=plan.target))


def _validate_costs(plan: Plan) -> None:
    if plan.sources < 2:
        raise PlanError("costs", say("plan.sources"))
    for number, cost in enumerate(plan.costs, start=1):
        if cost < 0:
            raise PlanError("costs", say("plan.cost", source=number, cost=plain(cost)))
    if plan.costs[-1] == 0:
        raise PlanError("costs", say("plan.people_cost"))


def _validate_names(plan: Plan) -> None:
    part = "rule"
    try:
        rule = RULES.get(plan.rule)
        part = "target"
        plan.target_rule()
        part = "loss"
        binary = plan.loss_function().binary
        part = "bound"
        bound = plan.bound_rule()
    except LossError as error:
        raise PlanError("loss_params", error.said) from error
    except UnknownNameError as error:
        raise PlanError(part, error.said) from error
    refusal = rule.refusal(constant_p=plan.constant_p)
    if refusal:
        raise PlanError("rule", refusal)
    refusal = bound.refusal(target=plan.target, binary=binary, constant_p=plan.constant_p)
    if refusal:
        raise PlanError("bound", refusal)


def cost_warnings(plan: Plan) -> tuple[Message, ...]:
    """What is odd about the costs of ``plan`` without making it impossible, in sentences."""
    return tuple(
        say(
            "plan.order",
            source=number + 1,
            cost=plain(plan.costs[number]),
            before=number,
            cost_before=plain(plan.costs[number - 1]),
        )
        for number in range(1, plan.sources)
        if plan.costs[number] < plan.costs[number - 1]
    )


SAYS = {
    "plan.epsilon": gettext_noop(
        "epsilon = %(value)s: the share of labels that may differ from people's must lie between 0 and 1, "
        "both excluded; 0.05 is 5 %%"
    ),
    "plan.alpha": gettext_noop(
        "alpha = %(value)s: the probability of a false certificate must lie between 0 and 1, both "
        "excluded; 0.05 is 5 %%"
    ),
    "plan.p": gettext_noop("p = %(value)s: the probability of asking people must be above 0 and at most 1"),
    "plan.split_share": gettext_noop(
        "split_share = %(value)s: the part of the labels that teaches the chain must lie between 0 and 1, "
        "both excluded; 0.3 is 30 %%"
    ),
    "plan.p_min": gettext_noop(
        "the smallest probability of asking people is %(least)s and their mean %(mean)s: the smallest must "
        "be above 0 and at most the mean"
    ),
    "plan.magnitude": gettext_noop(
        "%(field)s: %(number)s is too large or too small; give 0, or 1e-%(most)s to 1e%(most)s"
    ),
    "plan.size": gettext_noop("%(field)s = %(value)s must be a whole number of at least 1, at most %(most)s"),
    "plan.m_above_pool": gettext_noop(
        "m = %(m)s items cannot be drawn from a pool of %(pool)s; choose m at most %(pool)s or import more "
        "items"
    ),
    "plan.pilot": gettext_noop(
        "the items of a pilot must be a whole number between 0 and the pool's %(pool)s, not %(value)s"
    ),
    "plan.nothing_left": gettext_noop(
        "for the target 'population' thresholds are learnt from items outside the calibration set: m = "
        "%(m)s and a pilot of %(pilot)s leave none of %(pool)s; choose a smaller m or import more items"
    ),
    "plan.no_label": gettext_noop("m p = %(labels)s: fewer than one label is expected; choose a larger m"),
    "plan.data_set": gettext_noop(
        "a data set of %(size)s items must hold the %(pool)s of the pool; give the number of both "
        "together, or leave it out"
    ),
    "plan.data_set_target": gettext_noop(
        "items that people labelled earlier count for the target 'dataset' only, not for '%(target)s'; "
        "leave the size of the data set out"
    ),
    "plan.sources": gettext_noop("a run needs at least two sources: a model and people, people last"),
    "plan.cost": gettext_noop("the cost per label of source %(source)s is %(cost)s; it cannot be negative"),
    "plan.people_cost": gettext_noop(
        "the cost per label of people is 0: there is nothing to save; give it a price"
    ),
    "plan.order": gettext_noop(
        "source %(source)s costs %(cost)s per label, source %(before)s before it %(cost_before)s: sources "
        "should come cheapest first"
    ),
    "plan.field": gettext_noop("%(field)s: %(error)s"),
}
declare(SAYS)
