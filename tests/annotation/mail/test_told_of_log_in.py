"""Whoever did not change a password or an address themselves hears of it where letters reach them."""

import io
import re

import pytest
from django.contrib.auth import get_user
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from annotation.mail.sending import send_due
from annotation.models import AuditEvent, User
from annotation.people.password_links import note_set_by, tokens
from testbed.factories import make_user
from testbed.mail_server import words_of

pytestmark = pytest.mark.django_db
OLD, NEW = "a long enough secret", "quite another secret"
CHOSEN = {"new_password1": NEW, "new_password2": NEW}


@pytest.fixture
def ann() -> User:
    user = make_user("ann", email="ann@example.org", email_confirmed_at=timezone.now())
    user.set_password(OLD)
    user.save()
    return user


@pytest.fixture
def client(ann) -> Client:
    client = Client()
    client.force_login(ann)
    return client


def told(server) -> list[tuple[str, str]]:
    send_due()
    return [(letter["To"], re.sub(r"\s+", " ", words_of(letter))) for letter in server.taken]


def test_a_changed_password_is_told_and_the_session_goes_on(server, ann, client) -> None:
    client.post("/password/", {"old_password": OLD, **CHOSEN})
    [(to, words)] = told(server)
    assert to == "ann@example.org"
    assert "password of the account ann was changed" in words
    assert "tell whoever runs the server" in words
    assert get_user(client).check_password(NEW)
    assert AuditEvent.objects.get().action == "account.password_changed"


def test_a_password_set_by_a_link_is_told(server, ann) -> None:
    uid = urlsafe_base64_encode(force_bytes(ann.pk))
    client = Client()
    there = client.get(f"/password/{uid}/{tokens.make_token(ann)}/").url
    client.post(there, CHOSEN)
    [(to, words)] = told(server)
    assert (to, "set anew by a link" in words) == ("ann@example.org", True)


def test_a_password_that_an_administrator_sets_is_told(server, ann) -> None:
    note_set_by(user=ann, actor=make_user("root", is_superuser=True))
    assert "Whoever runs the server set a new password" in told(server)[0][1]


def test_a_password_that_is_set_on_the_server_is_told(server, ann, monkeypatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt="": NEW)
    call_command("changepassword", "ann", stdout=io.StringIO())
    [(to, words)] = told(server)
    assert to == "ann@example.org"
    assert "Whoever runs the server set a new password" in words
    ann.refresh_from_db()
    assert ann.check_password(NEW)
    event = AuditEvent.objects.get()
    assert (event.action, event.actor, event.target) == ("account.password_set", None, "user:ann")


def test_another_address_is_told_to_the_one_that_was_confirmed(server, ann, client) -> None:
    fields = {"first_name": "", "last_name": "", "language": ""}
    client.post("/account/", {**fields, "email": "thief@example.org"})
    letters = dict(told(server))
    assert letters.keys() == {"ann@example.org", "thief@example.org"}
    assert "address of the account ann was changed" in letters["ann@example.org"]
    assert "thief" not in letters["ann@example.org"]
    # The new one was confirmed by nobody: nothing is told to it when it is changed in turn.
    client.post("/account/", {**fields, "email": "third@example.org"})
    assert [to for to, _ in told(server)][2:] == ["third@example.org"]


def test_an_address_that_stays_is_no_news(server, client) -> None:
    client.post(
        "/account/", {"first_name": "Ann", "last_name": "", "language": "", "email": "ann@example.org"}
    )
    assert told(server) == []


def test_an_address_that_an_administrator_changes_is_told(server, ann) -> None:
    administrator = Client()
    administrator.force_login(make_user("root", is_superuser=True, is_staff=True))
    page = administrator.get(f"/admin/annotation/user/{ann.pk}/change/")
    form = page.context["adminform"].form
    fields = {name: form[name].value() for name in form.fields if form[name].value() not in (None, False)}
    for name in ("last_login", "date_joined"):
        fields.pop(name, None)
    fields |= {"email": "new@example.org", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    answer = administrator.post(page.request["PATH_INFO"], fields)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert [to for to, _ in told(server)] == ["ann@example.org"]
