"""The paper's own selection rules on the same labels: for comparison, never for a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.bounds import BOUNDS, Bound
from routing.core.calibration import Calibration, ObservedLosses, observed_losses
from routing.core.exact import percent
from routing.core.grid import ScoreGrid, score_grid
from routing.core.keys import Thresholds
from routing.core.messages import Message, declare, gettext_noop, say, sentences
from routing.core.plan import Plan
from routing.core.rules import lexicographic, pointwise_argmin
from routing.core.search import Search

CHOICES: dict[str, tuple[Callable[[Search], Ints], Callable[[Ints, Floats], int]]] = {
    pointwise_argmin.RULE.name: (Search.cheapest, pointwise_argmin.choose),
    lexicographic.RULE.name: (Search.furthest, lexicographic.choose),
}
"""By rule: tuples of thresholds among which its choice is, and which of them it chooses."""
TARGETS = ("pool", "population")


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
    said : messages
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
    said: tuple[Message, ...]

    @property
    def sentence(self) -> str:
        """In English."""
        return sentences(self.said)


def compare(plan: Plan, calibration: Calibration, *, bound: str = "clt") -> list[Comparison]:
    """`pointwise_argmin` and `lexicographic` on the labels of ``calibration``.

    Parameters
    ----------
    bound
        Upper bound of each tuple of thresholds; the paper's experiments use 'clt'.  For a bound that bets
        along the draw fewer scores are looked at, and the sentence says how many.

    Raises
    ------
    ValueError
        The bound is unknown, or not for this loss and these probabilities of asking.
    """
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    return compare_losses(plan, calibration.u, losses, bound=bound)


def compare_losses(
    plan: Plan,
    u: Floats,
    losses: ObservedLosses,
    *,
    bound: str = "clt",
    costs: Floats | None = None,
    grid: ScoreGrid | None = None,
) -> list[Comparison]:
    """`compare` on computed losses and the scores ``u`` (m,) of all calibration items, asked or not.

    Parameters
    ----------
    costs : (m, S), optional
        Cost of each source on each of these items; the plan's costs per label without them.
    grid : optional
        `score_grid` of the same arguments.  Plans that differ in epsilon may share one.
    """
    rule = BOUNDS.get(bound)
    grid = grid if grid is not None else score_grid(plan, u, losses, costs=costs)
    search = Search.over(plan, losses, rule, _target(plan, rule), grid)
    return [
        _comparison(name, search, found(search), choose, scores=len(grid.scores))
        for name, (found, choose) in CHOICES.items()
    ]


def _target(plan: Plan, bound: Bound) -> str:
    """A comparison speaks about the risk as the paper does; the bound says which risk it can bound."""
    binary, constant_p = plan.loss_function().binary, plan.constant_p
    for target in TARGETS:
        if not bound.refusal(target=target, binary=binary, constant_p=constant_p):
            return target
    if not bound.certifies:
        return "population"
    at_best = next(target for target in TARGETS if not bound.refusal(target=target, binary=True))
    raise ValueError(str(bound.refusal(target=at_best, binary=binary, constant_p=constant_p)))


def _comparison(
    name: str, search: Search, places: Ints, choose: Callable[[Ints, Floats], int], *, scores: int
) -> Comparison:
    plan, grid, bound = search.plan, search.grid, search.bound
    if not len(places):
        places = np.zeros((1, plan.sources - 1), dtype=np.int64)
    row = choose(places, grid.cost(places))
    chosen = places[row : row + 1]
    evidence = search.losses.evidence_of(plan, grid.keys(chosen))
    cost = float(grid.cost(chosen)[0])
    people = float(grid.paid[-1, -1]) / max(int(grid.drawn[-1]), 1)
    tried = min(search.scores, scores)
    return Comparison(
        rule=name,
        bound=bound.name,
        thresholds=grid.thresholds(chosen[0]),
        routing_cost=cost,
        routing_saving=1 - cost / people,
        observed_errors=float(evidence.total[0]),
        estimate=float(evidence.weighted_mean[0]),
        upper_bound=float(bound.upper(evidence, float(plan.alpha), target=search.target)[0]),
        holds_level=False,
        said=(
            say("compare.rule", rule=name, epsilon=percent(plan.epsilon), alpha=percent(plan.alpha)),
            *([say("compare.scores", tried=tried, scores=scores)] if tried < scores else []),
        ),
    )


SAYS = {
    "compare.rule": gettext_noop(
        "The rule '%(rule)s' of the paper does not hold its stated level: it can exceed %(epsilon)s more "
        "often than %(alpha)s of the time. For comparison only."
    ),
    "compare.scores": gettext_noop("Thresholds were looked for at %(tried)s of %(scores)s scores."),
}
declare(SAYS)
