"""The test of asked items that the expert saw only in part: exact tails, its numbers, and its level."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from routing.core.bounds.tails import probability
from routing.core.reference.recheck import (
    default_weight,
    judge_weighted,
    largest_weighted_count,
    least_asked,
    recheck_levels,
    rechecked,
    weighted_tail,
)
from routing.core.targets.dataset import Levels, two_levels

pytestmark = pytest.mark.costly

VECTORS = [
    # N, n, n_B, E, w, the largest Q of one test at .05, and the largest probability of it
    (3000, 450, 225, 150, 3, 15, 0.04245),
    (3000, 450, 225, 150, 2, 11, 0.02753),
    (3000, 450, 135, 150, 6, 14, 0.04769),
    (3000, 450, 225, 300, 3, 35, 0.04717),
    (1000, 300, 150, 50, 3, 9, 0.03866),
    (164, 100, 50, 8, 3, 0, 0.03427),
]
TINY = [(6, 3, 1, 2), (7, 4, 2, 3), (8, 5, 2, 2), (9, 4, 4, 1), (10, 5, 2, 3)]
"""N, n, n_B and w of pools of which every draw is looked at."""


def tail_of(pool_size: int, asked: int, seen: int, weight: int, unlike: int, alike: int, most: int) -> float:
    settings = {"pool_size": pool_size, "asked": asked, "rechecked": seen, "weight": weight}
    of = {"unlike": np.array([unlike]), "alike": np.array([alike])}
    return float(weighted_tail(**settings, **of, most=most)[0, most])


def by_the_formula(size: int, asked: int, seen: int, w: int, unlike: int, alike: int, q: int) -> float:
    """The sum over the rechecked errors on unanimous items, and over the unseen ones."""
    hyp, total = stats.hypergeom, 0.0
    for b in range(min(alike, seen, q // w) + 1):
        for unseen in range(min(alike - b, asked - seen) + 1):
            total += (
                hyp.pmf(b, size, alike, seen)
                * hyp.pmf(unseen, size - seen, alike - b, asked - seen)
                * hyp.cdf(q - w * b, size - alike, unlike, asked - b - unseen)
                if asked - b - unseen <= size - alike
                else 0.0
            )
    return total


@pytest.mark.parametrize(("size", "asked", "seen", "budget", "w", "limit", "chance"), VECTORS)
def test_the_published_numbers(
    size: int, asked: int, seen: int, budget: int, w: int, limit: int, chance: float
) -> None:
    settings = {"pool_size": size, "asked": asked, "rechecked": seen, "weight": w}
    assert largest_weighted_count(**settings, wrong=budget + 1, level=0.05) == limit
    alike = np.arange(budget + 2)
    tails = weighted_tail(**settings, unlike=budget + 1 - alike, alike=alike, most=limit + 1)
    assert tails[:, limit].max() == pytest.approx(chance, abs=5e-6)
    assert tails[:, limit + 1].max() > 0.05


@pytest.mark.parametrize(
    ("size", "asked", "seen", "w", "unlike", "alike", "q"),
    [
        (3000, 450, 225, 3, 100, 51, 15),
        (3000, 450, 135, 6, 0, 151, 14),
        (1000, 300, 150, 3, 51, 0, 9),
        (164, 100, 50, 3, 4, 100, 40),
        (200, 180, 150, 2, 90, 80, 190),
    ],
)
def test_the_tail_is_the_sum_of_section_13(
    size: int, asked: int, seen: int, w: int, unlike: int, alike: int, q: int
) -> None:
    expected = by_the_formula(size, asked, seen, w, unlike, alike, q)
    assert tail_of(size, asked, seen, w, unlike, alike, q) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("size", "asked", "seen", "w"), TINY)
def test_the_tail_is_what_all_draws_show(size: int, asked: int, seen: int, w: int) -> None:
    for unlike, alike in product(range(size + 1), repeat=2):
        if unlike + alike > size:
            continue
        counts: Counter[int] = Counter()
        for items in combinations(range(size), asked):
            errors = sum(item < unlike for item in items)
            for first in combinations(items, seen):
                counts[errors + w * sum(unlike <= item < unlike + alike for item in first)] += 1
        total, draws = 0, sum(counts.values())
        for q in range(asked + (w - 1) * seen + 1):
            total += counts[q]
            assert tail_of(size, asked, seen, w, unlike, alike, q) == pytest.approx(total / draws, abs=1e-12)


@pytest.mark.parametrize(("size", "asked", "seen", "w"), TINY)
def test_the_numbers_hold_for_every_split_of_every_number_of_errors(
    size: int, asked: int, seen: int, w: int
) -> None:
    """Whatever is wrong where, more than E errors stay in the file with at most the level of both tests."""
    rows = [
        (items, set(some)) for items in combinations(range(size), asked) for some in combinations(items, seen)
    ]
    draws = np.array([items for items, _ in rows])
    first = np.array([[item in some for item in items] for items, some in rows])
    for budget, level in product((0, 1, 2), (Fraction(1, 5), Fraction(1, 2))):
        levels = recheck_levels(
            pool_size=size, asked=asked, rechecked=seen, weight=w, budget=budget, level=level
        )
        for unlike, alike in product(range(size + 1), repeat=2):
            if unlike + alike > size:
                continue
            errors = np.count_nonzero(draws < unlike, axis=1)
            more = np.count_nonzero((draws >= unlike) & (draws < unlike + alike) & first, axis=1)
            false = unlike + alike - errors - more > budget
            verdicts = {
                pair: judge_weighted(np.array([0, pair[0]]), np.array([0, pair[1]]), levels).eligible[1]
                for pair in set(zip(errors + w * more, errors + more, strict=True))
            }
            passed = [verdicts[pair] for pair in zip(errors + w * more, errors + more, strict=True)]
            assert np.mean(false & passed) <= float(level) + 1e-12


def test_with_every_asked_item_seen_it_is_the_test_of_a_data_set() -> None:
    for size, asked, budget in ((3000, 450, 150), (164, 100, 8), (721, 300, 36)):
        settings = {"pool_size": size, "asked": asked, "budget": budget, "level": Fraction(1, 20)}
        assert recheck_levels(**settings, rechecked=asked, weight=1) == two_levels(**settings)
        one = weighted_tail(
            pool_size=size,
            asked=asked,
            rechecked=asked,
            weight=1,
            unlike=np.array([budget, 2]),
            alike=np.array([1, budget - 1]),
            most=10,
        )
        assert one == pytest.approx(
            np.tile(stats.hypergeom.cdf(range(11), size, budget + 1, asked), (2, 1)), rel=1e-9
        )


@pytest.mark.parametrize(
    ("asked", "level", "expected"),
    [
        (450, Fraction(1, 20), Levels(15, 17, 10)),
        (450, Fraction(1, 60), Levels(8, 14, 8)),
        (500, Fraction(1, 60), Levels(13, 17, 11)),
    ],
)
def test_the_wide_limit_is_the_largest_two_above_its_s_and_s_the_least_that_has_it(
    asked: int, level: Fraction, expected: Levels
) -> None:
    settings = {"pool_size": 3000, "asked": asked, "rechecked": asked // 2, "weight": 3}
    levels = recheck_levels(**settings, budget=150, level=level)
    assert levels == expected

    def limit(s: int) -> int:
        return largest_weighted_count(**settings, wrong=151 + s, level=float(level * Fraction(9, 10)))

    limits = [limit(s) for s in range(levels.wide + 3)]
    assert levels.wide == max(count for s, count in enumerate(limits) if count >= s + 2)
    assert levels.s == min(s for s, count in enumerate(limits) if count >= levels.wide)
    assert levels.narrow == largest_weighted_count(**settings, wrong=151, level=float(level / 10))
    assert levels.wide > largest_weighted_count(**settings, wrong=151, level=float(level))


@pytest.mark.parametrize(
    ("size", "asked", "seen", "w", "budget", "limit"),
    [
        (3000, 240, 120, 3, 150, 4),  # two levels: 3, and nothing without two observed errors
        (3000, 330, 165, 3, 150, 8),  # two levels: 8, from 6 observed errors on
        (600, 230, 69, 6, 48, 6),
        (164, 100, 50, 3, 8, -1),
    ],
)
def test_one_level_stands_where_two_allow_no_more_or_need_observed_errors(
    size: int, asked: int, seen: int, w: int, budget: int, limit: int
) -> None:
    settings = {"pool_size": size, "asked": asked, "rechecked": seen, "weight": w}
    levels = recheck_levels(**settings, budget=budget, level=Fraction(1, 60))
    assert levels == Levels(0, limit, limit)
    assert limit == largest_weighted_count(**settings, wrong=budget + 1, level=float(Fraction(1, 60)))


def test_a_policy_without_an_error_that_passes_passes_with_more_asked_items_too() -> None:
    passes = []
    for asked in range(120, 361, 30):
        levels = recheck_levels(
            pool_size=3000,
            asked=asked,
            rechecked=asked // 2,
            weight=3,
            budget=150,
            level=Fraction(1, 60),
        )
        passes.append(bool(judge_weighted(np.zeros(2), np.zeros(2), levels).eligible[1]))
        least = least_asked(pool_size=3000, share="0.5", budget=150, level=Fraction(1, 60))
        assert passes[-1] == (asked >= least)
    assert passes[0] is False
    assert passes[-1] is True


def test_a_pool_of_20_000_takes_seconds() -> None:
    settings = {"pool_size": 20_000, "asked": 900, "rechecked": 450, "weight": 3}
    assert recheck_levels(**settings, budget=1000, level=Fraction(1, 60)) == Levels(21, 32, 26)


def test_how_many_are_rechecked_is_rounded_half_up_in_exact_decimals() -> None:
    assert [rechecked(share, asked) for share, asked in (("0.5", 451), ("0.5", 450), ("0.3", 5), (1, 7))] == [
        226,
        225,
        2,
        7,
    ]
    assert rechecked(0.7, 5) == 4  # 3.5 and a half; as a binary fraction 0.7 is less
    assert rechecked("0.1", 4) == 0


def test_default_weights() -> None:
    assert [default_weight(Decimal(share)) for share in ("1", "0.5", "0.3")] == [1, 3, 6]


@pytest.mark.parametrize(("seen", "weight"), [(11, 3), (5, 0), (10, 2)])
def test_what_cannot_be_a_recheck_is_refused(seen: int, weight: int) -> None:
    with pytest.raises(ValueError, match=r"rechecked|counts once"):
        recheck_levels(pool_size=50, asked=10, rechecked=seen, weight=weight, budget=2, level=Fraction(1, 20))


def test_the_probability_of_one_count() -> None:
    k = np.arange(-1, 9)
    for size, wrong, asked in ((20, 7, 8), (20, 0, 8), (20, 20, 8), (20, 7, 0), (20, 15, 12)):
        expected = stats.hypergeom.pmf(k, size, wrong, asked)
        assert probability(size, wrong, asked, k) == pytest.approx(expected, rel=1e-10, abs=1e-300)


def test_the_prefixes_end_at_the_first_that_fails() -> None:
    levels = Levels(3, 6, 2)
    upper = np.array([0.0, 1.0, 2.0, 5.0, 2.0, 7.0, 1.0])
    lower = np.array([0.0, 1.0, 2.0, 3.0, 2.0, 4.0, 3.0])
    verdict = judge_weighted(upper, lower, levels)
    assert verdict.eligible.tolist() == [True, True, True, True, False, False, False]
    assert dict(verdict.prefixes) == {"wide": 5, "narrow": 3}
    assert verdict.required == 3
