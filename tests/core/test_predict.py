"""The regressions that order the steps of a chain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.optimize import minimize

from routing.core.pilot_losses import RIDGE, isotonic, logistic


def test_isotonic_never_falls_and_pools_violators() -> None:
    rho = np.array([0.1, 0.2, 0.2, 0.3, 0.4])
    fit = isotonic(rho, np.array([0.0, 1.0, 0.0, 0.2, 1.0]), np.array([0.05, 0.2, 0.3, 0.35, 0.9]))
    assert fit == pytest.approx([0.0, 0.4, 0.4, 0.7, 1.0])  # (1 + 0 + 0.2) / 3 where the order is violated


def test_logistic_minimises_the_penalised_loss() -> None:
    rng = np.random.default_rng(0)
    rho = rng.random(200)
    outcome = (rng.random(200) < 0.6 * rho**2).astype(float)
    x = special.logit(rho)

    def objective(beta: np.ndarray) -> float:
        z = beta[0] + beta[1] * x
        return float((np.logaddexp(0, z) - outcome * z).sum() + RIDGE / 2 * (beta**2).sum())

    beta = minimize(objective, np.zeros(2), tol=1e-10).x
    at = np.linspace(0.01, 0.99, 9)
    expected = special.expit(beta[0] + beta[1] * special.logit(at))
    assert logistic(rho, outcome, at) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("outcome", [np.zeros(20), np.ones(20), (np.arange(20) > 9).astype(float)])
def test_logistic_stays_finite_where_the_outcomes_separate(outcome: np.ndarray) -> None:
    rho = (np.arange(20) + 0.5) / 20
    fit = logistic(rho, outcome, np.array([0.001, 0.5, 0.999]))
    assert np.all(np.isfinite(fit))
    assert np.all((fit >= 0) & (fit <= 1))
