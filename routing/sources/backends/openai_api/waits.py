"""How long a server asks to be left alone."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# Longer than any time that is meant: a header is as long as whoever sends it wants.
MOST_CHARACTERS = 64
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_KINDS = ("requests", "tokens")


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds, at least 0, or None where nothing is said: from Retry-After (seconds or a date), else from
    OpenAI's x-ratelimit-reset-* of what is used up ("1m30s", "12ms"), or the longer one where neither says
    that it is. A value that no time needs the length of says nothing.
    """
    if (given := _said(headers, "retry-after-ms")) and (found := _number(given)) is not None:
        return found / 1000
    if given := _said(headers, "retry-after"):
        seconds = _number(given)
        if seconds is None:
            seconds = _until(given)
        if seconds is not None:
            return seconds
    resets = {kind: _duration(_said(headers, f"x-ratelimit-reset-{kind}")) for kind in _KINDS}
    used_up = [kind for kind in _KINDS if _said(headers, f"x-ratelimit-remaining-{kind}") == "0"]
    found_waits = [wait for kind in (used_up or _KINDS) if (wait := resets[kind]) is not None]
    return max(found_waits, default=None)


def _said(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name) or ""
    return value.strip() if len(value) <= MOST_CHARACTERS else ""


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if value < float("inf") else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _duration(text: str) -> float | None:
    """Seconds of "1h2m3.5s", "12ms" or "20"."""
    if (number := _number(text)) is not None:
        return number
    if not text or _PART.sub("", text):
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text))
