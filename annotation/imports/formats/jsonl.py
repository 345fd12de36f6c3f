"""JSON Lines: one JSON object a line."""

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.faults import said_by
from annotation.imports.formats.base import (
    Entries,
    GivenLabel,
    Problem,
    ReadThrough,
    Record,
    Row,
    row_or_problem,
)
from annotation.imports.formats.lines import text_lines
from annotation.imports.limits import MAX_COLUMNS, MAX_DEPTH
from annotation.jobs.places import place_of_line
from annotation.words import Words

# Digits that make a double unique, and characters of a number that cannot have more.
DOUBLE_DIGITS = 17
SURE_DIGITS = 17


class JsonLines(ReadThrough):
    """Values become text: strings as they are, numbers as they are written, null empty, the rest as JSON.
    What was no string is kept as it is beside its text.
    """

    name = "jsonl"
    reads_text = is_streamed = True
    endings: tuple[str, ...] = (".jsonl", ".ndjson")
    title = gettext_noop("JSON Lines")
    holds_images = False

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(entry: tuple[int, str]) -> Record:
            number, line = entry
            where = place_of_line(number)
            try:
                value = self._object(object_of(line))
                columns, typed = _cells_of_line(value, line)
            except ValueError as error:
                return Problem(
                    where, Words(gettext_noop("This line cannot be used: %(error)s"), error=said_by(error))
                )
            row = row_or_problem(where, f"{file_name}:{number}", columns, longest, typed)
            if not self.holds_labels or not isinstance(row, Row):
                return row
            return row._replace(labels=self._labels(value), answers=self._answers(columns))

        return Entries(text_lines(file, file_name), record)

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        """The object of which columns are made."""
        return value

    def _answers(self, columns: Mapping[str, str]) -> tuple[str, ...]:
        """Those with what people said of the item, in a format that has some."""
        return ()

    def _labels(self, value: dict[str, Any]) -> tuple[GivenLabel, ...]:
        """What people said of the item, in a format that tells."""
        return ()


class _Float(float):
    """A number that remembers how it was written."""

    literal: str


def columns_of(line: str) -> tuple[dict[str, str], dict[str, Any] | None]:
    """The cells of an object as text, and the values of those that were none (`Row.typed`).

    Raises ValueError that says what is wrong.
    """
    return _cells_of_line(object_of(line), line)


def object_of(line: str) -> dict[str, Any]:
    """The object of a JSON text. Raises ValueError that says what is wrong."""
    value = decoded(line)
    if not isinstance(value, dict):
        raise ValueError(Words(gettext_noop("it is no JSON object ({...}).")))
    return value


def _cells_of_line(value: dict[str, Any], line: str) -> tuple[dict[str, str], dict[str, Any] | None]:
    # A JSON parser may meet lone halves of surrogate pairs, which no text has and no database stores.
    return cells_of(value, may_be_half="\\u" in line)


def decoded(line: str) -> Any:
    """The value of a JSON text. Raises ValueError that says what is wrong."""
    try:
        return _DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise ValueError(_no_json(error)) from None
    except RecursionError:
        raise ValueError(Words(gettext_noop("it is nested too deeply."))) from None


def _no_json(error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Unterminated string"):
        return Words(
            gettext_noop(
                "it is no JSON (the text that begins at place %(place)s has no closing quotation mark). If "
                "the file was cut off, export or upload it again, whole."
            ),
            place=str(error.colno),
        )
    if error.pos >= len(error.doc.rstrip()):
        return Words(
            gettext_noop(
                "it is no JSON (it breaks off before its end). If the file was cut off, export or upload it "
                "again, whole."
            )
        )
    # Some of Python's messages end in "at".
    words = gettext_noop("it is no JSON (%(msg)s at place %(colno)s).")
    return Words(words, msg=error.msg.removesuffix(" at"), colno=str(error.colno))


def cells_of(
    value: dict[str, Any], *, may_be_half: bool = True
) -> tuple[dict[str, str], dict[str, Any] | None]:
    """As `columns_of`, of an object that was `decoded`."""
    if not value or len(value) > MAX_COLUMNS:
        raise ValueError(
            Words(
                gettext_noop("it has %(count)s columns; 1 to %(max_columns)s are read."),
                count=len(value),
                max_columns=MAX_COLUMNS,
            )
        )
    columns = {}
    typed: dict[str, Any] | None = None
    for name, cell in value.items():
        if not name.strip() or "\0" in name:
            raise ValueError(Words(gettext_noop("a column has no usable name.")))
        if type(cell) is str:
            columns[name] = cell
        else:
            columns[name] = text_of(cell, name)
            if type(cell) is not _Float or _fits(cell):
                typed = typed or {}
                typed[name] = cell
        if not may_be_half:
            continue
        try:
            f"{name}{columns[name]}".encode()
        except UnicodeEncodeError:
            raise ValueError(
                Words(
                    gettext_noop("the column %(name)a contains half a character (a lone surrogate)."),
                    name=name,
                )
            ) from None
    return columns, typed


def text_of(cell: Any, name: str) -> str:
    """The text of a value that is no string. Raises ValueError where no database could store the value."""
    if cell is None:
        return ""
    if isinstance(cell, _Float):
        return cell.literal
    try:
        text = _ENCODER.encode(cell)
    except ValueError:
        raise ValueError(
            Words(
                gettext_noop("the column %(name)r contains a number that is too large to be one."), name=name
            )
        ) from None
    if isinstance(cell, list | dict):
        if "\\u0000" in text and _has_nul(cell):
            raise ValueError(Words(gettext_noop("the column %(name)r contains a NUL character."), name=name))
        if text.count("[") + text.count("{") > MAX_DEPTH and _depth(cell) > MAX_DEPTH:
            raise ValueError(
                Words(
                    gettext_noop("the column %(name)r is nested more than %(most)s deep."),
                    name=name,
                    most=MAX_DEPTH,
                )
            )
    return text


def _has_nul(cell: Any) -> bool:
    if isinstance(cell, dict):
        return any(map(_has_nul, cell)) or any(map(_has_nul, cell.values()))
    if isinstance(cell, list):
        return any(map(_has_nul, cell))
    return isinstance(cell, str) and "\0" in cell


def _depth(cell: Any) -> int:
    """How deep lists and objects lie in each other; level by level, not by a call for each."""
    depth, level = 0, [cell]
    while level := [value for value in level if isinstance(value, list | dict)]:
        depth += 1
        level = [child for value in level for child in (value.values() if isinstance(value, dict) else value)]
    return depth


def _fits(number: _Float) -> bool:
    """Whether a double holds the number as it was written: else only its text is exact. 17 digits are what
    programs write of a double, so they are meant for this one.
    """
    literal = number.literal
    if len(literal) <= SURE_DIGITS and 1e-300 < abs(number) < 1e300:
        return True
    if math.isinf(number):
        return False
    digits = literal.lower().partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")
    if not number:
        return not digits
    return len(digits) <= DOUBLE_DIGITS or Decimal(literal) == Decimal(repr(float(number)))


def _parse_float(literal: str) -> _Float:
    number = _Float(literal)
    number.literal = literal
    return number


def _refuse_constant(literal: str) -> None:
    raise ValueError(Words(gettext_noop("%(literal)s is no JSON."), literal=literal))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(Words(gettext_noop("a name is there twice in one object.")))
    return found


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_DECODER = json.JSONDecoder(
    parse_float=_parse_float, parse_constant=_refuse_constant, object_pairs_hook=_object
)
