"""Cells of imported data that hold more than one value.

A cell is text, as every imported cell is: a JSON list or object, or values separated by semicolons. Nothing
here raises: what cannot be read is kept as it is, and the score that reads it says what is wrong.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

_SEPARATORS = re.compile(r"[;\s]+")
LARGEST = 10**8


def numbers(cell: Any) -> list[Any]:
    """Numbers of a JSON list, or separated by semicolons or blanks."""
    value = _json(cell)
    if value is None:
        return [_number(part) for part in _SEPARATORS.split(str(cell).strip()) if part]
    return value if isinstance(value, list) else [value]


def listed(cell: Any) -> list[Any]:
    """Texts of a JSON list, or separated by semicolons; none where the cell is the beginning of a list."""
    value = _json(cell)
    if isinstance(value, list):
        return [entry if isinstance(entry, str) or entry is None else json.dumps(entry) for entry in value]
    text = str(cell).strip()
    return [part.strip() for part in text.split(";")] if text and text[0] not in "[{" else []


def label_numbers(cell: Any) -> dict[str, Any] | list[Any]:
    """Label -> number, from a JSON object or from `label: number` separated by semicolons; a JSON list stays
    a list, of numbers in an order that is not told."""
    value = _json(cell)
    if isinstance(value, dict | list):
        return value
    pairs = (part.rpartition(":") for part in str(cell).split(";") if part.strip())
    return {label.strip(): _number(number.strip()) for label, _, number in pairs}


def decimal_cell(cell: Any) -> Decimal | None:
    """A number from 0 to 10^8, exclusive; None where the cell holds none."""
    try:
        number = Decimal(str(cell).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and 0 <= number < LARGEST else None


def _json(cell: Any) -> Any:
    """The value of a cell that is JSON and that a database can store as JSON; None where it is not.

    What lies deeper than the entries of a list or an object stays text.
    """
    text = str(cell)
    if "\\u0000" in text:
        return None
    try:
        # NaN and infinity are no JSON; as text the scores still say what they are.
        value = json.loads(text, parse_constant=str, parse_float=_number)
        if isinstance(value, list):
            value = [_shallow(entry) for entry in value]
        elif isinstance(value, dict):
            value = {key: _shallow(entry) for key, entry in value.items()}
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails on lone halves of surrogate pairs
    except (ValueError, RecursionError):
        return None
    return value


def _shallow(entry: Any) -> Any:
    return json.dumps(entry, ensure_ascii=False) if isinstance(entry, list | dict) else entry


def _number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if abs(number) < float("inf") else text
