"""How long the statistics take: chains from a pilot, then the certificate.

    python benchmarks/core.py [--runs 5] [--sizes 1497:300,100000:2000,1000000:10000]

Prints medians in milliseconds, and the ratio of each to the smallest size, for worlds in which two models err
more where they are less certain.
"""

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import scipy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from routing.core.bounds.hypergeometric import largest_count, largest_self_consistent
from routing.core.calibration import sorted_losses
from routing.core.certify import certify_losses
from routing.core.chain import PilotData, build_chains
from routing.core.plan import Plan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each step, after one that is not")
    parser.add_argument("--sizes", default="1497:300,100000:2000,1000000:10000", help="N:m, ...")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}, medians of {options.runs} runs")
    print(f"{'N':>10} {'m':>7} {'chains':>12} {'ratio':>7} {'certify':>12} {'ratio':>7}")
    first: tuple[float, float] | None = None
    for part in options.sizes.split(","):
        size, drawn = (int(number) for number in part.split(":"))
        chains, certify = measure(size, drawn, options.runs)
        first = first or (chains, certify)
        print(
            f"{size:>10,} {drawn:>7,} {chains:>9.1f} ms {chains / first[0]:>7.1f}"
            f" {certify:>9.1f} ms {certify / first[1]:>7.1f}"
        )


def measure(size: int, drawn: int, runs: int) -> tuple[float, float]:
    """Median milliseconds of building the chains and of certifying."""
    rng = np.random.default_rng(0)
    u, v = rng.random(size), rng.integers(0, 2**53, size)
    errors = np.column_stack([rng.random(size) < 0.4 * u**2, rng.random(size) < 0.2 * u**2])
    plan = Plan(
        epsilon=Decimal("0.05"),
        alpha=Decimal("0.05"),
        target="dataset",
        m=drawn,
        p=Decimal("0.9"),
        pool_size=size,
        costs=(Decimal(1000), Decimal(6000), Decimal(32768)),
    )
    pilot_items = rng.choice(size, plan.pilot, replace=False)
    answers = np.where(errors[pilot_items], [["wrong by 1", "wrong by 2"]], "right").astype(object)
    pilot = PilotData.of(u=u[pilot_items], v=v[pilot_items], answers=answers)
    asked = rng.choice(size, drawn, replace=False)[rng.random(drawn) < 0.9]
    losses = errors[asked].astype(float)

    chains = build_chains(plan, u=u, v=v, pilot=pilot)
    return (
        median_ms(lambda: build_chains(plan, u=u, v=v, pilot=pilot), runs),
        median_ms(
            lambda: certify_losses(
                plan, chains, sorted_losses(u[asked], v[asked], losses, losses, drawn=drawn)
            ),
            runs,
        ),
    )


def median_ms(step: Callable[[], object], runs: int) -> float:
    times = []
    for run in range(runs + 1):
        # What one analysis computes once, each timed run computes, too.
        largest_count.cache_clear()
        largest_self_consistent.cache_clear()
        start = time.perf_counter()
        step()
        if run:
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


if __name__ == "__main__":
    main()
