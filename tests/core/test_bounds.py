"""Bounds: the published test vectors, the common contract, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import comb, log, sqrt

import numpy as np
import pytest
from scipy import stats

from routing.core.bounds import BOUNDS, Bound, Evidence
from routing.core.bounds.base import Bound as Base
from routing.core.bounds.hypergeometric import largest_self_consistent, tail
from routing.core.exact import error_budget
from routing.core.targets.dataset import two_levels

VECTORS = [
    # N, n, epsilon, alpha, binomial, pool, one level for the data set, (s, c_s, c_0)
    (164, 100, "0.05", "0.05", 1, 2, 5, (3, 4, 1)),
    (500, 300, "0.05", "0.05", 8, 11, 24, (21, 22, 8)),
    (721, 300, "0.05", "0.05", 8, 10, 15, (13, 14, 7)),
    (3000, 450, "0.05", "0.05", 14, 15, 17, (15, 17, 11)),
    (3000, 500, "0.05", "0.05", 16, 17, 20, (18, 19, 13)),
    (100000, 1000, "0.05", "0.05", 38, 38, 38, (36, 38, 32)),
    (1000, 58, "0.05", "0.05", -1, 0, 0, (0, 0, -1)),
    (50000, 1000, "0.10", "0.01", 78, 78, 79, (77, 79, 71)),
]


def evidence(counts: list[float], *, asked: int, size: int, drawn: int = 0, p: str = "1") -> Evidence:
    return Evidence.of_counts(
        np.array(counts, dtype=float), asked=asked, drawn=drawn or asked, p=Fraction(p), pool_size=size
    )


@pytest.mark.parametrize(("size", "n", "epsilon", "alpha", "binomial", "pool", "one", "two"), VECTORS)
def test_largest_counts_that_certify(
    size: int, n: int, epsilon: str, alpha: str, binomial: int, pool: int, one: int, two: tuple[int, int, int]
) -> None:
    none = evidence([0], asked=n, size=size)
    limit, level = Fraction(epsilon), float(alpha)
    assert BOUNDS.get("binomial").largest_count(none, limit, level, target="population") == binomial
    assert BOUNDS.get("hypergeometric").largest_count(none, limit, level, target="pool") == pool
    assert BOUNDS.get("hypergeometric").largest_count(none, limit, level, target="dataset") == one
    budget = error_budget(epsilon, size)
    levels = two_levels(pool_size=size, asked=n, budget=budget, level=Fraction(alpha))
    wide = 9 * Fraction(alpha) / 10
    largest = largest_self_consistent(size, budget, n, float(wide))
    assert levels.s == max(0, largest - 2)
    if two[0]:
        assert (levels.s, levels.wide, levels.narrow) == two
    else:  # with s = 0 there is a single test at the full level
        assert (levels.s, levels.wide) == two[:2]
        assert (
            Base.largest_count(
                BOUNDS.get("hypergeometric"), none, limit, float(Fraction(alpha) / 10), target="pool"
            )
            == two[2]
        )


def test_one_level_count_at_a_reduced_level() -> None:
    assert largest_self_consistent(500, 25, 300, 0.045) == 23


@pytest.mark.parametrize(("size", "n", "epsilon", "alpha"), [row[:4] for row in VECTORS])
def test_the_largest_count_is_where_the_p_value_crosses_the_level(
    size: int, n: int, epsilon: str, alpha: str
) -> None:
    counts = evidence(list(range(n + 1)), asked=n, size=size)
    for name, target in (
        ("binomial", "population"),
        ("hypergeometric", "pool"),
        ("hypergeometric", "dataset"),
    ):
        bound = BOUNDS.get(name)
        p = bound.p_values(counts, Fraction(epsilon), target=target)
        assert np.all(np.diff(p) >= -1e-12)
        expected = int(np.flatnonzero(p <= float(alpha)).max(initial=-1))
        assert bound.largest_count(counts, Fraction(epsilon), float(alpha), target=target) == expected


def test_the_hypergeometric_tail_is_exact() -> None:
    for size, wrong, asked in ((12, 3, 5), (30, 11, 17), (200, 21, 60), (60, 60, 10), (25, 0, 25)):
        for count in range(asked + 1):
            hits = sum(
                comb(wrong, k) * comb(size - wrong, asked - k)
                for k in range(count + 1)
                if asked - k <= size - wrong
            )
            assert tail(size, wrong, asked, count) == pytest.approx(hits / comb(size, asked), rel=1e-12)
    assert tail(10, 11, 5, 5) == 0.0  # no pool of ten holds eleven wrong labels


def test_the_hypergeometric_tail_in_a_large_pool() -> None:
    """Against the recurrence of the probabilities, summed from the mode outwards."""
    size, wrong, asked = 1_000_000, 50_001, 10_000
    k = np.arange(asked + 1, dtype=np.float64)
    ratio = (wrong - k[:-1]) * (asked - k[:-1]) / ((k[:-1] + 1) * (size - wrong - asked + k[:-1] + 1))
    weight = np.concatenate([[0.0], np.cumsum(np.log(ratio))])
    weight = np.exp(weight - weight.max())
    reference = np.cumsum(weight) / weight.sum()
    counts = np.arange(400, 600)
    assert np.allclose(tail(size, wrong, asked, counts), reference[counts], rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_p_values_of_the_exact_bounds_are_valid(alpha: float) -> None:
    """P(p <= alpha) <= alpha wherever the hypothesis holds, by summing over every outcome."""
    size, asked, epsilon = 40, 17, Fraction(1, 10)
    counts = np.arange(asked + 1)
    binomial = BOUNDS.get("binomial")
    p = binomial.p_values(evidence(list(counts), asked=asked, size=size), epsilon, target="population")
    for true_risk in (0.1, 0.15, 0.4):
        assert stats.binom.pmf(counts, asked, true_risk)[p <= alpha].sum() <= alpha + 1e-12
    hypergeometric = BOUNDS.get("hypergeometric")
    for target in ("pool", "dataset"):
        p = hypergeometric.p_values(evidence(list(counts), asked=asked, size=size), epsilon, target=target)
        for wrong in range(5, size + 1):
            outcome = stats.hypergeom.pmf(counts, size, wrong, asked)
            exceeds = wrong > 4 if target == "pool" else wrong - counts > 4
            assert outcome[(p <= alpha) & exceeds].sum() <= alpha + 1e-12


CASES = [
    ("binomial", "population"),
    ("hypergeometric", "pool"),
    ("hypergeometric", "dataset"),
    ("hoeffding", "population"),
    ("hoeffding", "pool"),
    ("clt", "population"),
]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_the_upper_bound_inverts_the_p_value(name: str, target: str) -> None:
    bound = BOUNDS.get(name)
    seen = evidence([0, 1, 7, 20, 60], asked=90, drawn=100, size=2000, p="0.9")
    upper = bound.upper(seen, 0.05, target=target)
    bisected = Base.upper(bound, seen, 0.05, target=target)
    step = 1 / 2000 if name == "hypergeometric" else 1e-9  # a finite pool knows only multiples of 1 / N
    inside = upper <= 1
    assert np.allclose(np.minimum(upper, 1)[inside], bisected[inside], atol=step)
    assert np.all(np.diff(upper) > 0)
    above = np.minimum(upper + 2 * step, 1.0)
    rejected = bound.p_values(seen, above, target=target) <= 0.05
    assert np.all(rejected[above < 1])


def test_every_wrong_answer_gives_the_trivial_bound() -> None:
    seen = evidence([10], asked=10, size=100)
    assert BOUNDS.get("binomial").upper(seen, 0.05, target="population")[0] == 1.0
    assert BOUNDS.get("hypergeometric").upper(seen, 0.05, target="pool")[0] == 1.0


def test_hoeffding_is_the_formula_of_the_paper() -> None:
    seen = evidence([9], asked=450, drawn=500, size=3000, p="0.9")
    expected = 9 / 0.9 / 500 + 1 / (0.9 * sqrt(2 * 500)) * sqrt(log(1 / 0.05))
    assert BOUNDS.get("hoeffding").upper(seen, 0.05, target="population")[0] == pytest.approx(expected)


def test_clt_is_the_formula_of_the_paper() -> None:
    m, p, errors = 500, 0.9, 9
    weighted = np.concatenate([np.full(errors, 1 / p), np.zeros(m - errors)])
    expected = weighted.mean() + stats.norm.ppf(0.95) * weighted.std(ddof=1) / sqrt(m)
    seen = evidence([errors], asked=450, drawn=m, size=3000, p="0.9")
    assert BOUNDS.get("clt").upper(seen, 0.05, target="population")[0] == pytest.approx(expected)


def test_clt_passes_a_policy_at_the_limit_far_too_often() -> None:
    """One policy with R = epsilon = 0.05, m = 500, p = 0.9: 0.093 instead of 0.05."""
    counts = np.arange(501)
    seen = evidence(list(counts), asked=450, drawn=500, size=3000, p="0.9")
    passes = BOUNDS.get("clt").upper(seen, 0.05, target="population") <= 0.05
    assert stats.binom.pmf(counts, 500, 0.045)[passes].sum() == pytest.approx(0.093, abs=5e-4)


def test_clt_without_an_observed_loss_is_zero() -> None:
    assert BOUNDS.get("clt").upper(evidence([0], asked=5, size=100), 0.05, target="population")[0] == 0.0


@pytest.mark.parametrize(
    ("name", "target", "binary", "constant", "instead"),
    [
        ("clt", "population", True, True, "binomial"),
        ("clt", "dataset", True, True, "hypergeometric"),
        ("clt", "pool", False, True, "hoeffding"),
        ("binomial", "dataset", True, True, "hypergeometric"),
        ("binomial", "population", False, True, "hoeffding"),
        ("binomial", "population", True, False, "hoeffding"),
        ("hypergeometric", "population", True, True, "binomial"),
        ("hypergeometric", "pool", False, True, "hoeffding"),
        ("hypergeometric", "pool", True, False, "hoeffding"),
    ],
)
def test_invalid_combinations_are_refused_in_words(
    name: str, target: str, binary: bool, constant: bool, instead: str
) -> None:
    refusal = BOUNDS.get(name).refusal(target=target, binary=binary, constant_p=constant)
    assert f"'{name}'" in refusal
    assert f"use '{instead}'" in refusal


def test_valid_combinations_are_not_refused() -> None:
    for name, target in CASES[:-1]:
        assert BOUNDS.get(name).refusal(target=target, binary=True) == ""
    assert not BOUNDS.get("clt").certifies


def smallest(bound: Bound, epsilon: str, size: int, alpha: float = 0.05, p: str = "1") -> int:
    return bound.smallest_sample(
        epsilon=Fraction(epsilon), alpha=alpha, p=Fraction(p), pool_size=size, loss_bound=1.0
    )


def test_the_smallest_sample_that_certifies_anything() -> None:
    assert smallest(BOUNDS.get("hypergeometric"), "0.05", 1000) == 56
    assert smallest(BOUNDS.get("binomial"), "0.05", 1000) == 59
    for size in (20, 164, 721, 50000):
        n = smallest(BOUNDS.get("hypergeometric"), "0.05", size)
        marked = error_budget(Decimal("0.05"), size) + 1
        assert tail(size, marked, n, 0) <= 0.05 < tail(size, marked, n - 1, 0)
    n = smallest(BOUNDS.get("hoeffding"), "0.05", 10**6, p="0.5")
    m = 2 * n
    assert (
        BOUNDS.get("hoeffding").upper(
            evidence([0], asked=n, drawn=m, size=10**6, p="0.5"), 0.05, target="pool"
        )[0]
        <= 0.05
    )
    assert (
        BOUNDS.get("hoeffding").upper(
            evidence([0], asked=n - 2, drawn=m - 4, size=10**6, p="0.5"), 0.05, target="pool"
        )[0]
        > 0.05
    )
