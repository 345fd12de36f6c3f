"""How long an experiment takes: splits x methods x epsilons on a table, its reading apart.

    .venv/bin/python benchmarks/experiment.py [--rows 50000] [--repeats 100] [--runs 3]

Prints the median and all runs in seconds.  The table is made up: two models that err more where they are
less certain, each with a score of its own, so that every method can run.
"""

from decimal import Decimal
from statistics import median

import numpy as np
from runner import machine, parser_of, peak_mib, seconds_of

from routing.core.experiment.run import run
from routing.core.experiment.settings import Settings
from routing.core.experiment.table import Table

METHODS = (
    "fixed_sequence",
    "multi_chain",
    "pointwise_argmin",
    "pac_labeling_1",
    "cse",
    "coannotating",
)
EPSILONS = ("0.02", "0.03", "0.05", "0.075", "0.10")


def make_table(rows: int) -> Table:
    """Two models with scores of their own; 100 classes."""
    rng = np.random.default_rng(0)
    u = rng.random((rows, 2))
    u[:, 1] = (u[:, 0] + u[:, 1]) / 2
    wrong = rng.random((rows, 2)) < np.column_stack([0.6 * u[:, 0] ** 2, 0.4 * u[:, 1] ** 2])
    truth = rng.integers(0, 100, rows)
    given = np.where(wrong, (truth[:, None] + rng.integers(1, 100, (rows, 2))) % 100, truth[:, None])
    return Table(
        name="made up",
        numbers=(1, 2),
        loss=wrong.astype(np.float64),
        usable=np.ones((rows, 2), dtype=np.bool_),
        u=u,
        costs=np.tile([1.0, 2.0, 8.0], (rows, 1)),
        answers=given.astype(str).astype(object),
    )


def main() -> None:
    options = parser_of(
        __doc__,
        rows=(50_000, "of the table"),
        repeats=(100, "splits"),
        m=(1000, "items that are drawn"),
        runs=(3, "of all"),
    ).parse_args()
    print(machine("numpy", "scipy"))
    print(
        f"{options.repeats} splits x {len(METHODS)} methods x {len(EPSILONS)} epsilons, "
        f"{options.rows:,} rows, m = {options.m:,}: {', '.join(METHODS)}"
    )
    table = make_table(options.rows)
    settings = Settings(
        epsilons=tuple(map(Decimal, EPSILONS)), sizes=(options.m,), repeats=options.repeats, rules=METHODS
    )
    times = [seconds_of(lambda: run(table, settings)) for _ in range(options.runs)]
    listed = ", ".join(f"{seconds:.1f}" for seconds in times)
    print(f"median {median(times):.1f} s ({listed}), peak memory {peak_mib():.0f} MiB")


if __name__ == "__main__":
    main()
