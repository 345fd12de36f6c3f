"""Attempts at passwords while so many are being hashed that no more are looked at
(`annotation.people.hashing`).
"""

from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.test import Client
from django.urls import reverse

from annotation.common.attempts import ServerBusyError
from annotation.people.invitations import create_invitation
from testbed.factories import PASSWORD, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
NEW = "a quite new pass-phrase"


class GatedHasher(MD5PasswordHasher):
    places = 0

    def encode(self, *args: Any, **kwargs: Any) -> str:
        GatedHasher.places -= 1
        if GatedHasher.places < 0:
            raise ServerBusyError
        return super().encode(*args, **kwargs)


@pytest.fixture(autouse=True)
def _gate(settings, monkeypatch) -> None:
    """As if `places` more found one: those of a second, on a machine of a given speed."""
    settings.PASSWORD_HASHERS = [f"{__name__}.GatedHasher"]
    monkeypatch.setattr(GatedHasher, "places", 1000)


@pytest.fixture
def rates(settings):
    def limit(*, address: str, all: str) -> None:
        settings.HYPAC_LOGIN_RATES = {"address": address, "all": all}

    return limit


def log_in(client: Client, name: str, password: str = "wrong") -> Any:
    return client.post("/login/", {"username": name, "password": password})


def test_a_class_of_thirty_gets_in_within_ten_seconds(rates) -> None:
    """20 attempts at a full gate, of which none was looked at, filled the share of their address."""
    waiting = [make_user(f"person{number}").username for number in range(30)]
    rates(address="20/min", all="60/min")
    for _second in range(10):
        GatedHasher.places = 3  # a third of a second each
        answers = {name: log_in(Client(), name, PASSWORD) for name in waiting}
        assert {answer.status_code for answer in answers.values()} <= {302, 503}
        waiting = [name for name, answer in answers.items() if answer.status_code == 503]
    assert waiting == []


def test_it_says_so_and_when_to_come_back(rates) -> None:
    rates(address="1/hour", all="1/hour")
    GatedHasher.places = 0
    answer = log_in(Client(), "ann")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "does not count as an attempt" in answer.content.decode()
    assert "too often" not in answer.content.decode()
    GatedHasher.places = 9
    assert [log_in(Client(), "ann").status_code for _ in range(2)] == [200, 429]


def test_it_is_nobodys_attempt_on_any_page(rates) -> None:
    project = make_project()
    _, token = create_invitation(
        project=project, actor=project.created_by, role="annotator", max_uses=9, days=1
    )
    owner = Client()
    owner.force_login(project.created_by)
    rates(address="1/hour", all="1/hour")
    new = {"token": token, "username": "new", "password": NEW, "again": NEW}
    chosen = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    made = {"new-username": "made", "new-role": "annotator"}
    for client, path, form in (
        (Client(), reverse("join"), new),
        (owner, reverse("password"), chosen),
        (owner, reverse("member_create", args=[project.slug]), made),
    ):
        GatedHasher.places = 0
        assert [client.post(path, form).status_code for _ in range(3)] == [503] * 3, path
    GatedHasher.places = 9
    assert owner.post(reverse("password"), chosen).status_code == 302
