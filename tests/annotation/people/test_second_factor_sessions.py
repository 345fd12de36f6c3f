"""Changes of the second step end the sessions that are open."""

import re

import pytest
from django.test import Client

from annotation.models import User
from annotation.people.forms import AccountDetailsForm
from annotation.people.second_factor import change, codes
from testbed.factories import PASSWORD, make_user
from tests.annotation.people.test_second_factor import PAGE, STEP, code_of, half_way, in_the_middle, with_app

__all__ = ["in_the_middle"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def test_each_change_ends_all_sessions_but_the_one_at_hand(ann) -> None:
    def others() -> list[Client]:
        ann.refresh_from_db()
        found = [Client(), Client()]
        for client in found:
            client.force_login(ann, "annotation.people.log_in.PasswordBackend")
        return found

    def out(client: Client) -> bool:
        return client.get("/account/").status_code == 302

    here = others()[0]
    changes = [("app/", True), ("codes/", True), ("app/remove/", False)]
    for path, has_codes in changes:
        elsewhere = others()
        begun = here.session.session_key
        secret = ""
        if path == "app/":
            shown = here.get(f"{PAGE}{path}").content.decode()
            secret = re.search(r'id="link"[^>]* value="([A-Z2-7 ]+)"', shown)[1].replace(" ", "")
        data = {"password": PASSWORD, "code": code_of(secret) if secret else ""}
        assert here.post(f"{PAGE}{path}", {**data, "password": "wrong"}).status_code == 200
        assert not any(map(out, elsewhere)), "nothing has changed yet"
        done = here.post(f"{PAGE}{path}", data, follow=True)
        assert "Other devices have to log in again." in done.content.decode(), path
        assert has_codes == ("Your codes" in done.content.decode())
        assert all(map(out, elsewhere)), path
        assert not out(here)
        assert here.session.session_key != begun
    with_app(ann)
    assert out(here), "as whoever runs the server, or another program, changes it"


def test_a_log_in_that_waits_for_its_second_step_ends_with_a_change(ann) -> None:
    secret, _recovery = with_app(ann)
    waiting = half_way()
    change.new_recovery_codes(user=ann)
    assert waiting.post(STEP, {"code": code_of(secret)})["Location"] == "/login/"
    assert change.reset(user=ann, actor=None)


def test_a_form_about_oneself_that_was_under_way_brings_no_session_back(ann, monkeypatch) -> None:
    client, other = Client(), Client()
    for one in (client, other):
        one.force_login(ann, "annotation.people.log_in.PasswordBackend")
    kept = AccountDetailsForm.is_valid

    def while_it_is_read(form: AccountDetailsForm) -> bool:
        change.set_up_app(user=ann, secret=(secret := codes.new_secret()), code=code_of(secret))
        return kept(form)

    monkeypatch.setattr(AccountDetailsForm, "is_valid", while_it_is_read)
    assert client.post("/account/", {"first_name": "Ann"}).status_code == 302
    ann.refresh_from_db()
    assert (ann.first_name, ann.sessions_ended) == ("Ann", 1)
    assert other.get("/account/").status_code == 302
