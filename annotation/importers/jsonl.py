"""JSON Lines: one JSON object a line."""

import json
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.importers.base import MAX_COLUMNS, Entries, Problem, ReadThrough, Record, row_or_problem
from annotation.importers.lines import text_lines


class JsonLines(ReadThrough):
    """Values become text: strings as they are, numbers as they are written, null empty, the rest as JSON."""

    name = "jsonl"
    title = "JSON Lines"
    holds_images = False

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(entry: tuple[int, str]) -> Record:
            number, line = entry
            where = f"line {number}"
            try:
                columns = columns_of(line)
            except ValueError as error:
                return Problem(where, _("This line cannot be used: %(error)s") % {"error": error})
            return row_or_problem(where, f"{file_name}:{number}", columns, longest)

        return Entries(text_lines(file, file_name), record)


class _Float(float):
    """A number that remembers how it was written."""

    literal: str


def columns_of(line: str) -> dict[str, str]:
    """Raises ValueError that says what is wrong."""
    try:
        value = _DECODER.decode(line)
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
    # A JSON parser may meet lone halves of surrogate pairs, which no text has and no database stores.
    may_be_half = "\\u" in line
    columns = {}
    for name, cell in value.items():
        if not name.strip() or "\0" in name:
            raise ValueError(_("a column has no usable name."))
        columns[name] = cell if type(cell) is str else _as_text(cell)
        if not may_be_half:
            continue
        try:
            f"{name}{columns[name]}".encode()
        except UnicodeEncodeError:
            raise ValueError(
                _("the column %(name)a contains half a character (a lone surrogate).") % {"name": name}
            ) from None
    return columns


def _as_text(cell: Any) -> str:
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


_DECODER = json.JSONDecoder(
    parse_float=_parse_float, parse_constant=_refuse_constant, object_pairs_hook=_object
)
