"""Values of columns as the file has them, and back, each checked as a column of its kind has to be."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection, models

from annotation.common.one_line import NOT_SHOWN
from annotation.storable import NOT_STORED

Read = Callable[[Any], Any]
# How JSON spells what `NOT_STORED` finds, as far as it may be escaped.
_ESCAPED = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
# Names that people can change; what a run has fixed stays as it is.
ON_ONE_LINE = {("Project", "name"), ("Project", "question"), ("Source", "name"), ("Choice", "name")}
_DECIMAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")


class Wrong(ValueError):
    """What is wrong with a value, in words."""


def line_of(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def row_in(line: bytes) -> dict[str, Any]:
    """Raises Wrong for a line that is no object of JSON, or holds what no database stores."""
    try:
        # Of bytes json.loads would take other encodings, and halves of surrogates.
        row = json.loads(line.decode(), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Wrong(str(error) if isinstance(error, Wrong) else "it is no JSON") from None
    if not isinstance(row, dict):
        raise Wrong("it is no object")
    if (b"\\" in line and _ESCAPED.search(line)) or b"\0" in line:
        _refuse_unstorable(row)
    return row


def written(field: "models.Field[Any, Any]", value: Any) -> Any:
    """A value of the database as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value


def reader_of(field: "models.Field[Any, Any]") -> Read:
    """What makes of a value in the file one for the database, and raises Wrong where the column cannot hold
    it. Not of columns that refer to rows.
    """
    read = _plain(field)
    known = {value for value, _label in field.flatchoices} if field.choices else None
    validators = [one for one in field.validators if not isinstance(field, models.JSONField)]
    nullable = field.null

    def checked(value: Any) -> Any:
        if value is None:
            if not nullable:
                raise Wrong("it is empty")
            return None
        found = read(value)
        if known is not None and found not in known and found != "":
            raise Wrong("it is none of the values that it may have")
        for validate in validators:
            try:
                validate(found)
            except ValidationError as error:
                raise Wrong(" ".join(error.messages)) from None
        return found

    return checked


def _plain(field: "models.Field[Any, Any]") -> Read:
    if isinstance(field, models.JSONField):
        kind = field.default
        if kind not in (dict, list):  # what a task type, a rule or a score makes of it
            return lambda value: value
        words = "it is no object" if kind is dict else "it is no list"
        return lambda value: value if isinstance(value, kind) else _wrong(words)
    if isinstance(field, models.BooleanField):
        return lambda value: value if type(value) is bool else _wrong("it is neither true nor false")
    if isinstance(field, models.IntegerField):
        low, high = connection.ops.integer_field_range(field.get_internal_type())
        least, most = -(2**63) if low is None else low, 2**63 - 1 if high is None else high
        return lambda value: (
            value if type(value) is int and least <= value <= most else _wrong("it is no such number")
        )
    if isinstance(field, models.FloatField):
        return _float
    if isinstance(field, models.DecimalField):
        return _decimal
    if isinstance(field, models.DateTimeField):
        return _moment
    if (field.model.__name__, field.name) in ON_ONE_LINE:
        return _line
    if isinstance(field, models.CharField | models.TextField):
        return lambda value: value if isinstance(value, str) else _wrong("it is no text")
    raise TypeError(f"{field} is of a kind that project files do not have")


def _line(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong("it is no text")
    return _wrong("it has a line break, or what is not shown") if NOT_SHOWN.search(value) else value


def _wrong(words: str) -> Any:
    raise Wrong(words)


def _float(value: Any) -> float:
    try:
        return float(value) if type(value) in (int, float) else _wrong("it is no number")
    except OverflowError:
        raise Wrong("it is a number that is too large") from None


def _decimal(value: Any) -> Decimal:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise Wrong("it is no decimal number")
    try:
        return Decimal(value)
    except InvalidOperation:
        raise Wrong("it is no decimal number") from None


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Wrong("it is no time") from None
    if moment.tzinfo is None:
        raise Wrong("it is a time without its zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise Wrong("it is a time that no database stores") from None


def _refuse(name: str) -> Any:
    raise Wrong(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise Wrong("it has a number that is too large")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Wrong("it has a name twice")
    return made


def _refuse_unstorable(value: Any) -> None:
    if isinstance(value, str):
        if NOT_STORED.search(value):
            raise Wrong("it has a character that no database stores")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _refuse_unstorable(name)
            _refuse_unstorable(inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_unstorable(inner)
