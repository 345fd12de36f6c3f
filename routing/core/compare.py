"""The paper's own selection rules on the same labels: for comparison, never for a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.bounds import BOUNDS
from routing.core.calibration import Calibration, ObservedLosses, observed_losses
from routing.core.exact import percent
from routing.core.grid import feasible_places, score_grid
from routing.core.keys import Thresholds
from routing.core.plan import Plan
from routing.core.rules import lexicographic, pointwise_argmin

CHOICES: dict[str, Callable[[Ints, Floats], int]] = {
    pointwise_argmin.RULE.name: pointwise_argmin.choose,
    lexicographic.RULE.name: lexicographic.choose,
}


@dataclass(frozen=True)
class Comparison:
    """What a rule of the paper would choose.

    Attributes
    ----------
    rule, bound : str
    thresholds : S - 1 keys or None
        Thresholds are scores: all items of one score go together.
    routing_cost, routing_saving : float
        Mean cost per calibration item if whoever labels is paid, and what that saves against people.
    observed_errors, estimate, upper_bound : float
        Observed loss of the choice, its weighted mean (Eq. 5), and its own upper bound (Eq. 7 for 'clt').
    holds_level : bool
        Always False.
    sentence : str
    """

    rule: str
    bound: str
    thresholds: Thresholds
    routing_cost: float
    routing_saving: float
    observed_errors: float
    estimate: float
    upper_bound: float
    holds_level: bool
    sentence: str


def compare(plan: Plan, calibration: Calibration, *, bound: str = "clt") -> list[Comparison]:
    """`pointwise_argmin` and `lexicographic` on the labels of ``calibration``.

    Parameters
    ----------
    bound
        Upper bound of each tuple of thresholds; the paper's experiments use 'clt'.

    Raises
    ------
    ValueError
        The loss of the plan is not 0-1, or the bound is unknown.
    """
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    return compare_losses(plan, calibration.u, losses, bound=bound)


def compare_losses(plan: Plan, u: Floats, losses: ObservedLosses, *, bound: str = "clt") -> list[Comparison]:
    """`compare` on computed losses and the scores ``u`` (m,) of all calibration items, asked or not."""
    if not plan.loss_function().binary:
        raise ValueError(f"the comparison rules are for a loss of 0 or 1, not for {plan.loss!r}")
    rule = BOUNDS.get(bound)
    # A comparison speaks about the risk as the paper does; the bound says which risk it can bound.
    target = "pool" if not rule.refusal(target="pool", binary=True) else "population"
    sizes = losses.evidence(plan, np.zeros(1))
    most = rule.largest_count(sizes, plan.exact_epsilon, float(plan.alpha), target=target)
    grid = score_grid(u, losses)
    places = feasible_places(grid, most)
    if not len(places):
        places = np.zeros((1, plan.sources - 1), dtype=np.int64)
    prices = np.array([float(cost) for cost in plan.costs])
    cost, errors = grid.cost(places, prices), grid.loss(places)
    result = []
    for name, choose in CHOICES.items():
        row = choose(places, cost)
        upper = rule.upper(losses.evidence(plan, errors[row : row + 1]), float(plan.alpha), target=target)
        result.append(
            Comparison(
                rule=name,
                bound=bound,
                thresholds=grid.thresholds(places[row]),
                routing_cost=float(cost[row]),
                routing_saving=1 - float(cost[row]) / float(prices[-1]),
                observed_errors=float(errors[row]),
                estimate=float(errors[row]) / (float(plan.p) * losses.drawn),
                upper_bound=float(upper[0]),
                holds_level=False,
                sentence=(
                    f"The rule '{name}' of the paper does not hold its stated level: it can exceed "
                    f"{percent(plan.epsilon)} more often than {percent(plan.alpha)} of the time. "
                    "For comparison only."
                ),
            )
        )
    return result
