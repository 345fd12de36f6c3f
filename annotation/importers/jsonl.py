"""JSON Lines: one JSON object a line."""

import json
from collections.abc import Iterator
from typing import IO, Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.importers.base import (
    MAX_COLUMNS,
    Problem,
    ReadThrough,
    Record,
    Row,
    cell_problem,
    check_row_count,
)
from annotation.importers.text import TextLines


class JsonLines(ReadThrough):
    """Values become text: strings as they are, numbers as they are written, null empty, the rest as JSON."""

    name = "jsonl"
    title = "JSON Lines"
    holds_images = False

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
                columns = columns_of(line)
            except ValueError as error:
                yield Problem(where, _("This line cannot be used: %(error)s") % {"error": error})
                continue
            if problem := cell_problem(columns):
                yield Problem(where, problem)
            else:
                yield Row(where, f"{file_name}:{lines.number}", columns)
        if not number:
            raise InputError(_("The file is empty."), where=file_name)


class _Float(float):
    """A number that remembers how it was written."""

    literal: str


def columns_of(line: str) -> dict[str, str]:
    """Raises ValueError that says what is wrong."""
    try:
        # A JSON parser may meet lone halves of surrogate pairs, which no text has and no database stores.
        value = json.loads(
            line, parse_float=_parse_float, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            _("it is no JSON (%(msg)s at place %(colno)s).") % {"msg": error.msg, "colno": error.colno}
        ) from None
    except RecursionError:
        raise ValueError(_("it is nested too deeply.")) from None
    if not isinstance(value, dict):
        raise ValueError(_("it is no JSON object ({...})."))
    if not value or len(value) > MAX_COLUMNS:
        raise ValueError(
            _("it has %(count)s columns; 1 to %(max_columns)s are read.")
            % {"count": len(value), "max_columns": MAX_COLUMNS}
        )
    columns = {}
    for name, cell in value.items():
        if not name.strip() or "\0" in name:
            raise ValueError(_("a column has no usable name."))
        columns[name] = _as_text(cell)
        try:
            f"{name}{columns[name]}".encode()
        except UnicodeEncodeError:
            raise ValueError(
                _("the column %(name)a contains half a character (a lone surrogate).") % {"name": name}
            ) from None
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
    raise ValueError(_("%(literal)s is no JSON.") % {"literal": literal})


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(_("a name is there twice in one object."))
    return found
