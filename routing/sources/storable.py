"""What models and servers send, made fit for the columns and the JSON of any database."""

import json
import math
import re
from typing import Any

from annotation.common.value_reader import ValueReason
from annotation.storable import NOT_STORED, storable_text
from routing.core.reasons import ScoreReason

MAX_COUNT = 2**31 - 1
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def text(value: str, length: int) -> str:
    """At most `length` characters, each of which can be stored."""
    return storable_text(value[:length])


def reason_columns(reason: str) -> dict[str, str]:
    """Code of a reason and what it quotes, "" where it has none."""
    if not isinstance(reason, ValueReason | ScoreReason):
        return {"reason_code": "", "reason_quotes": ""}
    return {"reason_code": reason.code, "reason_quotes": text(reason.quotes, 60)}


REASON = ("reason", "reason_code", "reason_quotes")
"""The columns of a reason, as `stored_reason` takes them."""


def stored_reason(words: str, code: str, quotes: str) -> str:
    """A reason as it was before it was stored."""
    return ValueReason(words, code, quotes) if words else ""


def fits(value: Any) -> bool:
    """Whether every text in a value of JSON, names too, can be stored."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str) and NOT_STORED.search(part):
            return False
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
    return True


def count(value: int | None) -> int | None:
    """A number of tokens; None where it is none that can be stored."""
    return value if value is not None and 0 <= value <= MAX_COUNT else None


def document(value: dict[str, Any]) -> dict[str, Any]:
    """JSON in which every number is finite and every text can be stored; what is not becomes None or U+FFFD.

    Most documents are fine, and a single pass in C tells so.
    """
    try:
        if not _SUSPECT.search(json.dumps(value, allow_nan=False)):
            return value
    except (ValueError, TypeError):
        pass
    cleaned: dict[str, Any] = _clean(value)
    return cleaned


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int) else str(value)
