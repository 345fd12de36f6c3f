"""JSON Lines: one object per item, exact, with the item's own columns in their order and then ours.

The same text as that of `json.dumps` with `ensure_ascii=False` and no white space. It is put together column
by column, which takes half the time: most of our columns have few different values.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.labels.page import DeliveryInfo, Page, added_names

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

LIMITS = (
    Limit("words", _("NaN and infinities are words: JSON has no numbers for them.")),
    Limit(
        "times",
        _("Dates, times and decimals became text when they were imported, and are text here."),
    ),
)


class JsonlWriter(RowWriter):
    file_name: ClassVar[str] = "labels.jsonl"
    summary: ClassVar[Any] = _("The same for programs, one JSON object on each line, every value exact.")
    media_type: ClassVar[str] = "application/x-ndjson"
    limits: ClassVar[tuple[Limit, ...]] = LIMITS

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._out = files.open(self.file_name, self.media_type)
        self._lines = Lines(info)

    def write(self, page: Page) -> None:
        if page:
            self._out.write("\n".join([*self._lines.of(page), ""]).encode())

    def close(self) -> None:
        """Every page is written at once."""


class Lines:
    """The JSON text of each item."""

    def __init__(self, info: DeliveryInfo) -> None:
        self._columns = [(column, _key(column)) for column in info.columns]
        self._names = [(name, _key(free)) for name, free in added_names(info.columns, info.added).items()]
        # A list cannot be looked up.
        self._encoders = _DIFFERENT | ({"label": dumps, "label_name": dumps} if info.kind.several else {})

    def of(self, page: Page) -> list[str]:
        """One object for each item."""
        parts = [self._cells(page, column, key) for column, key in self._columns]
        parts += [_encoded(key, page.columns[name], self._encoders.get(name)) for name, key in self._names]
        # Each part begins with a comma, apart from those of columns that an item lacks.
        return ["{" + line[1:] + "}" for line in map("".join, zip(*parts, strict=True))]

    def _cells(self, page: Page, column: str, key: str) -> list[str]:
        if not page.typed:
            # All is text, and mostly every item has the column.
            with suppress(KeyError, TypeError):
                texts = map(encode_basestring, map(itemgetter(column), page.originals))
                return [key + text for text in texts]
        return [key + _text(values[column]) if column in values else "" for values in page.values]


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
