"""The lines of batch files: JSON, one call or one result each, joined by their custom_id."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from routing.sources.backends.openai_api.verdicts import has_messages, redacted

PATH = "/v1/chat/completions"
# Statuses after which the same call may be answered another time.
AGAIN = frozenset({408, 409, 425, 429})


@dataclass(frozen=True)
class Result:
    """`body` is that of a chat completion; without one `reason` says why, and `again` whether the call may be
    sent once more."""

    custom_id: str
    body: Mapping[str, Any] | None = None
    reason: str = ""
    again: bool = False


def request_line(custom_id: str, body: Mapping[str, Any]) -> bytes:
    entry = {"custom_id": custom_id, "method": "POST", "url": PATH, "body": body}
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_results(lines: Iterable[bytes]) -> Iterator[Result]:
    """The results in a file of outputs or errors. Lines that cannot be read are left out: their calls then
    have no result, as those that were never answered."""
    for line in lines:
        entry = _object(line)
        custom_id = entry.get("custom_id")
        if isinstance(custom_id, str):
            yield read_result(custom_id, entry)


def ids_in(content: bytes) -> set[str]:
    """The custom_ids of a file of calls."""
    return {str(_object(line).get("custom_id")) for line in content.splitlines()}


def read_result(custom_id: str, entry: Mapping[str, Any]) -> Result:
    """What the object of a line says about one call."""
    response = entry.get("response")
    response = response if isinstance(response, Mapping) else {}
    body = response.get("body")
    status = response.get("status_code")
    status = status if isinstance(status, int) else 0
    if status == 200 and isinstance(body, Mapping) and has_messages(body):
        return Result(custom_id, body)
    error = entry.get("error") or (body.get("error", body) if isinstance(body, Mapping) else None)
    said = error.get("message") if isinstance(error, Mapping) else error
    code = error.get("code") if isinstance(error, Mapping) else None
    tail = f": {redacted(said)}" if isinstance(said, str) and said.strip() else ""
    if code == "batch_expired":
        return Result(custom_id, reason="the batch expired before it was answered", again=True)
    if status >= 500 or status in AGAIN or status in (0, 200):
        return Result(custom_id, reason=f"the server failed (status {status}){tail}", again=True)
    return Result(custom_id, reason=f"the server refused it ({status}){tail}")


def _object(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}
