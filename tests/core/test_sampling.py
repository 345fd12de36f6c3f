"""The draw: random as stated, the same everywhere, recomputable by hand."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from routing.core.sampling import (
    draw_calibration,
    draw_pilot,
    make_salt,
    new_entropy,
    pool_hash,
    tie_breaks,
)

PINNED_POSITIONS = [16, 10, 3, 8, 17, 6, 18, 12]
PINNED_ASKED = [True, False, True, False, True, False, False, True]
PINNED_PILOT = [16, 8, 12, 2, 10]
PINNED_SALT = "242ecf59404d9305360f1b4b2e3fc2d0"
PINNED_TIES = [6474550124766164, 3305314248813740, 6068358271748044]


def test_a_draw_is_the_same_for_ever() -> None:
    draw = draw_calibration(pool_size=20, m=8, p="0.6", entropy=12345)
    assert draw.positions.tolist() == PINNED_POSITIONS
    assert draw.asked.tolist() == PINNED_ASKED
    assert draw_pilot(pool_size=20, size=5, entropy=12345).tolist() == PINNED_PILOT
    assert make_salt(12345) == PINNED_SALT
    assert tie_breaks(PINNED_SALT, ["a", "item-1", "ärger"]).tolist() == PINNED_TIES


def test_a_draw_can_be_recomputed_from_the_documented_recipe() -> None:
    entropy, size, m, p = 2**100 + 7, 500, 120, Fraction(9, 10)
    stream = np.random.PCG64(np.random.SeedSequence(entropy).spawn(3)[1])
    raw = [int(stream.random_raw()) for _ in range(size + m)]
    order = sorted(range(size), key=lambda item: raw[item])[:m]
    asked = [Fraction(number >> 11, 2**53) < p for number in raw[size:]]
    draw = draw_calibration(pool_size=size, m=m, p="0.9", entropy=entropy)
    assert draw.positions.tolist() == order
    assert draw.asked.tolist() == asked


def test_a_tie_break_is_the_head_of_a_hash() -> None:
    digest = hashlib.sha256(b"salt\0item").digest()
    assert tie_breaks("salt", ["item"]).tolist() == [int.from_bytes(digest, "big") >> (256 - 53)]


def test_a_draw_holds_no_item_twice_and_whole_pools_can_be_drawn() -> None:
    draw = draw_calibration(pool_size=50, m=50, p=1, entropy=3)
    assert sorted(draw.positions.tolist()) == list(range(50))
    assert draw.asked.all()


def test_every_item_is_equally_likely() -> None:
    size, m, repeats = 30, 7, 3000
    counts = np.zeros(size)
    pairs = np.zeros((size, size))
    for entropy in range(repeats):
        chosen = draw_calibration(pool_size=size, m=m, p="0.5", entropy=entropy).positions
        counts[chosen] += 1
        pairs[np.ix_(chosen, chosen)] += 1
    # counts of a draw without replacement vary less than multinomial ones, by (size - m) / (size - 1)
    statistic = ((counts - repeats * m / size) ** 2 / (repeats * m / size)).sum() * (size - 1) / (size - m)
    assert stats.chi2.sf(statistic, size - 1) > 1e-4
    together = pairs[np.triu_indices(size, 1)] / repeats
    expected = m * (m - 1) / (size * (size - 1))
    assert abs(together.mean() - expected) < 1e-12
    assert np.abs(together - expected).max() < 5 * np.sqrt(expected / repeats)


def test_the_order_of_the_draw_is_random_too() -> None:
    first = [int(draw_calibration(pool_size=10, m=4, p=1, entropy=e).positions[0]) for e in range(2000)]
    assert stats.chisquare(np.bincount(first, minlength=10)).pvalue > 1e-4


@pytest.mark.parametrize("p", ["0.9", "0.2", "0.013"])
def test_people_are_asked_with_the_stated_probability(p: str) -> None:
    asked = draw_calibration(pool_size=40_000, m=40_000, p=p, entropy=11).asked
    assert stats.binomtest(int(asked.sum()), len(asked), float(p)).pvalue > 1e-4


def test_streams_are_separate() -> None:
    """A pilot of the same entropy is no copy of the draw."""
    overlap = [
        len(
            set(draw_pilot(pool_size=100, size=20, entropy=e).tolist())
            & set(draw_calibration(pool_size=100, m=20, p=1, entropy=e).positions.tolist())
        )
        for e in range(400)
    ]
    # hypergeometric: mean 4, variance 100 / 99 * 2.56
    assert abs(np.mean(overlap) - 4) < 5 * np.sqrt(2.6 / 400)


def test_a_pilot_leaves_out_what_it_must() -> None:
    drawn = draw_calibration(pool_size=100, m=60, p=1, entropy=5).positions
    pilot = draw_pilot(pool_size=100, size=40, entropy=5, exclude=drawn)
    assert sorted([*pilot.tolist(), *drawn.tolist()]) == list(range(100))
    with pytest.raises(ValueError, match="only 40 are left"):
        draw_pilot(pool_size=100, size=41, entropy=5, exclude=drawn)
    assert draw_pilot(pool_size=100, size=0, entropy=5).tolist() == []


@pytest.mark.parametrize(
    ("size", "m", "p", "entropy"),
    [
        (10, 11, "0.5", 1),
        (10, 0, "0.5", 1),
        (10, 5, "0", 1),
        (10, 5, "1.1", 1),
        (10, 5, "nan", 1),
        (10, 5, "1", -1),
    ],
)
def test_an_impossible_draw_is_refused(size: int, m: int, p: str, entropy: int) -> None:
    with pytest.raises(ValueError, match=r"cannot be drawn|not a probability|not a finite|not be negative"):
        draw_calibration(pool_size=size, m=m, p=p, entropy=entropy)


def test_the_hash_of_a_pool_tells_any_two_lists_apart() -> None:
    lists = [
        [],
        [""],
        ["", ""],
        ["a", "b"],
        ["b", "a"],
        ["ab"],
        ["a", "b", ""],
        ["1:a,"],
        ["a,1:b"],
        ["ä"],
        ["a"],
    ]
    assert len({pool_hash(ids) for ids in lists}) == len(lists)
    assert pool_hash(iter(["a", "bc"])) == hashlib.sha256(b"1:a,2:bc,").hexdigest()


def test_entropy_is_fresh() -> None:
    assert len({new_entropy() for _ in range(100)}) == 100
    assert max(new_entropy() for _ in range(20)).bit_length() > 100
