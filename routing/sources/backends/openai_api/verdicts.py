"""What an answer of a model server means for the item and for the source, and how long it asks to wait."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from annotation.outside.net import NetError, NetResponse


class Kind(Enum):
    OK = "answered"
    RETRY = "may be answered if it is asked again"
    LIMITED = "too many calls"
    REFUSED = "refused, because of this item or because of how it is asked"
    FATAL = "no call can be answered"


@dataclass(frozen=True)
class Verdict:
    """`body` is that of a good answer; `wait` the seconds that the server asks for; `status` None where there
    was no HTTP answer; `because` is the reason of a refusal without that it is one."""

    kind: Kind
    reason: str = ""
    wait: float | None = None
    body: Mapping[str, Any] | None = None
    status: int | None = None
    because: str = ""


RETRIED = frozenset({408, 409, 425})
MOST_QUOTED = 200
# Kinds of NetError that say something of this one answer.
OF_THE_ITEM = frozenset({"too_large"})
_QUOTA = re.compile(r"insufficient_quota|billing|exceeded your current quota|credit", re.IGNORECASE)
_TOO_LARGE = re.compile(r"request too large|tokens_exceeded", re.IGNORECASE)
_MODERATED = re.compile(r"content.?(?:filter|management|policy)|moderat|flagged", re.IGNORECASE)
_KEY_LIKE = re.compile(r"(?:sk|key|bearer)[-_ ][\w.*-]{6,}", re.IGNORECASE)


def verdict_on(response: NetResponse, api_key: str = "") -> Verdict:
    """The verdict on an HTTP answer to a chat completion."""
    status, wait = response.status, asked_wait(response.headers)
    body = _json(response)
    error = body.get("error") if isinstance(body, Mapping) else None
    if status == 200 and error:
        # Gateways pass a failure on in a good answer, with the status within.
        code = error.get("code") if isinstance(error, Mapping) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
    said = quoted(body, api_key)
    if status == 200:
        if isinstance(body, Mapping) and has_messages(body):
            return Verdict(Kind.OK, body=body, status=200)
        return Verdict(Kind.RETRY, "the answer is no chat completion", wait, status=200)
    if status == 429:
        if _QUOTA.search(f"{_code(body)} {said}"):
            return _fatal(
                429, "The account at the server has no credit left or is over its quota" + _tail(said)
            )
        if _TOO_LARGE.search(f"{_code(body)} {said}"):
            # Larger than the limit of a whole minute: no pause helps.
            return _refused(429, said)
        return Verdict(Kind.LIMITED, "too many calls (429)" + _tail(said), wait, status=429)
    if status >= 500 or status in RETRIED:
        return Verdict(Kind.RETRY, f"the server failed (status {status})" + _tail(said), wait, status=status)
    return _refusal(status, said, f"{_code(body)} {said}")


def verdict_on_failure(error: NetError) -> Verdict:
    """The verdict where there was no HTTP answer."""
    if error.kind in OF_THE_ITEM:
        return Verdict(Kind.REFUSED, error.message)
    if error.permanent:
        return Verdict(Kind.FATAL, error.message)
    return Verdict(Kind.RETRY, error.message.rstrip("."))


def quoted(body: Any, api_key: str) -> str:
    """The message of a refusal in the form that OpenAI gives it, short and without a key; "" for none."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    message = error if isinstance(error, str) else None
    if isinstance(error, Mapping):
        message = error.get("message")
    if not isinstance(message, str):
        return ""
    return redacted(message, api_key)


def redacted(message: str, api_key: str = "") -> str:
    """What a server says, on one line, short, without a key and what looks like one."""
    text = " ".join(message.split())
    if api_key:
        text = text.replace(api_key, "***")
    text = _KEY_LIKE.sub("***", text)
    text = re.sub("[\0\ud800-\udfff]", "?", text)
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "..."


def _refusal(status: int, said: str, searched: str) -> Verdict:
    if status in (401, 403):
        if status == 403 and _MODERATED.search(searched):
            return _refused(status, said)
        # Without what the server says: it may repeat a part of the key.
        return _fatal(
            status, f"The server refuses the API key ({status}). Enter a key that it accepts in the source"
        )
    if status == 402:
        return _fatal(status, "The account at the server has no credit left (402)" + _tail(said))
    if status in (404, 405):
        return _fatal(
            status,
            f"The server does not know the model or the address ({status}{_tail(said)}). Check both: the "
            "address mostly ends in /v1",
        )
    if status in (400, 413, 422):
        return _refused(status, said)
    if 300 <= status < 400:
        return _fatal(
            status, f"The address leads on to another one ({status}), which is not followed. Enter that one"
        )
    return _fatal(status, f"The server refuses calls (status {status})" + _tail(said))


def _refused(status: int, said: str) -> Verdict:
    because = f"({status}){_tail(said)}"
    return Verdict(Kind.REFUSED, f"the server refused it {because}", status=status, because=because)


def _fatal(status: int, reason: str) -> Verdict:
    return Verdict(Kind.FATAL, f"{reason}.", status=status)


def _tail(said: str) -> str:
    return f": {said}" if said else ""


def _code(body: Any) -> str:
    error = body.get("error") if isinstance(body, Mapping) else None
    return f"{error.get('code')} {error.get('type')}" if isinstance(error, Mapping) else ""


def _json(response: NetResponse) -> Any:
    try:
        return response.json()
    except NetError:
        return None


def has_messages(body: Mapping[str, Any]) -> bool:
    """Whether an answer of status 200 is that to a chat: at least one choice, each with its message."""
    choices = body.get("choices")
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(
            isinstance(choice, Mapping) and isinstance(choice.get("message"), Mapping) for choice in choices
        )
    )


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
