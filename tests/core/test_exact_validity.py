"""Every bound that certifies, against every possible outcome of a tiny draw.

No randomness is left: all draws, all decisions whom to ask and all sequences of items are listed with their
probabilities, and "the target exceeds r" is true.  Then P[p-value <= t] must not exceed t, at any t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import comb, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from routing.core.bounds import BOUNDS, Bound, Evidence

Array = NDArray[np.float64]
LEVELS = (0.1, 0.2, 0.3, 0.4)
BELOW = Fraction(1, 10**6)
"""r lies this far below the target: the hypothesis is true, and hardest to keep."""


@dataclass(frozen=True)
class Outcomes:
    """All outcomes with n asked items: probabilities (D,) and what a bound sees of each."""

    chance: Array
    evidence: Evidence


def bounds(target: str, *, binary: bool, constant_p: bool) -> list[Bound]:
    return [
        bound
        for bound in BOUNDS
        if bound.certifies and not bound.refusal(target=target, binary=binary, constant_p=constant_p)
    ]


def names(target: str, *, binary: bool, constant_p: bool) -> list[str]:
    return [bound.name for bound in bounds(target, binary=binary, constant_p=constant_p)]


def excess(bound: Bound, outcomes: Sequence[Outcomes], r: Fraction, target: str, level: float) -> float:
    """The largest P[p-value <= t] - t over all t below 1."""
    chance = np.concatenate([outcome.chance for outcome in outcomes])
    values = np.concatenate(
        [bound.p_values(outcome.evidence, r, target=target, level=level) for outcome in outcomes]
    )
    assert np.all((values >= 0) & (values <= 1))
    assert chance.sum() == pytest.approx(1)
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(chance[order])
    last = np.append(np.diff(values) > 0, True) & (values < 1)
    return float((reached[last] - values[last]).max(initial=-1.0))


def seen(
    rows: Array, asked: int, *, drawn: int, p: Fraction, pool_size: int, bound: float, binary: bool
) -> Evidence:
    """Evidence for a constant p: ``rows`` (D, n) are the losses of the asked items in draw order."""
    return Evidence(
        total=rows.sum(axis=1),
        squares=(rows**2).sum(axis=1),
        asked=asked,
        drawn=drawn,
        p=p,
        pool_size=pool_size,
        loss_bound=bound,
        binary=binary,
        rows=lambda start, stop: rows[start:stop],
    )


def draws_of(
    losses: Sequence[float], m: int, p: Fraction, *, bound: float, binary: bool, ordered: bool
) -> list[Outcomes]:
    """All draws of m items from the pool ``losses``, each asked with probability ``p``: given that n are
    asked, they are a simple random sample of n.
    """
    pool, found = np.array(losses, dtype=np.float64), []
    for asked in range(m + 1):
        chosen = list((permutations if ordered else combinations)(range(len(pool)), asked))
        rows = pool[np.array(chosen, dtype=np.int64).reshape(len(chosen), asked)]
        chance = float(comb(m, asked) * p**asked * (1 - p) ** (m - asked)) / len(chosen)
        if chance > 0:
            evidence = seen(rows, asked, drawn=m, p=p, pool_size=len(pool), bound=bound, binary=binary)
            found.append(Outcomes(np.full(len(chosen), chance), evidence))
    return found


def sequences_of(
    law: Sequence[tuple[Fraction, float]], m: int, p: Fraction, *, bound: float, binary: bool
) -> list[Outcomes]:
    """All sequences of m independent items with losses from ``law`` (probability, loss), asked with ``p``."""
    found = []
    for asked in range(m + 1):
        chosen = list(product(law, repeat=asked))
        rows = np.array([[loss for _, loss in items] for items in chosen], dtype=np.float64)
        chance = np.array([float(prod((q for q, _ in items), start=Fraction(1))) for items in chosen])
        chance *= float(comb(m, asked) * p**asked * (1 - p) ** (m - asked))
        if chance.any():
            rows = rows.reshape(len(chosen), asked)
            evidence = seen(rows, asked, drawn=m, p=p, pool_size=1000, bound=bound, binary=binary)
            found.append(Outcomes(chance, evidence))
    return found


Row = tuple[float, Fraction]
"""Loss of an item and the probability with which it is asked about."""


def with_varying_p(
    lines: Iterator[tuple[Fraction, Sequence[Row]]], *, pool_size: int, bound: float, binary: bool
) -> list[Outcomes]:
    """All decisions whom to ask along each of ``lines`` (probability, drawn rows)."""
    by_asked: dict[int, tuple[list[float], list[list[float]], list[list[float]]]] = {}
    smallest = Fraction(1)
    for share, rows in lines:
        for asked in product((0, 1), repeat=len(rows)):
            chance = share * prod((p if z else 1 - p for z, (_, p) in zip(asked, rows, strict=True)))
            smallest = min(smallest, *(p for _, p in rows))
            if chance:
                chances, plain, weighted = by_asked.setdefault(sum(asked), ([], [], []))
                chances.append(float(chance))
                plain.append([z * loss for z, (loss, _) in zip(asked, rows, strict=True)])
                weighted.append([z * loss / float(p) for z, (loss, p) in zip(asked, rows, strict=True)])
    found = []
    for asked_count, (chances, plain, weighted) in by_asked.items():
        losses, heavy = np.array(plain), np.array(weighted)
        evidence = Evidence(
            total=losses.sum(axis=1),
            squares=(losses**2).sum(axis=1),
            asked=asked_count,
            drawn=losses.shape[1],
            p=Fraction(1, 2),
            pool_size=pool_size,
            loss_bound=bound,
            binary=binary,
            weighted=heavy.sum(axis=1),
            weighted_squares=(heavy**2).sum(axis=1),
            p_min=smallest,
            rows=lambda start, stop, heavy=heavy: heavy[start:stop],  # type: ignore[misc]
        )
        found.append(Outcomes(np.array(chances), evidence))
    return found


# --- One probability of asking ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names("pool", binary=True, constant_p=True))
@pytest.mark.parametrize(("size", "m", "p"), [(7, 4, 1), (7, 6, 1), (6, 6, 1), (7, 5, Fraction(1, 2))])
def test_pool_zero_one(name: str, size: int, m: int, p: Fraction) -> None:
    bound = BOUNDS.get(name)
    for wrong in range(1, size + 1):
        losses = [1.0] * wrong + [0.0] * (size - wrong)
        outcomes = draws_of(losses, m, Fraction(p), bound=1, binary=True, ordered=bound.sequential)
        for level in LEVELS if bound.sequential else LEVELS[:1]:
            r = (wrong - BELOW) / size
            assert excess(bound, outcomes, r, "pool", level) <= 1e-9, (wrong, level)


@pytest.mark.parametrize("name", names("pool", binary=False, constant_p=True))
@pytest.mark.parametrize(("m", "p"), [(3, 1), (5, 1), (4, Fraction(2, 3))])
@pytest.mark.parametrize("values", [(0, 0.5, 1), (0, 0.1, 2)])
def test_pool_bounded(name: str, m: int, p: Fraction, values: tuple[float, ...]) -> None:
    bound = BOUNDS.get(name)
    for losses in combinations_with_replacement(values, 5):
        mean = Fraction(sum(Fraction(str(loss)) for loss in losses), 5)
        if mean > 0:
            outcomes = draws_of(
                losses, m, Fraction(p), bound=max(values), binary=False, ordered=bound.sequential
            )
            for level in LEVELS if bound.sequential else LEVELS[:1]:
                assert excess(bound, outcomes, mean - BELOW, "pool", level) <= 1e-9, (losses, level)


LAWS = [
    [(Fraction(1, 10), 1.0), (Fraction(9, 10), 0.0)],
    [(Fraction(1, 2), 1.0), (Fraction(1, 2), 0.0)],
    [(Fraction(9, 10), 1.0), (Fraction(1, 10), 0.0)],
]
BOUNDED_LAWS = [
    [(Fraction(1, 5), 2.0), (Fraction(1, 5), 0.5), (Fraction(3, 5), 0.0)],
    [(Fraction(1, 2), 0.25), (Fraction(1, 2), 0.0)],
    [(Fraction(1, 50), 2.0), (Fraction(49, 50), 0.125)],
]


def mean_of(law: Sequence[tuple[Fraction, float]]) -> Fraction:
    return sum((q * Fraction(loss) for q, loss in law), start=Fraction(0))


@pytest.mark.parametrize("name", names("population", binary=True, constant_p=True))
@pytest.mark.parametrize(("m", "p"), [(1, 1), (7, 1), (6, Fraction(1, 3))])
def test_population_zero_one(name: str, m: int, p: Fraction) -> None:
    bound = BOUNDS.get(name)
    for law in LAWS:
        outcomes = sequences_of(law, m, Fraction(p), bound=1, binary=True)
        for level in LEVELS if bound.sequential else LEVELS[:1]:
            assert excess(bound, outcomes, mean_of(law) - BELOW, "population", level) <= 1e-9, (law, level)


@pytest.mark.parametrize("name", names("population", binary=False, constant_p=True))
@pytest.mark.parametrize(("m", "p"), [(2, 1), (6, 1), (5, Fraction(1, 3))])
def test_population_bounded(name: str, m: int, p: Fraction) -> None:
    bound = BOUNDS.get(name)
    for law in BOUNDED_LAWS:
        outcomes = sequences_of(law, m, Fraction(p), bound=2, binary=False)
        for level in LEVELS if bound.sequential else LEVELS[:1]:
            assert excess(bound, outcomes, mean_of(law) - BELOW, "population", level) <= 1e-9, (law, level)


# --- Probabilities that vary --------------------------------------------------------------------------------

HALF, FIFTH = Fraction(1, 2), Fraction(1, 5)


@pytest.mark.parametrize("binary", [True, False])
def test_pool_with_varying_probabilities(binary: bool) -> None:
    checked = bounds("pool", binary=binary, constant_p=False)
    assert checked
    middle = 1.0 if binary else 0.3
    pools: list[list[Row]] = [
        [(1.0, HALF), (0.0, FIFTH), (0.0, Fraction(1)), (0.0, HALF), (0.0, FIFTH)],
        [(1.0, FIFTH), (1.0, FIFTH), (0.0, Fraction(1)), (middle, HALF), (0.0, HALF)],
        [(1.0, FIFTH), (1.0, Fraction(1)), (1.0, HALF), (middle, FIFTH), (middle, FIFTH)],
    ]
    for pool in pools:
        mean = sum((Fraction(str(loss)) for loss, _ in pool), start=Fraction(0)) / len(pool)
        for m in (2, 4):
            draws = list(permutations(pool, m))
            outcomes = with_varying_p(
                ((Fraction(1, len(draws)), rows) for rows in draws), pool_size=5, bound=1, binary=binary
            )
            for bound in checked:
                assert excess(bound, outcomes, mean - BELOW, "pool", 0.1) <= 1e-9, (bound.name, pool, m)


@pytest.mark.parametrize("binary", [True, False])
def test_population_with_varying_probabilities(binary: bool) -> None:
    checked = bounds("population", binary=binary, constant_p=False)
    assert checked
    middle = 1.0 if binary else 0.3
    laws: list[list[tuple[Fraction, Row]]] = [
        [(Fraction(1, 10), (1.0, FIFTH)), (Fraction(9, 10), (0.0, HALF))],
        [(HALF, (1.0, HALF)), (FIFTH, (middle, FIFTH)), (Fraction(3, 10), (0.0, Fraction(1)))],
        [(Fraction(9, 10), (1.0, FIFTH)), (Fraction(1, 10), (middle, Fraction(1)))],
    ]
    for law in laws:
        mean = sum((q * Fraction(str(loss)) for q, (loss, _) in law), start=Fraction(0))
        for m in (1, 4):
            lines = (
                (prod((q for q, _ in items), start=Fraction(1)), [row for _, row in items])
                for items in product(law, repeat=m)
            )
            outcomes = with_varying_p(lines, pool_size=100, bound=1, binary=binary)
            for bound in checked:
                for level in LEVELS if bound.sequential else LEVELS[:1]:
                    assert excess(bound, outcomes, mean - BELOW, "population", level) <= 1e-9, (
                        bound.name,
                        law,
                        m,
                        level,
                    )


# --- The listing itself -------------------------------------------------------------------------------------


def test_the_listing_finds_a_bound_that_does_not_hold_its_level() -> None:
    outcomes = draws_of([1.0] + [0.0] * 6, 4, Fraction(1), bound=1, binary=True, ordered=False)
    clt: Callable[..., Array] = BOUNDS.get("clt").p_values
    assert clt(outcomes[-1].evidence, Fraction(1, 8), target="pool").min() == 0
    assert excess(BOUNDS.get("clt"), outcomes, (1 - BELOW) / 7, "pool", 0.1) > 0.4


def test_the_exact_test_attains_its_level() -> None:
    outcomes = draws_of([1.0] * 2 + [0.0] * 5, 3, Fraction(1), bound=1, binary=True, ordered=False)
    assert excess(BOUNDS.get("hypergeometric"), outcomes, (2 - BELOW) / 7, "pool", 0.1) == pytest.approx(0)
