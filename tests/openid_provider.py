"""A real OpenID Connect provider for tests: who logs in there is whom the test names."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import flask
import httpx
from django.http import HttpResponse
from django.test import Client
from joserfc import jwt
from joserfc.jwk import RSAKey
from oidc_provider_mock import run_server_in_thread

CLIENT = "hypac"
LOGGED_OUT = "http://schemas.openid.net/event/backchannel-logout"


class OpenIDProvider:
    def __init__(self, port: int, app: flask.Flask, http: httpx.Client) -> None:
        self.issuer = f"http://localhost:{port}"
        self._app, self._http = app, http

    def knows(self, sub: str, **claims: Any) -> None:
        self._http.put(f"{self.issuer}/users/{sub}", json=claims).raise_for_status()

    def log_in(self, client: Client, sub: str, *, wanted: str = "") -> HttpResponse:
        """The whole way there and back; what the site answers at its end."""
        return client.get(self.way_back(client, sub, wanted=wanted))

    def way_back(self, client: Client, sub: str, *, wanted: str = "") -> str:
        """Where the provider sends the browser once `sub` has logged in there."""
        there = client.get("/sign-on/", {"next": wanted} if wanted else {})
        assert there.status_code == 302, there.content
        answer = self._http.post(there["Location"], data={"sub": sub})
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"].removeprefix("http://testserver")

    def logout_token(self, header: dict[str, Any] | None = None, key: Any = None, **changes: Any) -> str:
        """Signed as the provider signs its ID tokens. A claim that is changed to None is left out."""
        key, now = key or self.key, int(time.time())
        claims = {
            **{"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 120},
            **{"jti": secrets.token_urlsafe(), "events": {LOGGED_OUT: {}}, "sub": "1"},
            **changes,
        }
        signed = {"alg": "RS256", "kid": self.key.kid, "typ": "logout+jwt", **(header or {})}
        told = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(signed, told, key, algorithms=[signed["alg"]])

    @cached_property
    def key(self) -> RSAKey:
        with self._app.test_request_context():
            self._app.preprocess_request()
            return RSAKey.import_key(flask.g.oidc_provider_mock_storage.jwk.as_dict(is_private=True))


@contextmanager
def openid_provider() -> Iterator[OpenIDProvider]:
    with run_server_in_thread(require_nonce=True) as server, httpx.Client() as http:
        yield OpenIDProvider(server.server_port, cast(Any, server).app, http)
