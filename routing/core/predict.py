"""Predicted losses along the ranks of U, learnt from a pilot on which the models ran and nobody labelled.

They only order the steps of a chain.  A poor prediction costs money, never the guarantee.
"""

from __future__ import annotations

import numpy as np
from scipy import special
from scipy.optimize import isotonic_regression

from routing.core.arrays import Floats

RIDGE = 1e-3
"""Keeps the logistic regression finite where the ranks separate the two outcomes."""
ITERATIONS = 50


def isotonic(rho: Floats, outcome: Floats, at: Floats) -> Floats:
    """Non-decreasing least-squares fit of ``outcome`` (n,) on ``rho`` (n,), read off at ``at``, linear in
    between.
    """
    distinct, where, counts = np.unique(rho, return_inverse=True, return_counts=True)
    means = np.bincount(where, weights=outcome) / counts
    fit = isotonic_regression(means, weights=counts.astype(np.float64))
    return np.interp(at, distinct, fit.x)


def logistic(rho: Floats, outcome: Floats, at: Floats) -> Floats:
    """Logistic regression of ``outcome`` in {0, 1} on logit(rho), by Newton's method, read off at ``at``."""
    design = np.column_stack([np.ones_like(rho), special.logit(rho)])
    beta = np.zeros(2)
    for _ in range(ITERATIONS):
        mean = special.expit(design @ beta)
        weight = mean * (1 - mean)
        gradient = design.T @ (outcome - mean) - RIDGE * beta
        hessian = (design * weight[:, None]).T @ design + RIDGE * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        beta += np.clip(step, -2.0, 2.0)
        if np.max(np.abs(step)) < 1e-9:
            break
    return np.asarray(special.expit(beta[0] + beta[1] * special.logit(at)), dtype=np.float64)
