"""Texts that any database stores."""

import re
from collections.abc import Mapping
from typing import Any

# PostgreSQL stores neither NUL nor half of a surrogate pair, in text or in JSON.
NOT_STORED = re.compile("[\0\ud800-\udfff]")


def storable_text(text: str) -> str:
    """The text with U+FFFD in place of each character that cannot be stored."""
    return NOT_STORED.sub("\N{REPLACEMENT CHARACTER}", text)


def storable(value: Any) -> Any:
    """The same of every text in a value of JSON, names too."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable(name): storable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [storable(entry) for entry in value]
    return value
