"""How often two people differ, from the items that several people labelled in the ordinary way."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

import pytest

from routing.core.losses import make_loss, sorts_labels
from routing.core.reference.overlap import SharedItem, differing, evened, one_pair, two_people_differ

SALT = "0123456789abcdef0123456789abcdef"
ZERO_ONE = make_loss("zero_one")


def items_of(*answers: str) -> list[SharedItem]:
    """One item of each text, whose letters are its answers."""
    return [SharedItem(f"item {place}", tuple(text)) for place, text in enumerate(answers)]


def test_with_a_tolerance_one_label_may_differ_more_often_than_two_people_do() -> None:
    """So nothing is said there of one label against what most would say."""
    said = {"0": 0.34, "0.9": 0.165, "1.0": 0.165, "1.1": 0.165, "1.2": 0.165}
    pairs = list(itertools.product(said, said))
    loss = make_loss("numeric", {"absolute": "0.5"})
    shares = [
        said[one] * said[other] * unlike
        for (one, other), unlike in zip(pairs, differing(pairs, loss).tolist(), strict=True)
    ]
    assert sum(shares) == pytest.approx(0.4488)
    commonest = [("0", text) for text in said]
    unlike = differing(commonest, loss).tolist()
    assert sum(
        said[text] for (_, text), apart in zip(commonest, unlike, strict=True) if apart
    ) == pytest.approx(0.66)
    assert not sorts_labels(loss)
    assert sorts_labels(ZERO_ONE)


def interval_by_hand(pool_size: int, asked: int, least: int, most: int) -> tuple[int, int]:
    """All numbers T that explain what was seen with more than 2.5 % on either side, tried one by one."""

    def at_least(k: int, total: int) -> float:
        ways = (
            math.comb(total, j) * math.comb(pool_size - total, asked - j)
            for j in range(k, asked + 1)
            if asked - j <= pool_size - total
        )
        return sum(ways) / math.comb(pool_size, asked)

    kept = [
        total
        for total in range(pool_size + 1)
        if at_least(least, total) > 0.025 and 1 - at_least(most + 1, total) > 0.025
    ]
    return min(kept), max(kept)


def test_a_small_pool_by_hand() -> None:
    found = two_people_differ(items_of("aa", "ab", "bb", "ba", "cc"), pool_size=12, salt=SALT, loss=ZERO_ONE)
    assert (found.share.observed, found.share.asked, found.unknown) == (2, 5, 0)
    assert found.share.estimate == 2 / 5
    low, high = interval_by_hand(12, 5, 2, 2)
    assert (low, high) == (2, 9)
    assert (found.share.low, found.share.high) == (low / 12, high / 12)


def test_items_without_two_answers_count_as_either() -> None:
    found = two_people_differ(
        items_of("aa", "ab", "a", "", "bb", "cc", "aa", "bb"), pool_size=20, salt=SALT, loss=ZERO_ONE
    )
    assert (found.share.observed, found.share.asked, found.unknown) == (1, 8, 2)
    assert found.share.estimate == 1 / 6
    low, high = interval_by_hand(20, 8, 1, 3)
    assert (found.share.low, found.share.high) == (low / 20, high / 20)
    full = two_people_differ(
        items_of("aa", "ab", "aa", "aa", "bb", "cc", "aa", "bb"), pool_size=20, salt=SALT, loss=ZERO_ONE
    )
    assert found.share.high > full.share.high
    nobody = two_people_differ(items_of("a", ""), pool_size=20, salt=SALT, loss=ZERO_ONE)
    assert math.isnan(nobody.share.estimate)
    assert (nobody.share.low, nobody.share.high) == (0, 1)


def test_the_interval_covers_in_every_pool_of_eight() -> None:
    """All samples of four, for every number of items on which two people would differ."""
    for total in range(9):
        pool = items_of(*["ab"] * total, *["aa"] * (8 - total))
        missed = 0
        samples = list(itertools.combinations(pool, 4))
        for sample in samples:
            share = two_people_differ(sample, pool_size=8, salt=SALT, loss=ZERO_ONE).share
            missed += not share.low <= total / 8 <= share.high
        assert missed <= 0.05 * len(samples)


def test_of_three_answers_each_two_are_as_likely_whoever_came_first() -> None:
    pairs = Counter(one_pair(items_of(*["xyz"] * 6_000), salt=SALT))
    assert set(pairs) == {("x", "y"), ("x", "z"), ("y", "z")}
    assert all(abs(count - 2_000) < 180 for count in pairs.values())
    assert one_pair(items_of("ab", "a", ""), salt=SALT) == [("a", "b"), None, None]
    # Two of three people agree on every item: each two of them differ on two thirds.
    found = two_people_differ(items_of(*["aab"] * 6_000), pool_size=9_000, salt=SALT, loss=ZERO_ONE)
    assert found.share.estimate == pytest.approx(2 / 3, abs=0.02)


@dataclass(frozen=True)
class NotTheWorse:
    """A loss that counts only where the answer sorts after the label."""

    name: str = "not_the_worse"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return float(prediction > label)


def test_labels_differ_where_either_is_a_loss_for_the_other() -> None:
    assert differing([("a", "b"), ("b", "a"), ("a", "a")], NotTheWorse()).tolist() == [True, True, False]
    near = make_loss("numeric", {"absolute": "0.5"})
    assert differing([("1", "1.5"), ("1", "1.6"), ("2", "2.0")], near).tolist() == [False, True, False]
    assert differing([], ZERO_ONE).tolist() == []


def test_where_probabilities_of_asking_vary_every_item_has_the_same_chance() -> None:
    often = [SharedItem(f"often {n}", ("a", "a"), Decimal(1)) for n in range(4_000)]
    seldom = [SharedItem(f"seldom {n}", ("a", "b"), Decimal("0.25")) for n in range(1_000)]
    kept = evened(often + seldom, salt=SALT, p_min=Decimal("0.25"))
    assert [item for item in kept if item in seldom[:20]] == seldom[:20]
    assert abs(len(kept) - 2_000) < 120
    # Of the pool half are of each kind, of the asked items a fifth.
    found = two_people_differ(
        often + seldom, pool_size=8_000, salt=SALT, loss=ZERO_ONE, p_min=Decimal("0.25")
    )
    assert found.share.low < 0.5 < found.share.high
    with pytest.raises(ValueError, match="below the smallest"):
        evened(seldom, salt=SALT, p_min=Decimal("0.3"))
