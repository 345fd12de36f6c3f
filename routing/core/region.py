"""The feasible region in the (u_1, u_2) plane, for the figure beside a certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.calibration import Calibration, ObservedLosses, observed_losses
from routing.core.grid import score_grid
from routing.core.plan import Plan
from routing.core.search import Search

LARGEST = 40
"""Most threshold scores along either side."""


@dataclass(frozen=True)
class Region:
    """Pairs of thresholds (u_1, u_2) that would pass if each were the only one looked at: shown, not
    certified.

    Attributes
    ----------
    u1, u2 : (g,)
        Threshold scores, the same rising numbers for both; -1 stands for "nothing goes here".
    feasible : (g, g)
        Whether the pair (u1[i], u2[j]) passes its own test at level alpha; False below the diagonal.
    errors, cost : (g, g)
        Observed loss, and mean routing cost per item (the paper's C_hat); NaN below the diagonal.
    """

    u1: Floats
    u2: Floats
    feasible: Bools
    errors: Floats
    cost: Floats


def feasible_region(plan: Plan, calibration: Calibration, *, grid: int = 40) -> Region:
    """The region of a run with two models and people, on at most ``grid`` (never more than 40) scores of the
    calibration set.

    Raises
    ------
    ValueError
        The run has another number of sources, or its bound is not for its loss.
    """
    if plan.sources != 3:
        raise ValueError(
            f"the feasible region is drawn for two models and people, not for {plan.sources} sources"
        )
    # Errors that people could not mend stay in the data set: then the pool is what can be bounded.
    target = "pool" if calibration.unanswered and plan.target == "dataset" else plan.target
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    return region_of(plan, calibration.u, losses, target=target, grid=grid)


def region_of(plan: Plan, u: Floats, losses: ObservedLosses, *, target: str, grid: int = LARGEST) -> Region:
    """`feasible_region` on computed losses and the scores ``u`` (m,) of all calibration items."""
    bound = plan.bound_rule()
    binary = plan.loss_function().binary
    refusal = bound.refusal(target=target, binary=binary, constant_p=plan.constant_p)
    if refusal:
        raise ValueError(str(refusal))
    full = score_grid(plan, u, losses)
    table = full.at(_spread(full.drawn, min(max(grid, 2), LARGEST)))
    places = np.arange(len(table.scores) + 1)
    first, second = np.nonzero(places[:, None] <= places)
    pairs = np.column_stack([first, second])
    errors, cost = np.full((len(places),) * 2, np.nan), np.full((len(places),) * 2, np.nan)
    errors[first, second] = table.totals(pairs)[0]
    cost[first, second] = table.cost(pairs)
    feasible = np.zeros(errors.shape, dtype=np.bool_)
    feasible[first, second] = Search(plan, losses, bound, target, table).passes(first, second)
    feasible[0, 0] = True  # people alone
    edges = np.concatenate([[-1.0], table.scores])
    return Region(edges, edges, feasible, errors, cost)


def _spread(drawn: Ints, count: int) -> Ints:
    """At most ``count`` places, "nothing goes here" first, with about equally many items between them."""
    wanted = np.linspace(0, int(drawn[-1]), count)
    return np.unique(np.searchsorted(drawn, wanted, side="left")).astype(np.int64)
