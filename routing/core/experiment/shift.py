"""Distribution shift by reweighting a table: deployment gets the harder items more often."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats
from routing.core.experiment.measure import Deployment
from routing.core.experiment.table import Table
from routing.core.keys import V_MAX


def weights(table: Table, severity: float) -> Floats:
    """Probabilities (N,) of the rows in a deployment of ``severity`` s: proportional to exp(s h_i).

    h_i is the mid-rank of U_i in (0, 1) plus the mean loss of the models on i, divided by B.  The first part
    shifts U, as a corruption does; the second makes models worse at the same U, so that the calibration no
    longer tells the truth about either.  With s = 0 all rows are equally likely; with s = 1 an item that all
    models get wrong comes e times as often as one of the same U that all get right.
    """
    u = table.u[:, 0]
    ordered = np.sort(u)
    rank = np.searchsorted(ordered, u, side="left") + np.searchsorted(ordered, u, side="right")
    hardness = rank / (2 * table.size) + table.loss.mean(axis=1) / table.loss_bound
    raw = np.exp(severity * (hardness - hardness.max()))
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def deploy(table: Table, severity: float, rng: np.random.Generator) -> Deployment:
    """N rows drawn with replacement by those probabilities, with tie-breaks of their own."""
    items = rng.choice(table.size, table.size, p=weights(table, severity)).astype(np.int64)
    return Deployment(table.rows(items), rng.integers(0, V_MAX, table.size, endpoint=True))
