"""The feasible region in the (u_1, u_2) plane, for the figure beside a certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.calibration import Calibration, observed_losses
from routing.core.grid import score_grid
from routing.core.plan import Plan


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
        Observed errors, and mean routing cost per item (the paper's C_hat); NaN below the diagonal.
    """

    u1: Floats
    u2: Floats
    feasible: Bools
    errors: Floats
    cost: Floats


def feasible_region(plan: Plan, calibration: Calibration, *, grid: int = 40) -> Region:
    """The region of a run with two models and people, on at most ``grid`` scores of the calibration set.

    Raises
    ------
    ValueError
        The run has another number of sources, or its loss is not 0-1.
    """
    if plan.sources != 3:
        raise ValueError(
            f"the feasible region is drawn for two models and people, not for {plan.sources} sources"
        )
    if not plan.loss_function().binary:
        raise ValueError(f"the feasible region is drawn for a loss of 0 or 1, not for {plan.loss!r}")
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    table = score_grid(calibration.u, losses)
    places = _spread(table.drawn, max(grid, 2))
    first, second = np.meshgrid(np.arange(len(places)), np.arange(len(places)), indexing="ij")
    valid = first <= second
    pairs = np.column_stack([places[first[valid]], places[second[valid]]])
    errors, cost = np.full(valid.shape, np.nan), np.full(valid.shape, np.nan)
    errors[valid] = table.loss(pairs)
    cost[valid] = table.cost(pairs, np.array([float(price) for price in plan.costs]))
    template = losses.evidence(plan, np.zeros(1))
    # Errors that people could not mend stay in the data set: then the pool is what can be bounded.
    target = "pool" if calibration.unanswered and plan.target == "dataset" else plan.target
    allowed = plan.bound_rule().largest_count(template, plan.exact_epsilon, float(plan.alpha), target=target)
    feasible = valid & (errors <= allowed)
    feasible[0, 0] = True  # people alone
    edges = np.concatenate([[-1.0], table.scores])[places]
    return Region(edges, edges, feasible, errors, cost)


def _spread(drawn: Ints, count: int) -> Ints:
    """At most ``count`` places, "nothing goes here" first, with about equally many items between them."""
    wanted = np.linspace(0, int(drawn[-1]), count)
    return np.unique(np.searchsorted(drawn, wanted, side="left")).astype(np.int64)
