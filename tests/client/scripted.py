"""A server of scripted answers, in the test's own process, and clients that talk to it without waiting."""

from collections.abc import Callable, Iterable
from typing import Any

import httpx

from hypac_client import Client, Retries

TOKEN = "a-token-that-nobody-may-read"
SITE = "https://labels.example.org"
Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Script(httpx.BaseTransport):
    """Gives the replies in their order and keeps the requests, bodies read."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        assert self.replies, f"nobody expected {request.method} {request.url}"
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply


def scripted(*replies: Reply, attempts: int = 4) -> tuple[Client, Script, list[float]]:
    """A client, what it sends, and the seconds that it would have waited."""
    script = Script(replies)
    client = Client(SITE, TOKEN, transport=script, retries=Retries(attempts=attempts))
    pauses: list[float] = []
    client._transport.sleep = pauses.append
    return client, script, pauses


def ok(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)


def problem(
    status: int, detail: str = "no", headers: dict[str, str] | None = None, **more: Any
) -> httpx.Response:
    body = {"type": "about:blank", "title": "x", "status": status, "detail": detail, **more}
    given = {"Content-Type": "application/problem+json", **(headers or {})}
    return httpx.Response(status, json=body, headers=given)


def job(state: str = "done", **more: Any) -> dict[str, Any]:
    return {
        **{"id": 7, "kind": "import", "state": state, "stage": "", "done": 0, "total": None},
        **{"error": "", "result": None},
        **more,
    }
