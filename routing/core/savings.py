"""Expected cost of a run, and the two savings that are never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routing.core.chain import Policy
from routing.core.plan import Plan


@dataclass(frozen=True)
class Expected:
    """Expected money of one outcome, in the currency of the plan.

    Attributes
    ----------
    net_cost : float
        Everything the run pays: source 1 on every item, the other models on the pilot, the asked items and
        their bands, people on the asked items and their band.
    net_saving : float
        1 - net_cost / (N c_h): against people labelling everything.  May be negative.
    routing_saving : float
        The paper's figure: 1 - the cost of whoever labels / the cost of people, over the items not asked for
        calibration; what calibration and unused answers cost is left out.
    """

    net_cost: float
    net_saving: float
    routing_saving: float


def expected(plan: Plan, policy: Policy, *, asked: int) -> Expected:
    """Expected cost and savings of routing by ``policy`` after ``asked`` calibration labels."""
    prices = [float(cost) for cost in plan.costs]
    later = sum(prices[1:-1])
    size, people = plan.pool_size, prices[-1]
    rest = size - asked
    # Nothing is paid twice: neither an answer on a pilot item that people are asked about, too, nor one on a
    # pilot item in a later model's band.  Under "population" the pilot lies outside the calibration set.
    outside = plan.pilot if plan.target == "population" else plan.pilot * rest / size
    unpaid = rest - outside
    net = (
        size * prices[0]
        + outside * later
        + asked * (later + people)
        + unpaid * policy.model_cost
        + rest * policy.people_cost
    )
    return Expected(
        net_cost=net,
        net_saving=1 - net / (size * people),
        routing_saving=expected_routing_saving(prices, policy.counts),
    )


def expected_routing_saving(prices: Sequence[float], counts: Sequence[int]) -> float:
    """The paper's saving if ``counts`` (S,) items go to sources of these ``prices``, people last."""
    routed = sum(count * price for count, price in zip(counts, prices, strict=True))
    return 1 - routed / (sum(counts) * prices[-1])
