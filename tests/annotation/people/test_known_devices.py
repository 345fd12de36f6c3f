"""Failed log-ins lock a name where they were made: those of strangers not the devices that know it."""

import re

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client

from annotation.models import User
from annotation.people.attempt_limits import COOKIE
from testbed.factories import PASSWORD, make_user

pytestmark = pytest.mark.django_db
LIMIT = 4


@pytest.fixture(autouse=True)
def few(settings) -> None:
    settings.AXES_FAILURE_LIMIT = LIMIT


@pytest.fixture
def ann() -> User:
    return make_user("ann", is_staff=True)


def log_in(client: Client, password: str = "wrong", *, path: str = "/login/", name: str = "ann"):
    return client.post(path, {"username": name, "password": password})


def known_device() -> Client:
    client = Client()
    assert log_in(client, PASSWORD).status_code == 302
    client.cookies.pop("sessionid")
    return client


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_strangers_at_her_address_do_not_lock_her_out(path, ann) -> None:
    """Ten wrong passwords from an office kept her out for a quarter of an hour, again and again."""
    mine = known_device()
    found = [log_in(Client(), path=path).status_code for _ in range(LIMIT + 1)]
    assert found == [200] * (LIMIT - 1) + [429] * 2
    assert log_in(Client(), PASSWORD, path=path).status_code == 429, "elsewhere the name is locked"
    assert log_in(mine, path=path).status_code == 200
    assert log_in(mine, PASSWORD, path=path).status_code == 302
    assert log_in(Client(), PASSWORD, path=path).status_code == 429, "nor does that lift the lock"


def test_failures_on_a_known_device_lock_it_and_no_other(ann) -> None:
    mine, library = known_device(), known_device()
    found = [log_in(library).status_code for _ in range(LIMIT + 1)]
    assert found == [200] * (LIMIT - 1) + [429] * 2
    assert log_in(library, PASSWORD).status_code == 429
    assert log_in(mine, PASSWORD).status_code == 302
    assert log_in(Client(), PASSWORD).status_code == 302
    call_command("axes_reset_username", "ann")
    assert log_in(library, PASSWORD).status_code == 302


def test_a_known_device_is_known_for_its_own_name_alone(ann) -> None:
    make_user("bob")
    mine = known_device()
    for _ in range(LIMIT):
        log_in(Client(), name="bob")
    assert log_in(mine, PASSWORD, name="bob").status_code == 429


def test_a_log_in_forgets_the_failures_on_the_device(ann) -> None:
    mine = known_device()
    for _ in range(2):
        assert [log_in(mine).status_code for _ in range(LIMIT - 1)] == [200] * (LIMIT - 1)
        assert log_in(mine, PASSWORD).status_code == 302
        mine.cookies.pop("sessionid")


def test_the_page_warns_of_the_failures_on_the_device(ann) -> None:
    mine = known_device()
    for _ in range(LIMIT - 1):
        log_in(Client())
    warned = [re.search(r"(\d) more failed", log_in(mine).content.decode()) for _ in range(LIMIT - 1)]
    assert [found and found[1] for found in warned] == [None, "2", "1"]
    unlooked = log_in(mine, "").content.decode()
    assert "more failed" not in unlooked, "nothing was tried"


def test_a_cookie_from_before_devices_had_numbers_holds(ann) -> None:
    mine, answer = known_device(), HttpResponse()
    person, mark, _device = mine.cookies[COOKIE].value.split(":")[:3]
    answer.set_signed_cookie(COOKIE, f"{person}:{mark}", salt=COOKIE)
    mine.cookies[COOKIE] = answer.cookies[COOKIE].value
    for _ in range(LIMIT):
        log_in(Client())
    assert log_in(mine, PASSWORD).status_code == 302
