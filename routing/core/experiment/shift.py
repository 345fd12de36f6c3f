"""Distribution shift by reweighting a table: deployment gets the harder items more often."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats
from routing.core.experiment.measure import Deployment
from routing.core.experiment.table import Table
from routing.core.keys import V_MAX


def weights(table: Table, severity: float, drift: float = 0.0) -> Floats:
    """Probabilities (N,) of the rows in a deployment: proportional to exp(s (rho_i + d e_i)).

    s is the severity, rho_i the mid-rank of U_i in (0, 1) and e_i the mean loss of the models on i, divided
    by B.  Without drift, d = 0, uncertain items come more often, and errors with them; at the same U the
    models are as good as before, as with a corruption that a model's score notices.  With drift they are
    worse at the same U, so that the calibration no longer tells the truth about them: the odds that all
    models are wrong grow e^(s d) times.
    """
    u = table.u[:, 0]
    ordered = np.sort(u)
    rank = np.searchsorted(ordered, u, side="left") + np.searchsorted(ordered, u, side="right")
    hardness = rank / (2 * table.size) + drift * table.loss.mean(axis=1) / table.loss_bound
    raw = np.exp(severity * (hardness - hardness.max()))
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def deploy(table: Table, severity: float, drift: float, rng: np.random.Generator) -> Deployment:
    """N rows drawn with replacement by those probabilities, with tie-breaks of their own."""
    items = rng.choice(table.size, table.size, p=weights(table, severity, drift)).astype(np.int64)
    ties = [rng.integers(0, V_MAX, table.size, endpoint=True) for _ in range(table.models)]
    return Deployment(table.rows(items), np.column_stack(ties))
