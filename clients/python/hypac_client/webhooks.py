"""Whether a webhook is from the server that shares a secret with you (Standard Webhooks)."""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any

from hypac_client.errors import HypacError
from hypac_client.texts import read_json

PREFIX = "whsec_"
TOLERANCE = 300


class WebhookError(HypacError):
    """The request is not one to believe: answer it with 400 and do nothing."""


def verify(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> dict[str, Any]:
    """The event of a webhook, if its signature is right and it is at most `tolerance` seconds old.

    `body` are the very bytes that came, before anything parsed them. An event may come twice: remember
    the header `webhook-id`.
    """
    content = body.encode() if isinstance(body, str) else body
    given = {name.lower(): value for name, value in headers.items()}
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    missing = [name for name in names if not given.get(name)]
    if missing:
        raise WebhookError(f"the header {missing[0]} is missing")
    identifier, stamp, signatures = (given[name] for name in names)
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        raise WebhookError("the header webhook-timestamp is no number of seconds")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise WebhookError("it is too old, or from the future: a replay, or a clock that is wrong")
    signed = b".".join((identifier.encode(), stamp.encode(), content))
    expected = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    if not any(hmac.compare_digest(expected, found) for found in _signatures(signatures)):
        raise WebhookError("no signature fits the secret")
    try:
        event = read_json(content)
    except ValueError:
        raise WebhookError("its body is no JSON") from None
    if not isinstance(event, dict):
        raise WebhookError("its body is no JSON object")
    return event


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:  # an empty one, as of a variable that is not set, anybody could sign with
        raise ValueError(f"the secret is {PREFIX} and base64, as the server showed it")
    return key


def _signatures(header: str) -> list[bytes]:
    """Those of version 1; while a secret is being replaced there are two."""
    found = []
    for entry in header.split():
        version, _, text = entry.partition(",")
        if version == "v1":
            try:
                found.append(base64.b64decode(text, validate=True))
            except (binascii.Error, ValueError):
                continue
    return found
