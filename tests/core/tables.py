"""A made-up table of outputs, for the tests of experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from routing.core.experiment.table import Table


def made_up(size: int, *, seed: int = 0, models: int = 2, ties: int | None = None) -> Table:
    """Models that err more where they are less certain; the last is the best; costs 1, 2, ..., people 8."""
    rng = np.random.default_rng(seed)
    u = rng.random((size, models))
    if ties:
        u = np.round(u, ties)
    wrong = rng.random((size, models)) < 0.5 * u**2 / np.arange(1, models + 1)
    truth = rng.integers(0, 9, size)
    given = np.where(wrong, (truth[:, None] + rng.integers(1, 9, (size, models))) % 9, truth[:, None])
    return Table(
        name="made-up",
        numbers=tuple(range(1, models + 1)),
        loss=wrong.astype(np.float64),
        usable=np.ones((size, models), dtype=np.bool_),
        u=u,
        costs=np.tile([*np.arange(1.0, models + 1), 8.0], (size, 1)),
        answers=given.astype(str).astype(object),
    )


def write_csv(path: Path, table: Table) -> Path:
    """The table as the file that an experiment reads; the label is always "yes"."""
    names = [f"{kind}{k}" for k in table.numbers for kind in ("pred", "conf", "cost")]
    lines = [",".join(["item_id", "y_true", *names, "cost_h"])]
    for row in range(table.size):
        cells = [f"item-{row}", "yes"]
        for k in range(table.models):
            answer = "no" if table.loss[row, k] else "yes"
            cells += [answer, repr(1 - float(table.u[row, k])), f"{table.costs[row, k]:g}"]
        lines.append(",".join([*cells, f"{table.costs[row, -1]:g}"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
