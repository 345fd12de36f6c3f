"""How tight the bounds are: tables for docs/methods.md.

    .venv/bin/python benchmarks/bounds.py

Upper bounds at alpha = 0.05 for the same observed losses, which come evenly along the draw; and the least
number of labels with which each certifies anything.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from runner import Table, machine

from routing.core.bounds import BOUNDS, Evidence
from routing.core.bounds.base import Bound, full_losses
from routing.core.console import unread_output

ALPHA = 0.05
HUNDREDTHS = (0, 2, 5)
"""Observed errors, as a share of the asked items."""


def main() -> None:
    print(machine("numpy", "scipy"))
    samples = [sizes(3_000, 100), sizes(3_000, 500), sizes(100_000, 2_000)]
    cells = [(drawn, drawn.asked * share // 100) for drawn in samples for share in HUNDREDTHS]
    others = [(bound, "population") for bound in BOUNDS if not bound.certifies]
    uppers("0-1 loss", cells, [*offered(), *others])
    graded = [(replace(drawn, binary=False), count) for drawn, count in cells]
    uppers("a loss of 0.3 where it is not 0", graded, [*offered(binary=False), *others], factor=0.3)
    varying = replace(sizes(3_000, 500, Fraction(7, 10)), p_min=Fraction(1, 2))
    title = "0-1 loss, p = 0.9 for half of the items and 0.5 for the rest; N = 3,000, m = 500"
    uppers(title, [(varying, count) for count in (0, 7, 17)], offered(constant_p=False))
    labels()


def offered(*, binary: bool = True, constant_p: bool = True) -> Iterator[tuple[Bound, str]]:
    """Every bound with the targets that it may serve."""
    for bound in BOUNDS:
        for target in ("pool", "population"):
            if not bound.refusal(target=target, binary=binary, constant_p=constant_p):
                yield bound, target


def sizes(size: int, drawn: int, p: Fraction = Fraction(9, 10)) -> Evidence:
    """A draw without results: the size of everything."""
    return Evidence.of_counts(np.zeros(1), asked=int(drawn * p), drawn=drawn, p=p, pool_size=size)


def uppers(
    title: str, cells: Sequence[tuple[Evidence, int]], bounds: Iterable[tuple[Bound, str]], factor: float = 1
) -> None:
    """Upper bounds for draws with so many losses of ``factor`` each."""
    heads = [f"{count} of {drawn.asked}" for drawn, count in cells]
    table = Table("bound", "target", *heads, title=f"{title}; upper bounds")
    for bound, target in bounds:
        seen = (scaled(full_losses(drawn, count), factor) for drawn, count in cells)
        table.row(
            f"`{bound.name}`", target, *(f"{bound.upper(e, ALPHA, target=target)[0]:.4f}" for e in seen)
        )


def scaled(seen: Evidence, factor: float) -> Evidence:
    if factor == 1:
        return seen
    rows = seen.rows
    assert rows is not None
    return replace(
        seen,
        total=factor * seen.total,
        squares=factor**2 * seen.squares,
        rows=lambda start, stop: factor * rows(start, stop),
    )


def labels() -> None:
    title = "Least number of labels with which no observed loss certifies epsilon; N = 3,000, p = 0.9"
    table = Table("bound", "target", "0.1", "0.05", "0.02", "0.01", title=title)
    for bound, target in offered():
        if not bound.certifies:
            continue
        sample = partial(
            bound.smallest_sample,
            alpha=ALPHA,
            p=Fraction(9, 10),
            pool_size=3_000,
            loss_bound=1.0,
            target=target,
        )
        least = [sample(epsilon=Fraction(1, whole)) for whole in (10, 20, 50, 100)]
        table.row(f"`{bound.name}`", target, *(f"{count:,}" for count in least))


if __name__ == "__main__":
    with unread_output():
        main()
