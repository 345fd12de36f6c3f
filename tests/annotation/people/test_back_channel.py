"""The provider says by itself that a log-in there is over: with tokens that it signs, and with all kinds that
it did not.
"""

import base64
import hmac
import json
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from annotation.common import once
from annotation.maintenance import run_maintenance
from annotation.models import AuditEvent, SignOnSession, UsedOnce, User
from annotation.people import back_channel, sessions, sign_on_views, tokens
from testbed.factories import make_user
from tests.openid_provider import CLIENT, LOGGED_OUT, OpenIDProvider

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PATH = "/sign-on/log-out/"
FORM = "application/x-www-form-urlencoded"
KNOWN = {"1": {"preferred_username": "ada"}, "2": {"preferred_username": "bob"}}


def sent(token: str, **fields: str):
    """As the provider sends it: without a cookie, and without the token of a form."""
    client = Client(enforce_csrf_checks=True)
    return client.post(PATH, urlencode({"logout_token": token, **fields}), content_type=FORM)


def logged_in(provider: OpenIDProvider, sub: str = "1", *, sid: str | None = None) -> Client:
    names = {"1": "ada", "2": "bob"}
    UsedOnce.objects.filter(name__startswith="ended:").delete()  # as a second later
    provider.knows(sub, preferred_username=names[sub], **({} if sid is None else {"sid": sid}))
    client = Client()
    assert provider.log_in(client, sub).status_code == 302
    assert is_in(client)
    return client


def is_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_a_person_is_logged_out_wherever_they_are_and_nobody_else(provider) -> None:
    here, there, other = logged_in(provider), logged_in(provider, sid="b"), logged_in(provider, "2")
    answer = sent(provider.logout_token(), more="ignored")
    assert (answer.status_code, answer.content, answer["Cache-Control"]) == (200, b"", "no-store")
    assert [is_in(client) for client in (here, there, other)] == [False, False, True]
    event = AuditEvent.objects.get(action="account.sessions_ended")
    assert (event.actor, event.target) == (None, "user:ada")
    assert event.data == {"user": User.objects.get(username="ada").pk, "sessions": 2}
    assert SignOnSession.objects.count() == 1
    assert is_in(logged_in(provider)), "and may come back"


def test_one_session_is_ended_where_the_provider_names_it(provider) -> None:
    one, other = logged_in(provider, sid="a"), logged_in(provider, sid="b")
    bobs = logged_in(provider, "2", sid="c")
    assert sent(provider.logout_token(sid="a", sub=None)).status_code == 200
    assert [is_in(client) for client in (one, other, bobs)] == [False, True, True]
    assert sent(provider.logout_token(sid="c")).status_code == 200, "of ada, whose session it is not"
    assert [is_in(client) for client in (other, bobs)] == [True, True]
    assert sent(provider.logout_token(sid="b", sub="1")).status_code == 200
    assert [is_in(client) for client in (other, bobs)] == [False, True]


def test_a_session_of_which_the_provider_said_no_name_ends_with_any_of_the_person(provider) -> None:
    nameless, named = logged_in(provider), logged_in(provider, sid="b")
    provider.knows("1", preferred_username="ada")
    assert sent(provider.logout_token(sid="x", sub=None)).status_code == 200
    assert is_in(nameless)
    assert sent(provider.logout_token(sid="x")).status_code == 200
    assert [is_in(nameless), is_in(named)] == [False, True]


def test_sessions_from_before_anything_was_remembered_end_too(provider) -> None:
    client = logged_in(provider)
    SignOnSession.objects.all().delete()
    assert sent(provider.logout_token()).status_code == 200
    assert not is_in(client)


def test_a_session_that_ended_all_others_is_still_the_providers_to_end(provider) -> None:
    here, there = logged_in(provider, sid="a"), logged_in(provider, sid="b")
    here.post("/account/log-out-elsewhere/")
    assert [is_in(client) for client in (here, there)] == [True, False]
    assert sent(provider.logout_token(sid="a")).status_code == 200
    assert not is_in(here)


