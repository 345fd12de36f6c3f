"""What makes two items the same, and what several columns look like as one text."""

import hashlib
import json
from collections.abc import Sequence

Fields = Sequence[tuple[str, str]]
"""Name and value of each column that is shown, in their order."""


def text_hash(text: str) -> str:
    """SHA-256 (hexadecimal) of what people see of a text item. An image item has the hash of its file."""
    return hashlib.sha256(text.encode()).hexdigest()


def fields_text(fields: Fields) -> str:
    """The fields one below the other: what models read, and what is searched."""
    return "\n".join(f"{name}: {value}" for name, value in fields)


def fields_hash(fields: Fields) -> str:
    """As `text_hash`, of an item with several fields: their names and their order are seen, too.

    No text has a NUL, so that no text has the same hash.
    """
    return text_hash("fields\0" + json.dumps([[name, value] for name, value in fields]))
