"""The verifier's arithmetic against the core's, and against the published vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hypac_verify import draw, tails
from routing.core import sampling
from routing.core.bounds.hypergeometric import largest_count, largest_self_consistent
from routing.core.bounds.tails import tail
from routing.core.reference.recheck import Levels, recheck_levels
from routing.core.reference.roster import Roster
from routing.core.targets.dataset import two_levels

LEVEL = Fraction(1, 20)
# N, n, binomial, hypergeometric in the pool, and (s, c_s, c_0): docs/statistics.md and its design.
VECTORS = [
    (164, 100, 1, 2, (3, 4, 1)),
    (500, 300, 8, 11, (21, 22, 8)),
    (721, 300, 8, 10, (13, 14, 7)),
    (3000, 450, 14, 15, (15, 17, 11)),
    (3000, 500, 16, 17, (18, 19, 13)),
    (100_000, 1000, 38, 38, (36, 38, 32)),
    (1000, 58, -1, 0, (0, 0, 0)),
]


@pytest.mark.parametrize(("size", "asked", "binomial", "pool", "dataset"), VECTORS)
def test_published_limits(size: int, asked: int, binomial: int, pool: int, dataset: tuple[int, ...]) -> None:
    budget = size // 20
    assert tails.binomial_count(asked, LEVEL, LEVEL) == binomial
    assert tails.largest_count(size, budget + 1, asked, LEVEL) == pool
    found = tails.two_levels(size, asked, budget, LEVEL)
    assert (found.s, found.wide, found.narrow) == dataset


@given(st.integers(1, 60), st.data())
def test_tails_are_those_of_the_core(size: int, data: st.DataObject) -> None:
    asked, wrong = data.draw(st.integers(0, size)), data.draw(st.integers(0, size + 2))
    count = data.draw(st.integers(0, size))
    assert float(tails.tail(size, wrong, asked, count)) == pytest.approx(
        float(tail(size, wrong, asked, count)), abs=1e-12
    )


@given(st.integers(2, 400), st.data())
def test_limits_are_those_of_the_core(size: int, data: st.DataObject) -> None:
    asked, budget = data.draw(st.integers(1, size)), data.draw(st.integers(0, size - 1))
    level = Fraction(data.draw(st.sampled_from(["0.049", "0.011", "0.31"])))
    assert tails.largest_count(size, budget + 1, asked, level) == largest_count(
        size, budget + 1, asked, float(level)
    )
    assert tails.largest_together(size, budget, asked, level) == largest_self_consistent(
        size, budget, asked, float(level)
    )
    found = two_levels(pool_size=size, asked=asked, budget=budget, level=level)
    assert _levels(tails.two_levels(size, asked, budget, level)) == found


@pytest.mark.parametrize(
    ("size", "asked", "rechecked", "budget", "weight"),
    [(3000, 450, 225, 150, 3), (3000, 240, 120, 150, 3), (600, 230, 69, 48, 6), (164, 100, 50, 8, 3)],
)
def test_recheck_limits_are_those_of_the_core(
    size: int, asked: int, rechecked: int, budget: int, weight: int
) -> None:
    level = Fraction(1, 60)
    found = tails.weighted_levels(tails.Recheck(size, asked, rechecked, weight, budget), level)
    assert _levels(found) == recheck_levels(
        pool_size=size, asked=asked, rechecked=rechecked, weight=weight, budget=budget, level=level
    )


@pytest.mark.parametrize("entropy", [0, 1, 2**32, 2**70 + 1, 2**128 - 1, 2**200 + 3])
def test_the_draw_is_that_of_numpy(entropy: int) -> None:
    theirs = sampling.draw_calibration(pool_size=500, m=80, p="0.7", entropy=entropy)
    assert draw.drawn(entropy, 500, 80, Fraction(7, 10)) == (theirs.positions.tolist(), theirs.asked.tolist())
    salt = sampling.make_salt(entropy)
    assert draw.salt_of(entropy) == salt
    items = ["a", "ü", "x y"]
    for model in (1, 2, 3):
        assert [draw.tie_break(salt, item, model) for item in items] == sampling.tie_breaks(
            salt, items, model=model
        ).tolist()
    shares = {"Ada": "0.5", "Bö": "0.3", "Cy": "0.2"}
    exact = [(name, Fraction(share)) for name, share in sorted(shares.items())]
    names = Roster.of(salt, shares).annotators(items)
    assert [draw.whose(salt, "annotator", exact, item) for item in items] == names
    assert draw.pool_hash(items) == sampling.pool_hash(items)


def test_chances_of_the_recheck_test_add_up() -> None:
    test = tails.Recheck(60, 30, 12, 3, 5)
    chances = test.chances(6, 5, 6 + 3 * 5)
    assert chances[-1] == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(chances) >= 0)


def _levels(found: tails.Limits) -> Levels:
    return Levels(found.s, found.wide, found.narrow)
