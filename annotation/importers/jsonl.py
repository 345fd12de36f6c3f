"""JSON Lines: one JSON object a line."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

from annotation.errors import InputError
from annotation.importers.base import (
    MAX_COLUMNS,
    Problem,
    Record,
    Row,
    cell_problem,
    check_row_count,
)
from annotation.importers.text import TextLines


class JsonLines:
    """Values become text: strings as they are, numbers as they are written, null empty, the rest as JSON."""

    name = "jsonl"
    title = "JSON Lines"
    holds_images = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        return islice(self._records(file, file_name), skip, None)

    def count(self, file: IO[bytes], file_name: str) -> int:
        return sum(1 for _ in self.records(file, file_name))

    def _records(self, file: IO[bytes], file_name: str) -> Iterator[Record]:
        lines = TextLines(file)
        number = 0
        for line in lines:
            lines.new_row()
            if line.isspace():
                continue
            number += 1
            where = f"line {lines.number}"
            check_row_count(number, where)
            try:
                columns = _columns(line)
            except ValueError as error:
                yield Problem(where, f"This line cannot be used: {error}")
                continue
            if problem := cell_problem(columns):
                yield Problem(where, problem)
            else:
                yield Row(where, f"{file_name}:{lines.number}", columns)
        if not number:
            raise InputError("The file is empty.", where=file_name)


class _Float(float):
    """A number that remembers how it was written."""

    literal: str


def _columns(line: str) -> dict[str, str]:
    """Raises ValueError that says what is wrong."""
    try:
        # A JSON parser may meet lone halves of surrogate pairs, which no text has and no database stores.
        value = json.loads(
            line, parse_float=_parse_float, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error.msg} at place {error.colno}).") from None
    except RecursionError:
        raise ValueError("it is nested too deeply.") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object ({...}).")
    if not value or len(value) > MAX_COLUMNS:
        raise ValueError(f"it has {len(value)} columns; 1 to {MAX_COLUMNS} are read.")
    columns = {}
    for name, cell in value.items():
        if not name.strip() or "\0" in name:
            raise ValueError("a column has no usable name.")
        columns[name] = _as_text(cell)
        try:
            f"{name}{columns[name]}".encode()
        except UnicodeEncodeError:
            raise ValueError(f"the column {name!a} contains half a character (a lone surrogate).") from None
    return columns


def _as_text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, _Float):
        return cell.literal
    return json.dumps(cell, ensure_ascii=False)


def _parse_float(literal: str) -> _Float:
    number = _Float(literal)
    number.literal = literal
    return number


def _refuse_constant(literal: str) -> None:
    raise ValueError(f"{literal} is no JSON.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice in one object.")
    return found
