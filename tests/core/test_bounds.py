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
from routing.core.bounds.hypergeometric import largest_count, largest_self_consistent, smallest_wrong
from routing.core.bounds.tails import tail
from routing.core.exact import error_budget
from routing.core.targets.dataset import two_levels

pytestmark = pytest.mark.costly

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


def exact_tail(size: int, wrong: int, asked: int, counts: list[int]) -> list[Fraction]:
    """The lower tail in whole numbers: neighbouring terms of the numerator have a rational ratio."""
    least, most = max(0, wrong + asked - size), min(wrong, asked)
    term, total, sums = comb(wrong, least) * comb(size - wrong, asked - least), comb(size, asked), {}
    summed = 0
    for k in range(least, most + 1):
        summed += term
        sums[k] = summed
        term = term * (wrong - k) * (asked - k) // ((k + 1) * (size - wrong - asked + k + 1))
    return [Fraction(0 if k < least else sums[min(k, most)], total) for k in counts]


def test_the_hypergeometric_tail_is_exact_in_small_pools() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 12, 25, 60, *rng.integers(100, 400, 40).tolist()):
        wrong, asked = (int(number) for number in rng.integers(0, size + 1, 2))
        counts = list(range(-1, asked + 2))
        expected = [float(value) for value in exact_tail(size, wrong, asked, counts)]
        assert np.allclose(tail(size, wrong, asked, np.array(counts)), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("size", "wrong", "asked", "counts"),
    [
        (1_000_000, 50_001, 10_000, [0, 5, 100, 300, 463, 499, 500, 501, 550, 700]),
        (1_000_000, 501, 9_000, [0, 1, 3, 4, 5, 10]),
        (100_000, 5_001, 2_000, [0, 50, 80, 100, 101, 140]),
        (10_018, 8_555, 1_064, [598, 700, 890, 908, 909]),
    ],
)
def test_the_hypergeometric_tail_is_exact_in_large_pools(
    size: int, wrong: int, asked: int, counts: list[int]
) -> None:
    got = tail(size, wrong, asked, np.array(counts))
    for value, expected in zip(got, exact_tail(size, wrong, asked, counts), strict=True):
        assert abs(Fraction(float(value)) / expected - 1) < Fraction(1, 10**11)


def test_the_hypergeometric_tail_takes_arrays_of_all_its_arguments() -> None:
    wrong, asked, count = np.array([[3], [11], [41]]), np.array([0, 5, 40]), np.array([0, 2, 10])
    got = tail(40, wrong, asked, count)
    assert got.shape == (3, 3)
    assert np.all(got[2] == 0.0)  # no pool of forty holds forty-one wrong labels, whatever is asked
    assert got[0, 1] == pytest.approx(float(exact_tail(40, 3, 5, [2])[0]), rel=1e-12)
    assert got[0, 2] == got[1, 0] == 1.0


@pytest.mark.parametrize(("size", "asked"), [(1, 1), (12, 5), (40, 17), (40, 39), (40, 40), (61, 3)])
def test_searches_find_what_trying_every_number_finds(size: int, asked: int) -> None:
    counts = np.arange(asked + 1)
    hypergeometric = BOUNDS.get("hypergeometric")
    for budget in range(size):
        in_the_set = tail(size, budget + 1 + counts, asked, counts)
        in_the_pool = tail(size, budget + 1, asked, counts)
        for level in (0.01, 0.05, 0.3, 0.9):
            failures = np.flatnonzero(np.append(in_the_set > level, True))
            assert largest_self_consistent(size, budget, asked, level) == failures[0] - 1
            assert largest_count(size, budget + 1, asked, level) == np.count_nonzero(in_the_pool <= level) - 1
            least = hypergeometric.smallest_sample(
                epsilon=Fraction(budget, size), alpha=level, p=Fraction(1), pool_size=size, loss_bound=1.0
            )
            assert least == np.argmax(tail(size, budget + 1, np.arange(size + 1), 0) <= level)


def test_the_least_wrong_labels_that_a_count_speaks_against() -> None:
    size, asked, level = 60, 20, 0.05
    counts = np.arange(asked + 1)
    least = smallest_wrong(size, asked, counts, level)
    tails = np.array([[tail(size, wrong, asked, k) for wrong in range(size + 2)] for k in counts])
    assert least.tolist() == [int(np.argmax(row <= level)) for row in tails]


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
    seen = evidence([0], asked=5, size=100)
    for alpha in (0.05, 1e-29):  # 1 - 1e-29 is 1 as a float
        assert BOUNDS.get("clt").upper(seen, alpha, target="population")[0] == 0.0


@pytest.mark.parametrize(
    ("name", "target", "binary", "constant", "instead"),
    [
        ("clt", "population", True, True, "binomial"),
        ("clt", "dataset", True, True, "hypergeometric"),
        ("clt", "pool", False, True, "betting_upper"),
        ("binomial", "dataset", True, True, "hypergeometric"),
        ("binomial", "population", False, True, "betting_upper"),
        ("binomial", "population", True, False, "betting_upper"),
        ("hypergeometric", "population", True, True, "binomial"),
        ("hypergeometric", "pool", False, True, "betting_upper"),
        ("hypergeometric", "pool", True, False, "hoeffding_bentkus"),
    ],
)
def test_invalid_combinations_are_refused_in_words(
    name: str, target: str, binary: bool, constant: bool, instead: str
) -> None:
    refusal = str(BOUNDS.get(name).refusal(target=target, binary=binary, constant_p=constant))
    assert f"'{name}'" in refusal
    assert f"use '{instead}'" in refusal


def test_valid_combinations_are_not_refused() -> None:
    for name, target in CASES[:-1]:
        assert BOUNDS.get(name).refusal(target=target, binary=True) is None
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


@pytest.mark.parametrize("epsilon", ["0.01", "0.05", "0.3"])
def test_the_smallest_sample_is_right_where_alpha_is_just_reached(epsilon: str) -> None:
    """alpha = (1 - epsilon)**n: logarithms rounded up or down would be one off."""
    for n in range(2, 120):
        reached = float(
            BOUNDS.get("binomial").p_values(
                evidence([0], asked=n, size=10**6), Fraction(epsilon), target="population"
            )[0]
        )
        assert smallest(BOUNDS.get("binomial"), epsilon, 10**6, alpha=reached) == n
        missed = float(np.nextafter(reached, 0.0))
        assert smallest(BOUNDS.get("binomial"), epsilon, 10**6, alpha=missed) == n + 1


def test_clt_passes_without_a_loss_whatever_the_sample() -> None:
    assert smallest(BOUNDS.get("clt"), "0.01", 1000) == 1
    passes = BOUNDS.get("clt").upper(evidence([0], asked=1, size=1000), 0.05, target="population")
    assert passes[0] <= 0.01