def test_whom_nobody_knows_here_or_who_is_out_already_is_no_fault(provider) -> None:
    assert sent(provider.logout_token(sub="nobody")).status_code == 200
    assert sent(provider.logout_token(sub=None, sid="none")).status_code == 200
    client = logged_in(provider)
    client.post("/logout/")
    assert sent(provider.logout_token()).status_code == 200
    assert not AuditEvent.objects.filter(action="account.sessions_ended").exists()


def test_tokens_of_the_api_go_on_for_their_days(provider, settings) -> None:
    logged_in(provider)
    _row, secret = tokens.make_token(user=User.objects.get(username="ada"), name="nightly")
    assert sent(provider.logout_token()).status_code == 200
    headers = {"Authorization": f"Token {secret}"}
    assert Client().get("/api/v1/projects/", headers=headers).status_code == 200
    User.objects.update(signed_on_at=timezone.now() - timedelta(days=settings.HYPAC_OIDC_TOKEN_DAYS, hours=1))
    assert Client().get("/api/v1/projects/", headers=headers).status_code == 401


def encoded(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def part(token: str, number: int) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[number] + "=="))


def by_hand(provider: OpenIDProvider, sign: Callable[[bytes], bytes], **header: object) -> str:
    """What no library would write."""
    token = provider.logout_token()
    text = f"{encoded({**part(token, 0), **header})}.{token.split('.')[1]}"
    return f"{text}.{encoded(sign(text.encode()))}"


def unsigned(provider: OpenIDProvider, algorithm: str) -> str:
    return by_hand(provider, lambda _: b"", alg=algorithm)


def changed(provider: OpenIDProvider) -> str:
    """With the signature of another one."""
    header, _claims, signature = provider.logout_token(sub="2").split(".")
    return f"{header}.{provider.logout_token().split('.')[1]}.{signature}"


def by_public_key(provider: OpenIDProvider) -> str:
    """HS256, with what everybody can read as the secret."""
    secret = provider.key.as_pem(private=False)
    return by_hand(provider, lambda text: hmac.digest(secret, text, "sha256"), alg="HS256")


def with_what_must_be_understood(provider: OpenIDProvider) -> str:
    key = provider.key.private_key
    return by_hand(provider, lambda text: key.sign(text, PKCS1v15(), SHA256()), crit=["x"], x=1)


def with_own_key(provider: OpenIDProvider) -> str:
    """Its own key stands in the header."""
    own = another_key()
    header = {"alg": "RS256", "kid": provider.key.kid, "jwk": own.as_dict(private=False)}
    return jwt.encode(header, part(provider.logout_token(), 1), own)


@cache
def another_key() -> RSAKey:
    return RSAKey.generate_key(2048)


def ago(seconds: float) -> int:
    return int(time.time() - seconds)


