"""Webhooks: believed where the reference implementation believes them."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from hypac_client.webhooks import WebhookError, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = json.dumps({"type": "label.created", "data": {"project": "a"}}).encode()
NOW = 1_800_000_000


def headers(secret: str = SECRET, *, body: bytes = BODY, at: int = NOW) -> dict[str, str]:
    signature = Webhook(secret).sign("msg_1", datetime.fromtimestamp(at, UTC), body.decode())
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(at), "Webhook-Signature": signature}


def test_a_signed_event_is_believed() -> None:
    assert verify(BODY, headers(), SECRET, now=NOW + 10)["type"] == "label.created"
    assert verify(BODY.decode(), headers(), SECRET, now=NOW - 10)["data"] == {"project": "a"}


def test_while_a_secret_is_replaced_either_signature_is_enough() -> None:
    both = headers() | {
        "Webhook-Signature": f"{headers(OTHER)['Webhook-Signature']} v2,x {headers()['Webhook-Signature']}"
    }
    assert verify(BODY, both, SECRET, now=NOW)
    assert verify(BODY, both, OTHER, now=NOW)


@pytest.mark.parametrize(
    ("given", "body", "now", "reason"),
    [
        (headers(OTHER), BODY, NOW, "no signature fits"),
        (headers(), BODY + b" ", NOW, "no signature fits"),
        (headers() | {"Webhook-Id": "msg_2"}, BODY, NOW, "no signature fits"),
        (headers() | {"Webhook-Timestamp": str(NOW + 1)}, BODY, NOW, "no signature fits"),
        (headers() | {"Webhook-Signature": "v1,@@@ v1"}, BODY, NOW, "no signature fits"),
        (headers(), BODY, NOW + 301, "too old"),
        (headers(), BODY, NOW - 301, "from the future"),
        (headers() | {"Webhook-Timestamp": "soon"}, BODY, NOW, "no number"),
        ({"Webhook-Id": "msg_1"}, BODY, NOW, "webhook-timestamp is missing"),
        (headers(body=b"[1]"), b"[1]", NOW, "no JSON object"),
        (headers(body=b"hi"), b"hi", NOW, "no JSON"),
    ],
)
def test_anything_else_is_not(given: dict[str, str], body: bytes, now: int, reason: str) -> None:
    with pytest.raises(WebhookError, match=reason):
        verify(body, given, SECRET, now=now)


def test_a_secret_that_is_none_is_a_mistake_of_ones_own() -> None:
    for secret in ("not base64!", "", "whsec_"):
        with pytest.raises(ValueError, match="whsec_"):
            verify(BODY, headers(), secret, now=NOW)
