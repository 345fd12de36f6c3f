"""A real OpenID Connect provider for tests: who logs in there is whom the test names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from django.http import HttpResponse
from django.test import Client
from oidc_provider_mock import run_server_in_thread

CLIENT = "hypac"


class OpenIDProvider:
    def __init__(self, port: int) -> None:
        self.issuer = f"http://localhost:{port}"

    def knows(self, sub: str, **claims: Any) -> None:
        httpx.put(f"{self.issuer}/users/{sub}", json=claims).raise_for_status()

    def log_in(self, client: Client, sub: str, *, wanted: str = "") -> HttpResponse:
        """The whole way there and back; what the site answers at its end."""
        return client.get(self.way_back(client, sub, wanted=wanted))

    def way_back(self, client: Client, sub: str, *, wanted: str = "") -> str:
        """Where the provider sends the browser once `sub` has logged in there."""
        there = client.get("/sign-on/", {"next": wanted} if wanted else {})
        assert there.status_code == 302, there.content
        answer = httpx.post(there["Location"], data={"sub": sub})
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"].removeprefix("http://testserver")


@contextmanager
def openid_provider() -> Iterator[OpenIDProvider]:
    with run_server_in_thread(require_nonce=True) as server:
        yield OpenIDProvider(server.server_port)
