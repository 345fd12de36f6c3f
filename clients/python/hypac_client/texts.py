"""Texts of others: JSON that is read, and words of the server or a file that a terminal shows."""

import json
import unicodedata
from typing import Any


def read_json(text: str | bytes, **options: Any) -> Any:
    """As `json.loads`; ValueError also where it is nested more deeply than can be read."""
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def printable(text: str, encoding: str | None = None, *, lines: bool = False) -> str:
    """On one line, as any terminal can show it: nothing in it moves the cursor, changes colours or the order
    of letters, or cannot be written. `lines`: its line ends stay.
    """
    kept = "\n" if lines else ""
    plain = "".join(sign if _shows(sign) or sign in kept else repr(sign)[1:-1] for sign in text)
    return plain.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def printable_json(value: Any, encoding: str | None = None) -> str:
    """The same of a value as JSON, which says the same."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(
        sign if _shows(sign) and _can_be_written(sign, encoding) else json.dumps(sign)[1:-1] for sign in text
    )


def _shows(sign: str) -> bool:
    return sign.isprintable() or unicodedata.category(sign) == "Zs"


def _can_be_written(sign: str, encoding: str | None) -> bool:
    try:
        sign.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
