"""How long an experiment takes: splits x methods x epsilons on a table, its reading apart.

    .venv/bin/python benchmarks/experiment.py [--rows 50000] [--repeats 100] [--runs 3]

Prints the median and all runs in seconds.  The table is made up: two models that err more where they are
less certain, each with a score of its own, so that every method can run.
"""

import argparse
import os
import platform
import resource
import statistics
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import scipy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--m", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}")
    print(
        f"{options.repeats} splits x {len(METHODS)} methods x {len(EPSILONS)} epsilons, "
        f"{options.rows:,} rows, m = {options.m:,}: {', '.join(METHODS)}"
    )
    table = make_table(options.rows)
    settings = Settings(
        epsilons=tuple(Decimal(value) for value in EPSILONS),
        sizes=(options.m,),
        repeats=options.repeats,
        rules=METHODS,
    )
    times = []
    for _ in range(options.runs):
        start = time.perf_counter()
        run(table, settings)
        times.append(time.perf_counter() - start)
    listed = ", ".join(f"{seconds:.1f}" for seconds in times)
    print(f"median {statistics.median(times):.1f} s ({listed})")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
