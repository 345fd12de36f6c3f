"""Where a session begins and where it ends, and what a password may be."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import AuditEvent, User
from annotation.people.tokens import make_token
from testbed.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db
LONG = "Überlang  with two blanks and \N{GRINNING FACE} " + "0123456789" * 5


def log_in(client: Client, password: str = PASSWORD):
    return client.post("/login/", {"username": "ann", "password": password})


def is_in(client: Client) -> bool:
    return client.get(reverse("account")).status_code == 200


def with_session(key: str) -> Client:
    client = Client()
    client.cookies["sessionid"] = key
    return client


def test_a_log_in_begins_a_session_and_a_log_out_ends_it_wherever_it_is_used() -> None:
    make_user("ann")
    client = Client()
    client.session.save()
    planted = client.session.session_key
    client.cookies["sessionid"] = planted
    log_in(client)
    given = client.cookies["sessionid"]
    assert (given["httponly"], given["samesite"]) == (True, "Lax")
    assert given.value != planted, "whoever knows the session of before knows nothing"
    assert not is_in(with_session(planted))
    assert is_in(with_session(given.value))
    answer = client.post("/logout/")
    assert answer.headers["Clear-Site-Data"] == '"cache"', "and nothing that waits in the browser"
    assert not is_in(with_session(given.value))


def test_whoever_wants_ends_all_sessions_but_the_one_at_hand() -> None:
    user, other = make_user("ann"), Client()
    here, elsewhere = Client(), Client()
    other.force_login(make_user("bob"))
    log_in(here)
    log_in(elsewhere)
    before = here.cookies["sessionid"].value
    assert "Log out everywhere else" in here.get(reverse("account")).content.decode()
    assert here.post(reverse("log_out_elsewhere")).url == reverse("account")
    assert [is_in(client) for client in (here, elsewhere, other)] == [True, False, True]
    assert not is_in(with_session(before)), "whoever knew the session of before knows nothing"
    event = AuditEvent.objects.get(action="account.other_sessions_ended")
    assert (event.actor, event.data) == (user, {"user": user.pk})


def test_whoever_is_switched_off_is_out_at_once() -> None:
    user, client = make_user("ann"), Client()
    log_in(client)
    _token, secret = make_token(user=user, name="a script")
    program = Client(headers={"Authorization": f"Token {secret}"})
    assert program.get(reverse("api_root")).status_code == 200
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert not is_in(client)
    assert program.get(reverse("api_root")).status_code == 401


def test_a_new_password_needs_the_old_one_and_ends_the_other_sessions() -> None:
    make_user("ann")
    here, elsewhere = Client(), Client()
    log_in(here)
    log_in(elsewhere)
    form = {"old_password": "wrong", "new_password1": LONG, "new_password2": LONG}
    here.post(reverse("password"), form)
    assert is_in(elsewhere)
    here.post(reverse("password"), {**form, "old_password": PASSWORD})
    assert is_in(here)
    assert not is_in(elsewhere)
    assert log_in(Client(), LONG).status_code == 302
    for nearly in (LONG[:-1], LONG.lower(), LONG.replace("  ", " ")):
        assert log_in(Client(), nearly).status_code == 200, "a password counts as it is typed"
