"""What the cells of each imported column are, so that a format with types can keep them.

A column has a kind where all its cells agree on one; null and a cell that is not there agree with all. Whole
numbers beside fractions are numbers, as long as a double holds them exactly. So are the words that an import
has for NaN and infinities, for which JSON has no numbers; alone they are text.
"""

from collections.abc import Iterable, Mapping
from typing import Any

TEXT, INTEGER, NUMBER, BOOLEAN = "text", "integer", "number", "boolean"
LIST_OF = "list of "
MIXED = "mixed"
INT64 = range(-(2**63), 2**63)
EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
WORDS = frozenset({"NaN", "Infinity", "-Infinity"})
"""`float` reads them."""
_LARGE = "large integer"
"""Fits in 64 bits, but in no double."""
_WORD = "word for a number"


class Kinds:
    """Looks at all cells, in constant memory."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def add(self, values: Iterable[Mapping[str, Any]]) -> None:
        """The imported columns of some items, each value as it came."""
        found = self._found
        for row in values:
            for column, value in row.items():
                if value is None:
                    continue
                before = found.get(column)
                if before == MIXED or (before == TEXT and type(value) is str):
                    continue
                kind = kind_of(value)
                found[column] = kind if before is None else _joined(before, kind)

    def of_columns(self) -> dict[str, str]:
        """Of each column that has another kind than text its kind."""
        named = {
            column: kind.replace(_LARGE, INTEGER).replace(_WORD, TEXT) for column, kind in self._found.items()
        }
        return {column: kind for column, kind in named.items() if kind != TEXT}


def kind_of(value: Any) -> str:
    """Of a value that is not null."""
    if isinstance(value, str):
        return _WORD if value in WORDS else TEXT
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if abs(value) <= EXACT:
            return INTEGER
        return _LARGE if value in INT64 else MIXED
    if isinstance(value, float):
        return NUMBER
    if isinstance(value, list):
        kinds = {kind_of(entry) for entry in value if entry is not None}
        inner = _all_joined(kinds) if kinds else ""
        return MIXED if inner == MIXED or inner.startswith(LIST_OF) else LIST_OF + inner
    return MIXED


def _all_joined(kinds: set[str]) -> str:
    first, *others = sorted(kinds)
    for kind in others:
        first = _joined(first, kind)
    return first


def _joined(one: str, other: str) -> str:
    if one == other:
        return one
    if one.startswith(LIST_OF) and other.startswith(LIST_OF):
        inner = one.removeprefix(LIST_OF), other.removeprefix(LIST_OF)
        joined = inner[0] or inner[1] if "" in inner else _joined(*inner)
        return MIXED if joined == MIXED else LIST_OF + joined
    both = {one, other}
    if both in ({INTEGER, NUMBER}, {_WORD, NUMBER}, {_WORD, INTEGER}):
        return NUMBER
    if both == {_WORD, TEXT}:
        return TEXT
    return _LARGE if both == {INTEGER, _LARGE} else MIXED