HOSTILE: dict[str, Callable[[OpenIDProvider], str]] = {
    "nothing": lambda _: "",
    "no token": lambda _: "x",
    "dots": lambda _: "..",
    "not of this alphabet": lambda _: "ä.ö.ü",
    "deep": lambda _: base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.e30",
    "unsigned": lambda p: unsigned(p, "none"),
    "unsigned, in large letters": lambda p: unsigned(p, "NONE"),
    "no signature": lambda p: unsigned(p, "RS256"),
    "the signature of another": changed,
    "the public key as a secret": by_public_key,
    "the client's secret": lambda p: p.logout_token({"alg": "HS256"}, key=OctKey.import_key("s3cret" * 8)),
    "another's key": lambda p: p.logout_token(key=another_key()),
    "another's key with its own name": lambda p: p.logout_token({"kid": "mine"}, key=another_key()),
    "its own key in the header": with_own_key,
    "a key of another kind": lambda p: p.logout_token({"alg": "ES256"}, key=ECKey.generate_key("P-256")),
    "an ID token": lambda p: p.logout_token({"typ": "JWT"}, events=None, nonce="n", jti=None),
    "an access token": lambda p: p.logout_token({"typ": "at+jwt"}),
    "another issuer": lambda p: p.logout_token(iss="https://evil.example"),
    "no issuer": lambda p: p.logout_token(iss=None),
    "an issuer that begins alike": lambda p: p.logout_token(iss=f"{p.issuer}/"),
    "another audience": lambda p: p.logout_token(aud="other"),
    "other audiences": lambda p: p.logout_token(aud=["other", f"{CLIENT}2"]),
    "an audience that is none": lambda p: p.logout_token(aud={CLIENT: 1}),
    "expired": lambda p: p.logout_token(exp=ago(back_channel.CLOCKS + 5)),
    "no end": lambda p: p.logout_token(exp=None),
    "an end in words": lambda p: p.logout_token(exp="never"),
    "from the future": lambda p: p.logout_token(iat=ago(-back_channel.CLOCKS - 30), exp=ago(-9000)),
    "of long ago, with a late end": lambda p: p.logout_token(iat=ago(back_channel.TAKEN_FOR + 5)),
    "no beginning": lambda p: p.logout_token(iat=None),
    "a beginning that is true": lambda p: p.logout_token(iat=True),
    "a beginning beyond all numbers": lambda p: p.logout_token(iat=10**400),
    "not valid yet": lambda p: p.logout_token(nbf=ago(-back_channel.CLOCKS - 30)),
    "a nonce": lambda p: p.logout_token(nonce="n"),
    "an empty nonce": lambda p: p.logout_token(nonce=""),
    "no event": lambda p: p.logout_token(events=None),
    "another event": lambda p: p.logout_token(events={"http://schemas.openid.net/event/other": {}}),
    "an event that is a list": lambda p: p.logout_token(events=[LOGGED_OUT]),
    "an event without an object": lambda p: p.logout_token(events={LOGGED_OUT: "yes"}),
    "no number": lambda p: p.logout_token(jti=None),
    "an empty number": lambda p: p.logout_token(jti=""),
    "a number without end": lambda p: p.logout_token(jti="x" * 256),
    "about nobody": lambda p: p.logout_token(sub=None),
    "about a list": lambda p: p.logout_token(sub=["1"]),
    "a session that is a number": lambda p: p.logout_token(sid=1),
    "a header that must be understood": with_what_must_be_understood,
    "larger than any": lambda p: p.logout_token(more="x" * back_channel.MOST_BYTES),
}


def test_whatever_does_not_hold_ends_nothing_and_gets_one_answer(provider) -> None:
    client = logged_in(provider, sid="a")
    before = AuditEvent.objects.count()
    found = {}
    for kind, make in HOSTILE.items():
        answer = sent(make(provider))
        told = (answer.status_code, answer["Cache-Control"], answer.content.decode())
        found[kind] = (*told, is_in(client), AuditEvent.objects.count() - before, UsedOnce.objects.count())
    wanted = (400, "no-store", '{"error": "invalid_request"}', True, 0, 0)
    assert {kind: got for kind, got in found.items() if got != wanted} == {}
    assert len(found) > 40


def test_what_was_made_by_hand_is_refused_for_what_is_wrong_with_it_alone(provider) -> None:
    key = provider.key.private_key
    client = logged_in(provider)
    assert sent(by_hand(provider, lambda text: key.sign(text, PKCS1v15(), SHA256()))).status_code == 200
    assert not is_in(client)


def test_what_is_asked_of_a_token_is_what_a_good_one_has(provider) -> None:
    """Else a test above would show nothing."""
    for header, claims in (
        ({}, {}),
        ({"typ": "JWT"}, {"aud": [CLIENT, "other"], "nbf": ago(5)}),
        ({"typ": "application/logout+jwt"}, {"events": {LOGGED_OUT: {"more": 1}, "other": {}}}),
        ({"alg": "PS256"}, {"iat": ago(back_channel.TAKEN_FOR - 30), "exp": ago(30)}),
    ):
        client = logged_in(provider)
        assert sent(provider.logout_token(header, **claims)).status_code == 200, (header, claims)
        assert not is_in(client)


