"""The roster: who labels which item, fixed with the pool before anything is labelled.

"Whoever is free takes the next" is no roster: speed would choose.  The test holds since each
item has its annotator, so that what she would say of it is a fixed attribute of the item.

An item's number x is the first 53 bits of SHA-256 over the salt, a zero byte, the name of the duty, a zero
byte and the item id, all in UTF-8, divided by 2**53.  The annotators, in the order of their names, have
intervals of [0, 1) as long as their shares of the work, and x chooses one.  So everybody gets her share of
the items in expectation (up to 2**-53), whatever the items are.  Pairs come likewise from intervals twice as
long: those that hold x and x + 1, the annotators being in an order of the item's own, by SHA-256 over the
same with a zero byte and the annotator's name after it; so that any two may meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import ceil

import numpy as np

from routing.core.arrays import Bools, Ints
from routing.core.exact import Number, to_fraction
from routing.core.keys import V_BITS
from routing.core.messages import CoreError, declare, gettext_noop, say

ANNOTATOR, PAIR, EXPERT, QUEUE, AUDIT = "annotator", "pair", "expert", "queue", "audit"
"""Duties: what a hash is made for."""


class RosterError(CoreError):
    """A roster that cannot be; the message says why."""


@dataclass(frozen=True)
class Roster:
    """Shares of the work by annotator, together 1.

    Attributes
    ----------
    salt : str
        Of the run, as from `make_salt`.
    shares : names and fractions
        In the order of the names.
    duty : str
        `ANNOTATOR`, or `EXPERT` where several experts share their work.
    """

    salt: str
    shares: tuple[tuple[str, Fraction], ...]
    duty: str = ANNOTATOR

    @classmethod
    def of(
        cls,
        salt: str,
        shares: Mapping[str, Number | Fraction],
        *,
        experts: Collection[str] = (),
        duty: str = ANNOTATOR,
    ) -> Roster:
        """The roster with these shares.

        Raises
        ------
        RosterError
            There is nobody, a share is not above 0, they do not add up to 1, or one of ``experts`` annotates.
        """
        _check_names(shares, experts)
        exact = {
            name: share if isinstance(share, Fraction) else to_fraction(share)
            for name, share in shares.items()
        }
        for name, share in exact.items():
            if share <= 0:
                raise RosterError(say("roster.share", name=name, share=str(shares[name])))
        if (total := sum(exact.values(), Fraction(0))) != 1:
            raise RosterError(say("roster.sum", total=_shown(total)))
        return cls(salt, tuple(sorted(exact.items())), duty)

    @classmethod
    def even(cls, salt: str, names: Sequence[str], *, experts: Collection[str] = ()) -> Roster:
        """Everybody gets as much; a share is then 1 / the number of ``names``."""
        _check_names(names, experts)
        part = Fraction(1, len(set(names)))
        return cls(salt, tuple((name, part) for name in sorted(set(names))))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.shares)

    def annotators(self, item_ids: Sequence[str]) -> list[str]:
        """Whose each item is."""
        limits = _limits([share for _, share in self.shares])
        places = np.searchsorted(limits, hashes(self.salt, self.duty, item_ids), side="right")
        return [self.names[place] for place in places.tolist()]

    def pairs(self, item_ids: Sequence[str]) -> list[tuple[str, str]]:
        """The two annotators of each item, for the reference `settled`, first and second by chance.

        Raises
        ------
        RosterError
            One has more than half of the work: she cannot be two people.  Or there is nobody left who could
            decide where two differ.
        """
        if len(self.shares) < 3:
            raise RosterError(say("roster.few", people=len(self.shares)))
        name, largest = max(self.shares, key=lambda entry: entry[1])
        if largest > Fraction(1, 2):
            raise RosterError(say("roster.half", name=name))
        shares = dict(self.shares)
        numbers = hashes(self.salt, PAIR, item_ids).tolist()
        return [
            self._pair(number, self._order(item), shares)
            for item, number in zip(item_ids, numbers, strict=True)
        ]

    def deciders(self, item_ids: Sequence[str]) -> list[str]:
        """Who decides where the pair of an item differs: the first other one in the item's own order."""
        return [
            next(name for name in self._order(item) if name not in pair)
            for item, pair in zip(item_ids, self.pairs(item_ids), strict=True)
        ]

    def _order(self, item: str) -> list[str]:
        """The annotators in an order of the item's own."""
        start = hashlib.sha256(b"\0".join((self.salt.encode(), PAIR.encode(), item.encode())))

        def digest(name: str) -> bytes:
            own = start.copy()
            own.update(b"\0" + name.encode())
            return own.digest()

        return sorted(self.names, key=digest)

    @staticmethod
    def _pair(number: int, order: Sequence[str], shares: Mapping[str, Fraction]) -> tuple[str, str]:
        limits = _limits([2 * shares[name] for name in order])
        first, second = np.searchsorted(limits, [number, number + 2**V_BITS], side="right").tolist()
        return order[first], order[second]


def _check_names(names: Collection[str], experts: Collection[str]) -> None:
    if not names:
        raise RosterError(say("roster.empty"))
    if both := sorted(set(experts) & set(names)):
        raise RosterError(say("roster.expert", name=both[0]))


def hashes(salt: str, duty: str, item_ids: Sequence[str]) -> Ints:
    """A number in [0, 2**53) of each item (n,), for one duty."""
    prefix = hashlib.sha256(salt.encode() + b"\0" + duty.encode() + b"\0")
    result = np.empty(len(item_ids), dtype=np.int64)
    for index, item in enumerate(item_ids):
        digest = prefix.copy()
        digest.update(item.encode())
        result[index] = int.from_bytes(digest.digest()[:8], "big") >> (64 - V_BITS)
    return result


def marked(salt: str, duty: str, item_ids: Sequence[str], share: Number) -> Bools:
    """Whether each item (n,) is among a share in [0, 1] of all, by its number."""
    exact = to_fraction(share)
    if not 0 <= exact <= 1:
        raise ValueError(f"{share} is no share")
    return np.asarray(hashes(salt, duty, item_ids) < ceil(exact * 2**V_BITS), dtype=np.bool_)


def _limits(parts: Sequence[Fraction]) -> Ints:
    """Ends of intervals of these lengths, one after the other, in whole numbers of 2**-53.

    Where rounding leaves the last one short of the whole, what is beyond it falls to nobody; so it is exact.
    """
    return np.array([ceil(end * 2**V_BITS) for end in accumulate(parts)], dtype=np.int64)


def _shown(number: Fraction) -> str:
    return f"{float(number):.12g}"


SAYS = {
    "roster.empty": gettext_noop("nobody is on the roster; name at least one annotator"),
    "roster.share": gettext_noop("%(name)s has %(share)s of the work; each share must be above 0"),
    "roster.sum": gettext_noop("the shares of the work add up to %(total)s; they must add up to 1"),
    "roster.expert": gettext_noop(
        "%(name)s is the expert of this run and cannot annotate in it: her label would be its own reference"
    ),
    "roster.few": gettext_noop(
        "%(people)s people cannot settle an item: two label it and a third decides where they differ"
    ),
    "roster.half": gettext_noop(
        "%(name)s has more than half of the work and would be both people of some items; give at most half"
    ),
}
declare(SAYS)
