"""JSON Lines: one object per item, exact, with the item's own columns in their order and then ours.

The same text as that of `json.dumps` with `ensure_ascii=False` and no white space. It is put together column
by column, which takes half the time: most of our columns have few different values.
"""

import json
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import IO, Any, ClassVar

from routing.delivery.base import Page, added_names

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonlWriter:
    file_name: ClassVar[str] = "labels.jsonl"
    media_type: ClassVar[str] = "application/x-ndjson"

    def __init__(self, out: IO[bytes], columns: Sequence[str], *, several: bool = False) -> None:
        self._out = out
        self._columns = [(column, _key(column)) for column in columns]
        self._names = [(name, _key(free)) for name, free in added_names(columns).items()]
        # A list cannot be looked up.
        self._encoders = _DIFFERENT | ({"label": dumps, "label_name": dumps} if several else {})

    def write(self, page: Page) -> None:
        if page:
            self._out.write("".join(f"{line}\n" for line in self.lines(page)).encode())

    def lines(self, page: Page) -> list[str]:
        """One object for each item."""
        parts = [
            [key + _text(original[column]) if column in original else "" for original in page.originals]
            for column, key in self._columns
        ]
        parts += [_encoded(key, page.columns[name], self._encoders.get(name)) for name, key in self._names]
        # Each part begins with a comma, apart from those of columns that an item lacks.
        return ["{" + "".join(line)[1:] + "}" for line in zip(*parts, strict=True)]

    def close(self) -> None:
        """Every page is written at once."""


def _key(name: str) -> str:
    return f",{dumps(name)}:"


def _text(value: Any) -> str:
    return encode_basestring(value) if type(value) is str else dumps(value)


def _number(value: float | None) -> str:
    return "null" if value is None else float.__repr__(value)


# Columns whose values hardly ever repeat.
_DIFFERENT: dict[str, Callable[[Any], str]] = {"external_id": encode_basestring, "uncertainty": _number}


def _encoded(key: str, values: Sequence[Any], encode: Callable[[Any], str] | None) -> list[str]:
    if encode:
        return [key + encode(value) for value in values]
    return list(map(_Parts(key).__getitem__, values))


class _Parts(dict[Any, str]):
    """The parts that were made of a column's values. Values of one column are of one type, or None."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __missing__(self, value: Any) -> str:
        part = self[value] = self._key + _text(value)
        return part