def test_a_token_holds_once(provider) -> None:
    token = provider.logout_token()
    logged_in(provider)
    assert sent(token).status_code == 200
    client = logged_in(provider)
    assert sent(token).status_code == 400
    assert sent(provider.logout_token(jti=part(token, 1)["jti"], sid="other")).status_code == 400
    assert is_in(client)


def test_a_token_that_could_not_be_obeyed_can_be_sent_again(provider, monkeypatch) -> None:
    client, token = logged_in(provider), provider.logout_token()
    with monkeypatch.context() as patch:
        patch.setattr(back_channel, "end_by_provider", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sent(token)
    assert sent(token).status_code == 200
    assert not is_in(client)


def test_it_is_sent_as_one_form_by_post_alone(provider) -> None:
    token, client = provider.logout_token(), logged_in(provider)
    assert Client().get(PATH, {"logout_token": token}).status_code == 405
    assert Client().put(PATH, {"logout_token": token}).status_code == 405
    many = urlencode([("logout_token", token)] * 2)
    for body, kind in (
        (many, FORM),
        (urlencode({"token": token}), FORM),
        (json.dumps({"logout_token": token}), "application/json"),
        ("", FORM),
    ):
        assert Client().post(PATH, body, content_type=kind).status_code == 400, kind
    assert Client().post(PATH, {"logout_token": token}).status_code == 400, "as parts"
    address = f"{PATH}?{urlencode({'logout_token': token})}"
    assert Client().post(address, "", content_type=FORM).status_code == 400
    assert is_in(client)


def test_nothing_is_read_of_a_body_that_is_too_large_or_of_unknown_length(provider, rf, monkeypatch) -> None:
    def fail(*_):
        raise AssertionError("read")

    for length in (str(back_channel.MOST_BYTES + 1), "9" * 5000, "", "-1", "x", "١"):
        request = rf.post(PATH, "logout_token=x", content_type=FORM)
        request.META["CONTENT_LENGTH"] = length
        monkeypatch.setattr(type(request), "read", fail)
        assert sign_on_views.sign_on_log_out(request).status_code == 400, length


def test_so_many_come_from_one_address(provider, monkeypatch) -> None:
    monkeypatch.setattr(sign_on_views._LogOutThrottle, "rate", "2/min")
    client = logged_in(provider)
    for _ in range(2):
        assert sent("x").status_code == 400
    refused = sent(provider.logout_token())
    assert (refused.status_code, refused["Cache-Control"]) == (429, "no-store")
    assert int(refused["Retry-After"]) > 0
    assert is_in(client)
    other = Client(REMOTE_ADDR="192.0.2.7")
    assert other.post(PATH, urlencode({"logout_token": provider.logout_token()}), FORM).status_code == 200


def test_where_the_provider_is_away_or_there_is_none(provider, settings) -> None:
    token = provider.logout_token()
    settings.HYPAC_OIDC_ISSUER = "http://localhost:9"
    assert sent(token).status_code == 400
    settings.HYPAC_OIDC_ISSUER = ""
    assert sent(token).status_code == 404


def test_what_was_remembered_is_forgotten_in_time(provider) -> None:
    logged_in(provider)
    assert sent(provider.logout_token(sub="2")).status_code == 200
    run_maintenance()
    assert (SignOnSession.objects.count(), UsedOnce.objects.count()) == (1, 2)
    UsedOnce.objects.update(until=timezone.now() - timedelta(seconds=1))
    SignOnSession.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    once.forget_old()
    sessions.forget_old()
    assert (SignOnSession.objects.count(), UsedOnce.objects.count()) == (0, 0)


def test_local_accounts_are_not_the_providers_to_log_out(provider) -> None:
    local = make_user("1")
    client = Client()
    client.force_login(local, "annotation.people.log_in.PasswordBackend")
    assert sent(provider.logout_token(sub="1")).status_code == 200
    assert sent(provider.logout_token(sub=None, sid="")).status_code == 400
    assert is_in(client)
    assert Session.objects.count() == 1
