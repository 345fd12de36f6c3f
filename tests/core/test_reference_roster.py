"""Who labels which item: fixed by hashes, in the shares of the work, before anything is labelled."""

from __future__ import annotations

import hashlib
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from routing.core.reference.roster import (
    EXPERT,
    Roster,
    RosterError,
    _limits,
    hashes,
    marked,
)

SHARES = {"Ada": "0.5", "Bo": "0.3", "Cy": "0.2"}
ITEMS = [f"item {number}" for number in range(3000)]


def test_an_item_has_one_annotator_for_good() -> None:
    roster = Roster.of("salt", SHARES)
    found = roster.annotators(ITEMS)
    other_order = dict(reversed(SHARES.items()))
    assert found == Roster.of("salt", other_order).annotators(ITEMS)
    assert found[100:103] == roster.annotators(ITEMS[100:103])
    assert found != Roster.of("pepper", SHARES).annotators(ITEMS)
    assert found != Roster.of("salt", SHARES, duty=EXPERT).annotators(ITEMS)


def test_it_can_be_computed_from_the_documentation() -> None:
    number = int.from_bytes(hashlib.sha256(b"salt\0annotator\0item 7").digest()[:8], "big") >> 11
    expected = "Ada" if number < 0.5 * 2**53 else "Bo" if number < 0.8 * 2**53 else "Cy"
    assert Roster.of("salt", SHARES).annotators(["item 7"]) == [expected]


def test_everybody_gets_her_share_in_expectation() -> None:
    limits = _limits([Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)])
    assert limits[-1] == 2**53  # the whole is shared out, and each part is exact up to the last digit
    assert np.all(np.abs(np.diff(limits, prepend=0) - 2**53 / 3) <= 1)
    counts = Counter(Roster.of("salt", SHARES).annotators(ITEMS))
    for name, share in SHARES.items():
        assert stats.binomtest(counts[name], len(ITEMS), float(share)).pvalue > 0.001


def test_pairs_are_two_people_in_their_shares_and_any_two_meet() -> None:
    roster = Roster.of("salt", {"Ada": "0.4", "Bo": "0.3", "Cy": "0.2", "Di": "0.1"})
    pairs = roster.pairs(ITEMS)
    assert all(first != second for first, second in pairs)
    counts = Counter(name for pair in pairs for name in pair)
    for name, share in roster.shares:
        assert stats.binomtest(counts[name], len(ITEMS), 2 * float(share)).pvalue > 0.001
    assert {frozenset(pair) for pair in pairs} == {frozenset(two) for two in combinations(roster.names, 2)}
    for pair, decider in zip(pairs, roster.deciders(ITEMS), strict=True):
        assert decider in roster.names
        assert decider not in pair


def test_even_shares_are_exact() -> None:
    roster = Roster.even("salt", ["Cy", "Ada", "Bo"])
    assert roster.shares == tuple((name, Fraction(1, 3)) for name in ("Ada", "Bo", "Cy"))
    assert set(roster.annotators(ITEMS)) == {"Ada", "Bo", "Cy"}


@pytest.mark.parametrize(
    ("shares", "experts", "code"),
    [
        ({}, (), "roster.empty"),
        ({"Ada": "0.5", "Bo": "0.4"}, (), "roster.sum"),
        ({"Ada": "0.7", "Bo": "0.4"}, (), "roster.sum"),
        ({"Ada": 1, "Bo": 0}, (), "roster.share"),
        ({"Ada": "1.5", "Bo": "-0.5"}, (), "roster.share"),
        ({"Ada": "0.5", "Bo": "0.5"}, ("Bo", "Eve"), "roster.expert"),
    ],
)
def test_what_is_no_roster_is_refused(shares: dict[str, str], experts: tuple[str, ...], code: str) -> None:
    with pytest.raises(RosterError) as refused:
        Roster.of("salt", shares, experts=experts)
    assert refused.value.said.code == code
    assert str(refused.value)


def test_two_people_cannot_settle_alone_nor_one_be_both() -> None:
    with pytest.raises(RosterError, match="third decides"):
        Roster.even("salt", ["Ada", "Bo"]).pairs(ITEMS)
    with pytest.raises(RosterError, match="Ada has more than half"):
        Roster.of("salt", {"Ada": "0.6", "Bo": "0.2", "Cy": "0.2"}).pairs(ITEMS)
    with pytest.raises(RosterError, match="is the expert"):
        Roster.even("salt", ["Ada", "Bo"], experts=["Bo"])
    with pytest.raises(RosterError, match="nobody"):
        Roster.even("salt", [])


def test_shares_are_read_in_exact_decimals() -> None:
    assert Roster.of("salt", {"Ada": 0.1, "Bo": 0.2, "Cy": Decimal("0.7")}).names == ("Ada", "Bo", "Cy")


def test_a_share_of_the_items_is_marked_by_their_hash() -> None:
    few, more = (marked("salt", "audit", ITEMS, share) for share in ("0.02", "0.2"))
    assert not np.any(few & ~more)
    assert stats.binomtest(int(few.sum()), len(ITEMS), 0.02).pvalue > 0.001
    assert marked("salt", "audit", ITEMS, 1).all()
    assert not marked("salt", "audit", ITEMS, 0).any()
    assert len(np.unique(hashes("salt", "audit", ITEMS))) == len(ITEMS)
    with pytest.raises(ValueError, match="no share"):
        marked("salt", "audit", ITEMS, 2)
