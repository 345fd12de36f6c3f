"""Log-ins that the provider ends while they are under way here, and how often it is asked for its keys."""

import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from joserfc.jwk import RSAKey
from requests import RequestException

from annotation.models import SignOnSession, UsedOnce
from annotation.people import back_channel, sessions, sign_on
from tests.annotation.people.test_back_channel import HOSTILE, KNOWN, is_in, logged_in, sent

__all__ = ["KNOWN"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_whoever_is_on_the_way_here_when_they_are_logged_out_there_does_not_get_in(provider) -> None:
    for own, names in (
        ({"sid": "a"}, {"sid": "a"}),
        ({"sid": "a"}, {"sid": "a", "sub": None}),
        ({"sid": "a"}, {}),
        ({}, {}),
        ({}, {"sid": "b"}),  # of one without a name nobody can tell that it is not this one
    ):
        provider.knows("1", preferred_username="ada", **own)
        client = Client()
        back = provider.way_back(client, "1")
        soon = int(time.time()) + 60  # by the provider's clock: after it made the ID token that comes
        assert sent(provider.logout_token(**names, iat=soon, exp=soon + 60)).status_code == 200
        assert "logged out at the lab meanwhile" in client.get(back, follow=True).content.decode()
        assert not is_in(client)
        assert not SignOnSession.objects.exists()
        UsedOnce.objects.all().delete()
    other = Client()
    back = provider.way_back(other, "1")
    assert sent(provider.logout_token(sid="another", sub=None)).status_code == 200
    assert sent(provider.logout_token(sub="2")).status_code == 200
    other.get(back)
    assert is_in(other), "nobody said anything of this one"


def test_whoever_is_logged_out_there_in_the_very_moment_of_coming_in_is_out(provider, monkeypatch) -> None:
    began = sessions.note_sign_on

    def late(*args: Any, **kwargs: Any) -> None:
        assert sent(provider.logout_token()).status_code == 200  # which finds no session yet
        began(*args, **kwargs)

    monkeypatch.setattr(sessions, "note_sign_on", late)
    client = Client()
    assert provider.log_in(client, "1")["Location"] == "/login/"
    assert not is_in(client)


def test_log_ins_that_ended_are_remembered_for_the_longest_log_in(provider) -> None:
    assert sent(provider.logout_token(sub=None, sid="a")).status_code == 200
    claims = {"sub": "1", "sid": "a", "iat": int(time.time()) - 100}
    assert sessions.has_ended(issuer=provider.issuer, claims=claims)
    again = {**claims, "iat": int(time.time()) + 60}
    assert not sessions.has_ended(issuer=provider.issuer, claims=again), "the same session there, begun anew"
    assert not sessions.has_ended(issuer="https://another", claims=claims)
    UsedOnce.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert not sessions.has_ended(issuer=provider.issuer, claims=claims)
    now = int(time.time())
    for ago in (300, 100, 200):
        assert sent(provider.logout_token(iat=now - ago)).status_code == 200
    for ago, ended in ((400, True), (100, True), (99, False), (0, False)):
        claims = {"sub": "1", "iat": now - ago}
        assert sessions.has_ended(issuer=provider.issuer, claims=claims) is ended, ago
    assert sessions.has_ended(issuer=provider.issuer, claims={"sub": "1"}), (
        "of which nobody knows when it began"
    )


def test_strangers_have_the_keys_asked_for_now_and_then_alone(provider, monkeypatch) -> None:
    monkeypatch.setattr(back_channel, "_asks", back_channel._Asks())
    app, asked = sign_on.provider(), []
    ask = type(app).fetch_jwk_set
    monkeypatch.setattr(
        type(app), "fetch_jwk_set", lambda self, force=False: asked.append(force) or ask(self, force)
    )
    for _ in range(5):
        assert sent(HOSTILE["another's key with its own name"](provider)).status_code == 400
    assert asked.count(True) == 1
    assert sent(provider.logout_token()).status_code == 200


def test_a_provider_that_is_away_holds_up_one_request_alone(provider, monkeypatch) -> None:
    monkeypatch.setattr(back_channel, "_asks", back_channel._Asks())
    monkeypatch.setattr(back_channel, "WAIT_FOR_KEYS", 0.01)
    token = provider.logout_token()
    app = sign_on.provider()
    monkeypatch.delitem(app.server_metadata, "jwks", raising=False)
    begun, away, asked = threading.Event(), threading.Event(), []

    def slow(self, force=False):
        asked.append(force)
        begun.set()
        away.wait(30)
        raise RequestException("away")

    def read() -> None:
        with suppress(back_channel.RefusedError):
            back_channel._read(token)

    with monkeypatch.context() as patch:
        patch.setattr(type(app), "fetch_jwk_set", slow)
        first = threading.Thread(target=read)
        first.start()
        assert begun.wait(30)
        for _ in range(3):
            assert sent(token).status_code == 400
        away.set()
        first.join(30)
        assert sent(token).status_code == 400, "it was asked a moment ago"
        assert asked == [True]
    monkeypatch.setattr(back_channel, "KEYS_EVERY", 0)
    assert sent(token).status_code == 200


def test_a_key_that_the_provider_has_since_is_asked_for(provider, monkeypatch) -> None:
    monkeypatch.setattr(back_channel, "_asks", back_channel._Asks())
    logged_in(provider)
    client = logged_in(provider)
    old = RSAKey.generate_key(2048, auto_kid=True).as_dict(private=False)
    monkeypatch.setitem(sign_on.provider().server_metadata, "jwks", {"keys": [old]})
    assert sent(provider.logout_token()).status_code == 200
    assert not is_in(client)
