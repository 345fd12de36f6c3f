"""The repeats of one row put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy import special

from routing.core.experiment.measure import Measured

CONFIDENCE = 0.95
QUANTILE = 0.95


@dataclass(frozen=True)
class Row:
    """One rule with one target, bound, epsilon and m.  Shares and savings are fractions, not per cent.

    Attributes
    ----------
    table : str
    items : int
        N.
    rule, target, bound : str
    holds_level : bool
        Whether the rule keeps P(error > epsilon) <= alpha, by proof; never after a shift.
    epsilon, alpha : float
    m : int
    p : float
        Where it varies, the mean.
    severity : float or None
        Of the shift between calibration and deployment.
    drift : float
        How much worse the models got at the same score, per unit of severity.
    repeats, seed : int
    error_mean, error_sd, error_q95 : float
        Error of the delivered data set for the target "dataset", of the pool otherwise, of the deployed items
        after a shift.
    test_error_mean, test_error_sd : float
        Error of the items outside the calibration set: the paper's annotation error.
    violation_rate, violation_low, violation_high : float
        Share of repeats with an error above epsilon, with its Clopper-Pearson interval.
    routing_saving_mean, routing_saving_sd, net_saving_mean, net_saving_sd : float
    human_labels_mean : float
        Labels that people gave, calibration included.
    test_bound : float
        epsilon + t of the paper's theorem on finite test sets, which the test error would stay below with
        probability 1 - 2 alpha for a rule that holds its level for the population.
    """

    table: str
    items: int
    rule: str
    target: str
    bound: str
    holds_level: bool
    epsilon: float
    alpha: float
    m: int
    p: float
    severity: float | None
    drift: float
    repeats: int
    seed: int
    error_mean: float
    error_sd: float
    error_q95: float
    test_error_mean: float
    test_error_sd: float
    violation_rate: float
    violation_low: float
    violation_high: float
    routing_saving_mean: float
    routing_saving_sd: float
    net_saving_mean: float
    net_saving_sd: float
    human_labels_mean: float
    test_bound: float


def clopper_pearson(count: int, repeats: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact two-sided interval for a probability, ``count`` of ``repeats`` observed."""
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(count, repeats - count + 1, tail)) if count else 0.0
    high = float(special.betaincinv(count + 1, repeats - count, 1 - tail)) if count < repeats else 1.0
    return low, high


def finite_test_bound(epsilon: float, alpha: float, *, items: int, loss_bound: float) -> float:
    """epsilon + t of the paper's theorem "Empirical risk PAC guarantee" on ``items`` test items.

    The theorem: P(test error <= epsilon + t) >= 1 - alpha - (1 - alpha) exp(-2 N t^2 / B^2).  t is chosen so
    that the last term is alpha as well.
    """
    if not items or alpha >= 0.5:
        return epsilon
    return epsilon + loss_bound * sqrt(log((1 - alpha) / alpha) / (2 * items))


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (repeats - 1; 0 for one repeat)."""
    numbers = np.array(values)
    return float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0


def summarise(
    outcomes: Sequence[Measured],
    *,
    table: str,
    items: int,
    loss_bound: float,
    rule: str,
    target: str,
    bound: str,
    holds_level: bool,
    epsilon: float,
    alpha: float,
    m: int,
    p: float,
    severity: float | None,
    drift: float,
    seed: int,
) -> Row:
    """The row of all repeats with the same settings."""
    error = spread([one.error for one in outcomes])
    test_error = spread([one.test_error for one in outcomes])
    routing = spread([one.routing_saving for one in outcomes])
    net = spread([one.net_saving for one in outcomes])
    count = sum(one.violated for one in outcomes)
    low, high = clopper_pearson(count, len(outcomes))
    return Row(
        table=table,
        items=items,
        rule=rule,
        target=target,
        bound=bound,
        holds_level=holds_level,
        epsilon=epsilon,
        alpha=alpha,
        m=m,
        p=p,
        severity=severity,
        drift=drift,
        repeats=len(outcomes),
        seed=seed,
        error_mean=error[0],
        error_sd=error[1],
        error_q95=float(np.quantile([one.error for one in outcomes], QUANTILE)),
        test_error_mean=test_error[0],
        test_error_sd=test_error[1],
        violation_rate=count / len(outcomes),
        violation_low=low,
        violation_high=high,
        routing_saving_mean=routing[0],
        routing_saving_sd=routing[1],
        net_saving_mean=net[0],
        net_saving_sd=net[1],
        human_labels_mean=float(np.mean([one.human_labels for one in outcomes])),
        test_bound=finite_test_bound(
            epsilon, alpha, items=items if severity is not None else items - m, loss_bound=loss_bound
        ),
    )
