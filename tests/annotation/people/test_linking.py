"""An account with a second step becomes that of somebody at the provider only after that step."""

import time
from urllib.parse import urlencode

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from annotation.models import AuditEvent, AuthenticatorApp, Mail, SignOnSession, User
from annotation.people.second_factor import change, passkeys
from annotation.people.sign_on import SecondStepFirstError, provider as sign_on_provider, sign_on
from testbed.factories import PASSWORD, make_user
from tests.annotation.people.test_passkeys import add, options_in
from tests.annotation.people.test_second_factor import STEP, code_of, in_the_middle, with_app
from tests.passkey import Authenticator

__all__ = ["in_the_middle"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]
ANN = {"preferred_username": "ann", "email": "ann@lab.example", "email_verified": True}
KNOWN = {"7": ANN}


@pytest.fixture
def ann() -> User:
    user = make_user("ann", password=PASSWORD)
    user.email, user.email_confirmed_at = "ann@lab.example", timezone.now()
    user.save()
    return user


def is_untouched(ann: User) -> bool:
    ann.refresh_from_db()
    return ann.sign_on is None and ann.check_password(PASSWORD) and User.objects.count() == 1


@pytest.mark.parametrize(
    ("id_token", "userinfo", "links"),
    [
        ({"email": ANN["email"]}, {"email": "mal@lab.example", "email_verified": True}, False),
        ({"email_verified": True}, {"email": ANN["email"]}, False),
        ({"email": "mal@lab.example", "email_verified": True}, {"email": ANN["email"]}, False),
        ({}, ANN, True),
        ({"email": ANN["email"]}, ANN, True),
        (ANN, {"email": "mal@lab.example"}, True),
    ],
)
def test_an_address_counts_as_verified_by_the_document_alone_that_names_it(
    provider, ann, monkeypatch, id_token, userinfo, links
) -> None:
    provider.knows("8", **id_token)
    told = {"sub": "8", **userinfo}
    monkeypatch.setattr(type(sign_on_provider()), "userinfo", lambda *_app, **_options: told)
    provider.log_in(Client(), "8")
    found = User.objects.get(sign_on=f"{provider.issuer} 8")
    assert (found == ann) is links
    assert found == ann or found.email != ann.email or not found.email_confirmed_at


def test_who_is_logged_out_there_before_the_second_step_takes_nothing_over(provider, ann) -> None:
    secret, _recovery = with_app(ann)
    client = Client()
    assert provider.log_in(client, "7")["Location"] == STEP
    token = provider.logout_token(sub="7", iat=int(time.time()) + 1)
    form = "application/x-www-form-urlencoded"
    out = Client().post("/sign-on/log-out/", urlencode({"logout_token": token}), content_type=form)
    assert out.status_code == 200
    assert client.post(STEP, {"code": code_of(secret)})["Location"] == "/login/"
    assert SESSION_KEY not in client.session
    assert is_untouched(ann)


@pytest.mark.parametrize("allowed", ["everybody", "nobody"])
def test_the_second_step_comes_before_the_provider_takes_it_over(provider, ann, settings, allowed) -> None:
    settings.HYPAC_LOCAL_LOGIN, settings.HYPAC_MAIL_URL = allowed, "smtp://localhost"
    secret, _recovery = with_app(ann)
    client = Client()
    back = provider.log_in(client, "7", wanted="/account/")
    assert back["Location"] == STEP
    assert SESSION_KEY not in client.session
    assert client.get("/account/").status_code == 302
    assert "the lab lets you in" in client.get(STEP).content.decode()
    assert client.post(STEP, {"code": "000000"}).status_code == 200
    assert is_untouched(ann)
    before = client.session.session_key
    done = client.post(STEP, {"code": code_of(secret)})
    assert done["Location"] == "/account/"
    assert "two-step log-in of before are gone" in " ".join(map(str, get_messages(done.wsgi_request)))
    ann.refresh_from_db()
    assert (ann.sign_on, ann.has_usable_password()) == (f"{provider.issuer} 7", False)
    assert client.session[SESSION_KEY] == str(ann.pk)
    assert client.session.session_key != before
    assert SignOnSession.objects.get().session_key == client.session.session_key
    assert not AuthenticatorApp.objects.exists()
    assert AuditEvent.objects.get(action="account.linked").data == {"user": ann.pk}
    assert Mail.objects.filter(kind="account.linked", to="ann@lab.example").count() == 1
    assert provider.log_in(Client(), "7")["Location"] == "/", "from then on without"


def test_a_passkey_is_as_good_and_that_of_another_account_is_not(provider, ann) -> None:
    key, bobs = Authenticator(), Authenticator()
    add(ann, key)
    bob = make_user("bob")
    add(bob, bobs)
    client = Client()
    provider.log_in(client, "7")
    assert client.post(STEP, {"credential": bobs.show(options_in(client.get(STEP)))}).status_code == 200
    ann.refresh_from_db()
    assert ann.sign_on is None
    assert client.post(STEP, {"credential": key.show(options_in(client.get(STEP)))})["Location"] == "/"
    assert not passkeys.Passkey.objects.filter(user=ann).exists()
    assert passkeys.Passkey.objects.filter(user=bob).exists()


def test_what_was_begun_ends_with_time_and_with_any_change(provider, ann, monkeypatch) -> None:
    secret, recovery = with_app(ann)
    late, changed = Client(), Client()
    for client in (late, changed):
        provider.log_in(client, "7")
    now = timezone.now().timestamp()
    with monkeypatch.context() as patch:
        patch.setattr("annotation.people.second_factor.steps.time.time", lambda: now + 700)
        assert late.post(STEP, {"code": recovery[0]})["Location"] == "/login/"
    change.new_recovery_codes(user=ann)
    assert changed.post(STEP, {"code": code_of(secret)})["Location"] == "/login/"
    assert is_untouched(ann)


def test_nobody_says_without_a_session_that_the_provider_spoke_for_them(provider, ann) -> None:
    secret, _recovery = with_app(ann)
    claims = {"sub": "7", **ANN}
    with pytest.raises(SecondStepFirstError):
        sign_on(claims)
    with pytest.raises(SecondStepFirstError):
        sign_on(claims, shown=make_user("bob"))
    User.objects.get(username="bob").delete()
    stranger = Client()
    assert stranger.post(STEP, {"code": code_of(secret), "by_provider": "1"})["Location"] == "/login/"
    by_password = Client()
    by_password.post("/login/", {"username": "ann", "password": PASSWORD})
    assert by_password.post(STEP, {"code": code_of(secret)})["Location"] == "/"
    assert is_untouched(ann), "whoever logs in by password links nothing"
