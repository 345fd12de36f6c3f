"""Shares of the work in certificates, as fractions by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from routing.core.certificate import Document
from routing.core.documents import DocumentError
from routing.core.reference.roster import Roster

SHARE = re.compile(r"[0-9]{1,15}/[0-9]{1,15}")
MOST_ANNOTATORS = 1000
"""With more, or longer fractions, adding up their shares exactly takes long."""


def shares_document(shares: Sequence[tuple[str, Fraction]]) -> Document:
    return {name: fraction_text(share) for name, share in shares}


def read_roster(document: Mapping[str, Any]) -> Roster:
    """The roster of such a certificate; errors as of `read_shares`."""
    roster = object_of(object_of(document, "reference"), "roster")
    salt, shares = roster.get("salt"), object_of(roster, "shares")
    if not isinstance(salt, str) or len(salt) > 1000 or len(shares) > MOST_ANNOTATORS:
        raise DocumentError(f"certificate: the roster has no salt, or more than {MOST_ANNOTATORS} annotators")
    try:
        salt.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can name, is no text
        raise DocumentError("certificate: the salt of the roster is no text") from None
    return Roster(salt, read_shares(shares))


def read_shares(shares: Mapping[str, object]) -> tuple[tuple[str, Fraction], ...]:
    """Shares of the work, in the order of the names."""
    if len(shares) > MOST_ANNOTATORS:
        raise DocumentError(f"certificate: more than {MOST_ANNOTATORS} share the work")
    exact = {}
    for name, share in shares.items():
        if not isinstance(share, str) or not SHARE.fullmatch(share) or not int(share.split("/")[1]):
            raise DocumentError(f"certificate: {str(share)[:60]!r} is no share of the work")
        exact[name] = Fraction(share)
        if fraction_text(exact[name]) != share:
            raise DocumentError(f"certificate: the share {share!r} is not in lowest terms")
    if not exact or min(exact.values()) <= 0 or sum(exact.values(), Fraction(0)) != 1:
        raise DocumentError("certificate: the shares of the work are not above 0 and together 1")
    try:
        "".join(exact).encode()
    except UnicodeEncodeError:
        raise DocumentError("certificate: a name of the roster is no text") from None
    return tuple(sorted(exact.items()))


def object_of(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    if not isinstance(value, dict):
        raise DocumentError(f"certificate: {key!r} is missing or no object")
    return value


def fraction_text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
