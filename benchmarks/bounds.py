"""How tight the bounds are, and how long they take: tables for docs/methods.md.

    .venv/bin/python benchmarks/bounds.py

Upper bounds at alpha = 0.05 for the same observed losses, which come evenly along the draw; the least number
of labels with which each certifies anything; medians of five timed runs.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from routing.core.bounds import BOUNDS, Evidence
from routing.core.bounds.base import full_losses
from routing.core.console import unread_output

ALPHA = 0.05
SAMPLES = ((3_000, 100), (3_000, 500), (100_000, 2_000))
"""N, m; p = 0.9."""
SHARES = (Fraction(0), Fraction(1, 50), Fraction(1, 20))
"""Observed errors, as a share of the asked items."""


def main() -> None:
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}\n")
    for binary in (True, False):
        uppers(binary)
    varying()
    labels()
    times()


def sizes(size: int, drawn: int, *, binary: bool) -> Evidence:
    """A draw without results: the size of everything."""
    p = Fraction(9, 10)
    empty = Evidence.of_counts(np.zeros(1), asked=int(drawn * p), drawn=drawn, p=p, pool_size=size)
    return replace(empty, binary=binary)


def uppers(binary: bool) -> None:
    """Upper bounds; a loss that is not 0-1 is 0.3 where it is not 0."""
    print(f"{'0-1 loss' if binary else 'a loss of 0.3 where it is not 0'}; upper bounds\n")
    cells = [(size, drawn, share) for size, drawn in SAMPLES for share in SHARES]
    heads = [f"{int(drawn * Fraction(9, 10) * share)} of {drawn * 9 // 10}" for _, drawn, share in cells]
    print("| bound | target | " + " | ".join(heads) + " |")
    print("|---|---|" + "---|" * len(heads))
    for bound in BOUNDS:
        for target in ("pool", "population"):
            if bound.certifies and bound.refusal(target=target, binary=binary):
                continue
            if not bound.certifies and target == "pool":
                continue
            values = []
            for size, drawn, share in cells:
                base = sizes(size, drawn, binary=binary)
                seen = full_losses(base, int(base.asked * share))
                if not binary:
                    seen = scaled(seen, 0.3)
                values.append(f"{bound.upper(seen, ALPHA, target=target)[0]:.4f}")
            print(f"| `{bound.name}` | {target} | " + " | ".join(values) + " |")
    print()


def varying() -> None:
    """Upper bounds where half of the items are asked about with p = 0.9 and half with 0.5."""
    print(
        "0-1 loss, p = 0.9 for half of the items and 0.5 for the others; N = 3,000, m = 500; upper bounds\n"
    )
    p, drawn = Fraction(7, 10), 500
    counts = (0, 7, 17)
    heads = [f"{count} of {drawn * 7 // 10}" for count in counts]
    print("| bound | target | " + " | ".join(heads) + " |")
    print("|---|---|" + "---|" * len(heads))
    base = Evidence.of_counts(np.zeros(1), asked=350, drawn=drawn, p=p, pool_size=3_000)
    base = replace(base, p_min=Fraction(1, 2))
    for bound in BOUNDS:
        for target in ("pool", "population"):
            if bound.refusal(target=target, binary=True, constant_p=False):
                continue
            values = [bound.upper(full_losses(base, count), ALPHA, target=target)[0] for count in counts]
            print(f"| `{bound.name}` | {target} | " + " | ".join(f"{value:.4f}" for value in values) + " |")
    print()


def scaled(seen: Evidence, factor: float) -> Evidence:
    rows = seen.rows
    assert rows is not None
    return replace(
        seen,
        total=factor * seen.total,
        squares=factor**2 * seen.squares,
        rows=lambda start, stop: factor * rows(start, stop),
    )


def labels() -> None:
    print("Least number of labels with which no observed loss certifies epsilon; N = 3,000, p = 0.9\n")
    print("| bound | target | " + " | ".join(f"{epsilon}" for epsilon in (0.1, 0.05, 0.02, 0.01)) + " |")
    print("|---|---|---|---|---|---|")
    for bound in BOUNDS:
        for target in ("pool", "population"):
            if not bound.certifies or bound.refusal(target=target, binary=True):
                continue
            least = [
                bound.smallest_sample(
                    epsilon=Fraction(1, whole),
                    alpha=ALPHA,
                    p=Fraction(9, 10),
                    pool_size=3_000,
                    loss_bound=1.0,
                    target=target,
                )
                for whole in (10, 20, 50, 100)
            ]
            print(f"| `{bound.name}` | {target} | " + " | ".join(f"{n:,}" for n in least) + " |")
    print()


def times() -> None:
    """300 policies, m = 10,000, N = 1,000,000."""
    print("300 policies, N = 1,000,000, n = 10,000: p-values, upper bounds, in milliseconds\n")
    print("| bound | p-values | upper bounds |")
    print("|---|---|---|")
    rng = np.random.default_rng(0)
    rows = (rng.random((300, 10_000)) < np.linspace(0, 0.1, 300)[:, None]).astype(float)
    seen = replace(
        Evidence.of_counts(rows.sum(axis=1), asked=10_000, drawn=10_000, p=Fraction(1), pool_size=10**6),
        rows=lambda start, stop: rows[start:stop],
    )
    for bound in BOUNDS:
        target = "pool" if not bound.refusal(target="pool", binary=True) else "population"
        p = median_ms(lambda bound=bound, target=target: bound.p_values(seen, Fraction(1, 20), target=target))
        upper = median_ms(lambda bound=bound, target=target: bound.upper(seen, ALPHA, target=target))
        print(f"| `{bound.name}` | {p:.1f} | {upper:.1f} |")


def median_ms(step: Callable[[], object]) -> float:
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        step()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


if __name__ == "__main__":
    with unread_output():
        main()
