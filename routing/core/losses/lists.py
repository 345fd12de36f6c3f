"""Lists in JSON that two readers cannot read differently."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

KEPT = 12
"""Texts that stay read: as many answers as are compared with each other at once, and no more, as they may be
large.
"""


def read_list(text: str, most: int) -> list[Any] | None:
    """The entries of the JSON list that ``text`` is, numbers with a point as decimals; None where it is none,
    has more than ``most`` entries, names a field twice, or holds half of a surrogate pair.
    """
    try:
        entries = json.loads(
            text, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_named_once
        )
        if "\\u" in text:
            json.dumps(entries, ensure_ascii=False, default=str).encode()
    except (ValueError, RecursionError, ArithmeticError):
        return None
    return entries if isinstance(entries, list) and len(entries) <= most else None


def _named_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) < len(fields):
        raise ValueError("a field is named twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
