"""What an answer of a model server means for the item and for the source, and how long it asks to wait."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import HypacError
from annotation.failures import Failure
from annotation.outside.net import NetError, NetResponse


class Kind(Enum):
    OK = "answered"
    RETRY = "may be answered if it is asked again"
    LIMITED = "too many calls"
    REFUSED = "refused, because of this item or because of how it is asked"
    FATAL = "no call can be answered"


# Of an item, or parts of what is said where none can be answered.
NO_COMPLETION = failures.register("no_chat_completion", gettext_noop("the answer is no chat completion"))
TOO_MANY_CALLS = failures.register("too_many_calls", gettext_noop("too many calls (429)%(said)s"))
SERVER_FAILED = failures.register(
    "model_server_failed", gettext_noop("the server failed (status %(status)s)%(said)s")
)
ITEM_REFUSED = failures.register("item_refused", gettext_noop("the server refused it %(because)s"))

OVER_QUOTA = failures.register(
    "over_quota",
    gettext_noop("The account at the server has no credit left or is over its quota%(said)s."),
)
KEY_REFUSED = failures.register(
    "api_key_refused",
    gettext_noop("The server refuses the API key (%(status)s). Enter a key that it accepts in the source."),
)
NO_CREDIT = failures.register(
    "no_credit", gettext_noop("The account at the server has no credit left (402)%(said)s.")
)
NOT_KNOWN = failures.register(
    "model_or_address_unknown",
    gettext_noop(
        "The server does not know the model or the address (%(status)s%(said)s). Check both: the address "
        "mostly ends in /v1."
    ),
)
LEADS_ON = failures.register(
    "address_leads_on",
    gettext_noop("The address leads on to another one (%(status)s), which is not followed. Enter that one."),
)
CALLS_REFUSED = failures.register(
    "calls_refused", gettext_noop("The server refuses calls (status %(status)s)%(said)s.")
)


@dataclass(frozen=True)
class Verdict:
    """`body` is that of a good answer, and `error` why it is none; `wait` the seconds that the server asks
    for; `status` None where there was no HTTP answer; `said` is what the server says of a refusal."""

    kind: Kind
    error: HypacError | None = None
    wait: float | None = None
    body: Mapping[str, Any] | None = None
    status: int | None = None
    said: str = ""

    @property
    def reason(self) -> str:
        """A part of a sentence, in English, as it is stored with an item."""
        return str(failures.part_of_error(self.error)["words"]).rstrip(".") if self.error else ""

    @property
    def why(self) -> failures.Part | str:
        """`reason`, as a parameter of a failure."""
        return failures.clause(failures.part_of_error(self.error)) if self.error else ""


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
        return Verdict(Kind.RETRY, NO_COMPLETION.error(), wait, status=200)
    if status == 429:
        if _QUOTA.search(f"{_code(body)} {said}"):
            return _fatal(429, OVER_QUOTA, said=_tail(said))
        if _TOO_LARGE.search(f"{_code(body)} {said}"):
            # Larger than the limit of a whole minute: no pause helps.
            return _refused(429, said)
        return Verdict(Kind.LIMITED, TOO_MANY_CALLS.error(said=_tail(said)), wait, status=429)
    if status >= 500 or status in RETRIED:
        failed = SERVER_FAILED.error(status=status, said=_tail(said))
        return Verdict(Kind.RETRY, failed, wait, status=status)
    return _refusal(status, said, f"{_code(body)} {said}")


def verdict_on_failure(error: NetError) -> Verdict:
    """The verdict where there was no HTTP answer."""
    if error.kind in OF_THE_ITEM:
        return Verdict(Kind.REFUSED, error)
    return Verdict(Kind.FATAL if error.permanent else Kind.RETRY, error)


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
        return _fatal(status, KEY_REFUSED)
    if status == 402:
        return _fatal(status, NO_CREDIT, said=_tail(said))
    if status in (404, 405):
        return _fatal(status, NOT_KNOWN, said=_tail(said))
    if status in (400, 413, 422):
        return _refused(status, said)
    if 300 <= status < 400:
        return _fatal(status, LEADS_ON)
    return _fatal(status, CALLS_REFUSED, said=_tail(said))


def _refused(status: int, said: str) -> Verdict:
    because = f"({status}){_tail(said)}"
    return Verdict(Kind.REFUSED, ITEM_REFUSED.error(because=because), status=status, said=because)


def _fatal(status: int, why: Failure, **params: Any) -> Verdict:
    return Verdict(Kind.FATAL, why.error(status=status, **params), status=status)


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
