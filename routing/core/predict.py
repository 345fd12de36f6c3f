"""Predicted losses along the ranks of U, learnt from a pilot on which the models ran and nobody labelled.

They only order the steps of a chain.  A poor prediction costs money, never the guarantee.
"""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are read when they are used: `optimize` takes half a second
from scipy import special

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
    fit = scipy.optimize.isotonic_regression(means, weights=counts.astype(np.float64))
    return np.interp(at, distinct, fit.x)


def logistic(rho: Floats, outcome: Floats, at: Floats) -> Floats:
    """Logistic regression of ``outcome`` in {0, 1} on logit(rho), by Newton's method, read off at ``at``."""
    # Sums instead of matrix products: two parameters are not worth the threads of a linear algebra library.
    x = special.logit(rho)
    intercept = slope = 0.0
    for _ in range(ITERATIONS):
        mean = special.expit(intercept + slope * x)
        residual, weight = outcome - mean, mean * (1 - mean)
        g0, g1 = residual.sum() - RIDGE * intercept, (residual * x).sum() - RIDGE * slope
        h00, h01, h11 = weight.sum() + RIDGE, (weight * x).sum(), (weight * x * x).sum() + RIDGE
        determinant = h00 * h11 - h01 * h01
        step0, step1 = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        intercept += float(np.clip(step0, -2.0, 2.0))
        slope += float(np.clip(step1, -2.0, 2.0))
        if max(abs(step0), abs(step1)) < 1e-9:
            break
    return np.asarray(special.expit(intercept + slope * special.logit(at)), dtype=np.float64)
