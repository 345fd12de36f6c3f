"""How often two people differ, from the drawn items that several people labelled in the ordinary way.

Which items several people are asked about is decided by a hash, each on its own (`overlap_share` of the
plan), so that these items are a simple random sample of the pool as the asked ones are.  Of an item with
more than two answers one pair counts, chosen by a hash: the first two to answer would be the two quickest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil

import numpy as np

from routing.core.arrays import Bools
from routing.core.exact import Number, to_fraction
from routing.core.keys import V_BITS
from routing.core.losses import Loss, MeasuredElsewhere
from routing.core.reference.estimate import Share, overlap_disagreement
from routing.core.reference.roster import hashes
from routing.core.reference.sources import equal

OVERLAP, EVENED = "overlap", "evened"
"""Duties, as those of a roster: what a hash is made for."""


@dataclass(frozen=True)
class SharedItem:
    """An asked item that was put to several people.

    Attributes
    ----------
    item_id : str
    answers : texts
        What each of them said, blind, in any order that does not depend on what they said; fewer than two
        where answers are missing.
    probability : Number
        Of being asked about, given that it was drawn.
    """

    item_id: str
    answers: tuple[str, ...]
    probability: Number = 1


@dataclass(frozen=True)
class TwoPeople:
    """On which share of the pool two people differ.

    Attributes
    ----------
    share : Share
        ``observed`` pairs of ``asked`` items differ.
    unknown : int
        Of these items those without two answers: the interval counts them as alike for its lower end and as
        different for its upper one, and the estimate leaves them out (NaN where there are no others).
    """

    share: Share
    unknown: int


def two_people_differ(
    items: Sequence[SharedItem], *, pool_size: int, salt: str, loss: Loss, p_min: Number | None = None
) -> TwoPeople:
    """The share of the pool on which two people differ, from all asked items that were put to several.

    Parameters
    ----------
    salt
        Of the run, as from `make_salt`: it is independent of who was drawn and asked.
    loss
        Two labels differ where it is not 0, whichever of them is taken as true.
    p_min
        Where probabilities of asking vary, the smallest one of the pool.  Then an item counts with
        probability p_min / p_i, by a hash, so that those that count are a simple random sample.

    Raises
    ------
    LossUnavailableError
        What computes the loss failed.
    """
    counted = items if p_min is None else evened(items, salt=salt, p_min=p_min)
    pairs = [pair for pair in one_pair(counted, salt=salt) if pair is not None]
    unlike = differing(pairs, loss)
    unknown = len(counted) - len(pairs)
    share = overlap_disagreement(
        pool_size=pool_size, pairs=len(counted), different=int(np.count_nonzero(unlike)), unknown=unknown
    )
    return TwoPeople(share, unknown)


def one_pair(items: Sequence[SharedItem], *, salt: str) -> list[tuple[str, str] | None]:
    """Two answers of each item, each two of them equally likely (up to 2**-53); None where there are fewer.

    x, from 0 to 2**53 - 1, being the item's hash, it is the floor(x k / 2**53)-th, from 0, of its k pairs in
    the order of `itertools.combinations`.
    """
    numbers = hashes(salt, OVERLAP, [item.item_id for item in items]).tolist()
    found: list[tuple[str, str] | None] = []
    for item, number in zip(items, numbers, strict=True):
        pairs = list(combinations(item.answers, 2))
        found.append(pairs[number * len(pairs) >> V_BITS] if pairs else None)
    return found


def differing(pairs: Sequence[tuple[str, str]], loss: Loss) -> Bools:
    """Whether two labels (n,) differ: equal texts never do, others where the loss is not 0 either way."""
    unlike = np.array([first != second for first, second in pairs], dtype=np.bool_)
    rows = np.flatnonzero(unlike)
    # Of two people's labels nobody measures a loss: they are the same text, or they differ.
    if len(rows) and not isinstance(loss, MeasuredElsewhere):
        both = np.array([pairs[row] for row in rows], dtype=np.object_)
        first, second = both[:, 0], both[:, 1]
        unlike[rows] = ~(equal(first, second, loss) & equal(second, first, loss))
    return unlike


def evened(items: Sequence[SharedItem], *, salt: str, p_min: Number) -> list[SharedItem]:
    """Those that count where probabilities of asking vary: each with probability p_min / p_i.

    Raises
    ------
    ValueError
        A probability is below ``p_min``.
    """
    least = to_fraction(p_min)
    numbers = hashes(salt, EVENED, [item.item_id for item in items]).tolist()
    kept = []
    for item, number in zip(items, numbers, strict=True):
        share: Fraction = least / to_fraction(item.probability)
        if share > 1:
            raise ValueError(f"{item.item_id} was asked with a probability below the smallest, {p_min}")
        if number < ceil(share * 2**V_BITS):
            kept.append(item)
    return kept
