"""How often passwords may be tried and set, on each page that hashes one: refused before any is hashed."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import AttemptBucket
from annotation.people.invitations import create_invitation
from annotation.people.members import create_account
from annotation.people.password_links import reset_link
from testbed.factories import PASSWORD, make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
NEW = "a quite new pass-phrase"


class CountingHasher(MD5PasswordHasher):
    hashed = 0

    def encode(self, *args: Any, **kwargs: Any) -> str:
        CountingHasher.hashed += 1
        return super().encode(*args, **kwargs)


@pytest.fixture
def hashed(settings, monkeypatch) -> Callable[[], int]:
    """How many hashes were paid for since it was asked last."""
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    monkeypatch.setattr(CountingHasher, "hashed", 0)

    def since() -> int:
        found, CountingHasher.hashed = CountingHasher.hashed, 0
        return found

    return since


@pytest.fixture
def rates(settings) -> Callable[..., None]:
    def limit(*, address: str = "3/hour", all: str = "100/hour") -> None:
        settings.HYPAC_LOGIN_RATES = {"address": address, "all": all}

    return limit


def log_in(client: Client, name: str, password: str = "wrong", *, path: str = "/login/", **more: Any) -> Any:
    return client.post(path, {"username": name, "password": password}, **more)


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
class TestLogIn:
    def test_many_names_from_one_address_end_at_the_limit(self, path, rates, hashed) -> None:
        """81 names in 12 seconds, each paid for with a hash, were all looked at."""
        make_user("ann", is_staff=True)
        hashed()
        rates()
        answers = [log_in(Client(), f"name{number}", path=path) for number in range(81)]
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 78
        assert hashed() == 3
        assert log_in(Client(), "ann", PASSWORD, path=path).status_code == 429, "nor is a right one looked at"
        assert hashed() == 0
        elsewhere = log_in(Client(), "ann", PASSWORD, path=path, REMOTE_ADDR="192.0.2.9")
        assert elsewhere.status_code == 302

    def test_many_addresses_end_at_the_limit_in_all(self, path, rates, hashed) -> None:
        rates(all="5/hour")
        found = [
            log_in(Client(), "ann", path=path, REMOTE_ADDR=f"192.0.2.{i}").status_code for i in range(30)
        ]
        assert found == [200] * 5 + [429] * 25
        assert hashed() == 5

    def test_whoever_logged_in_here_before_gets_in_during_a_flood(self, path, rates, hashed) -> None:
        make_user("ann", is_staff=True)
        make_user("bob")
        mine = Client()
        assert log_in(mine, "ann", PASSWORD, path=path).status_code == 302
        mine.cookies.pop("sessionid")
        rates(all="5/hour")
        for number in range(9):
            log_in(Client(), "ann", path=path, REMOTE_ADDR=f"192.0.2.{number}")
        assert log_in(Client(), "ann", PASSWORD, path=path).status_code == 429
        assert log_in(mine, "bob", PASSWORD, path=path).status_code == 429, "known for one's own name alone"
        assert log_in(mine, "ann", PASSWORD, path=path).status_code == 302

    def test_the_refusal_says_nothing_of_accounts_and_when_to_come_back(self, path, rates) -> None:
        make_user("ann")
        make_user("gone", is_active=False)
        rates(address="1/min")
        log_in(Client(), "x", path=path)
        answers = [log_in(Client(), name, path=path) for name in ("ann", "gone", "nobody")]
        assert len({re.sub(r"Wait \d+", "", answer.content.decode()) for answer in answers}) == 1
        assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer in answers)
        assert f"Wait {answers[0].headers['Retry-After']} seconds" in answers[0].content.decode()


def test_unknown_names_cost_what_known_ones_do(rates, hashed) -> None:
    make_user("ann")
    make_user("gone", is_active=False)
    nobody = make_user("imported")
    nobody.set_unusable_password()
    nobody.save()
    rates(address="100/hour")
    costs = []
    for name in ("ann", "gone", "imported", "nobody"):
        hashed()
        assert log_in(Client(), name).status_code == 200
        costs.append(hashed())
    assert costs == [1, 1, 1, 1]


def test_who_gets_in_uses_up_nobodys_attempts(rates, hashed) -> None:
    """An office, or a class, behind one address."""
    for number in range(12):
        make_user(f"person{number}")
    rates()
    found = [log_in(Client(), f"person{number}", PASSWORD).status_code for number in range(12)]
    assert found == [302] * 12


def test_who_gets_in_uses_up_nothing_of_what_all_have_either(rates) -> None:
    for number in range(12):
        make_user(f"person{number}")
    rates(all="5/hour")
    found = [log_in(Client(), f"person{number}", PASSWORD).status_code for number in range(12)]
    assert found == [302] * 12


def test_one_account_logs_in_so_often_and_keeps_nobody_else_out(rates, hashed) -> None:
    """Else whoever has an account could have passwords hashed without end."""
    make_user("ann")
    make_user("bob")
    rates()
    hashed()
    assert [log_in(Client(), "ann", PASSWORD).status_code for _ in range(6)] == [302] * 3 + [429] * 3
    assert hashed() == 3
    assert log_in(Client(), "bob", PASSWORD).status_code == 302
    for number in range(9):
        log_in(Client(), "bob", REMOTE_ADDR=f"192.0.2.{number}")
    assert log_in(Client(), "bob", PASSWORD).status_code == 302, "nor do others' failures under this name"


def test_people_who_are_logged_in_use_up_nothing_of_known_devices(rates) -> None:
    """Three accounts of an owner's making, with wrong old passwords, kept everybody else out."""
    make_user("bob")
    bobs = Client()
    log_in(bobs, "bob", PASSWORD)
    bobs.cookies.pop("sessionid")
    rates(all="9/hour")
    wrong = {"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}
    found = []
    for number in range(4):
        insider = Client()
        insider.force_login(make_user(f"insider{number}"))
        found += [insider.post(reverse("password"), wrong).status_code for _ in range(3)]
    assert found == [200] * 9 + [429] * 3
    assert log_in(bobs, "bob", PASSWORD).status_code == 302


def test_a_new_password_ends_what_a_stolen_device_may_do(rates) -> None:
    make_user("ann")
    mine, stolen = Client(), Client()
    for client in (mine, stolen):
        log_in(client, "ann", PASSWORD)
    stolen.cookies.pop("sessionid")
    changed = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert mine.post(reverse("password"), changed).status_code == 302
    mine.cookies.pop("sessionid")
    rates(all="1/hour")
    log_in(Client(), "nobody")
    assert log_in(stolen, "ann", NEW).status_code == 429, "a stranger, as all others"
    assert log_in(mine, "ann", NEW).status_code == 302, "where it was changed one is still known"


def test_an_account_of_ones_own_gives_no_attempts_at_others_back(rates) -> None:
    for number in range(3):
        make_user(f"own{number}")
    rates(address="5/hour")
    found = []
    for number in range(10):
        found.append(log_in(Client(), f"victim{number}").status_code)
        log_in(Client(), f"own{number % 3}", PASSWORD)
    assert found == [200] * 5 + [429] * 5


def test_a_known_device_has_a_limit_too(rates, hashed) -> None:
    """Whoever steals the cookie, or has an account, tries no more than others."""
    make_user("ann")
    mine = Client()
    log_in(mine, "ann", PASSWORD)
    cookie = mine.cookies["known_device"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    rates()
    hashed()
    for number in range(9):
        stolen = Client(REMOTE_ADDR=f"192.0.2.{number}")
        stolen.cookies["known_device"] = cookie.value
        log_in(stolen, "ann")
    assert hashed() == 3


def test_a_cookie_that_somebody_wrote_is_none(rates, hashed) -> None:
    ann = make_user("ann")
    rates()
    hashed()
    for number in range(9):
        client = Client()
        client.cookies["known_device"] = f"{ann.pk}:made-up-{number}"
        log_in(client, "ann")
    assert hashed() == 3


class TestAddresses:
    @pytest.mark.parametrize("behind_proxy", [False, True])
    def test_no_header_makes_a_new_one(self, behind_proxy, settings, rates, hashed) -> None:
        """A proxy adds the address that it sees at the end; what stands before is the asker's."""
        settings.HYPAC_BEHIND_PROXY = behind_proxy
        rates()
        for number in range(9):
            made_up = f"203.0.113.{number}"
            sent = f"{made_up}, {made_up}, 198.51.100.7:{40_000 + number}" if behind_proxy else made_up
            headers = dict.fromkeys(
                ("X-Real-IP", "X-Client-IP", "Client-IP", "Forwarded", "CF-Connecting-IP"), made_up
            )
            log_in(Client(), "ann", headers={**headers, "X-Forwarded-For": sent})
        assert hashed() == 3

    def test_all_of_an_ipv6_network_are_one(self, rates, hashed) -> None:
        rates()
        for number in range(9):
            log_in(Client(), "ann", REMOTE_ADDR=f"2001:db8:1:2::{number:x}")
        assert hashed() == 3
        log_in(Client(), "ann", REMOTE_ADDR="2001:db8:1:3::1")
        assert hashed() == 1

    def test_django_axes_sees_the_same(self, settings) -> None:
        """So an address more of one's own network is no new one for the lock of a name either."""
        settings.AXES_FAILURE_LIMIT = 3
        found = [
            log_in(Client(), "ann", REMOTE_ADDR=f"2001:db8::{number:x}").status_code for number in range(5)
        ]
        assert found == [200, 200, 429, 429, 429]

    @pytest.mark.parametrize("name", ["ann", "nobody-of-this-name"])
    def test_the_page_warns_before_it_alike_for_every_name(self, settings, name) -> None:
        """Nine wrong passwords locked the right one out, without a word before."""
        make_user("ann")
        settings.AXES_FAILURE_LIMIT = 4
        warned = [
            re.search(r"(\d) more failed log-ins? locks? this name", log_in(Client(), name).content.decode())
            for _ in range(3)
        ]
        assert [found and found[1] for found in warned] == [None, "2", "1"]
        assert "more failed" not in log_in(Client(), "somebody-else").content.decode()
        assert log_in(Client(), name).status_code == 429

    def test_whoever_runs_the_server_lifts_it(self, settings) -> None:
        make_user("ann")
        settings.AXES_FAILURE_LIMIT = 2
        assert [log_in(Client(), "ann").status_code for _ in range(2)] == [200, 429]
        assert log_in(Client(), "ann", PASSWORD).status_code == 429
        call_command("axes_reset_username", "ann")
        assert log_in(Client(), "ann", PASSWORD).status_code == 302

    def test_the_lock_says_when_it_ends(self, settings) -> None:
        settings.AXES_FAILURE_LIMIT = 1
        answer = log_in(Client(), "ann", headers={"X-Requested-With": "XMLHttpRequest"})
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "900")
        assert "Access-Control-Allow-Origin" not in answer.headers


class TestOtherPages:
    def test_a_new_account_by_an_invitation(self, rates, hashed) -> None:
        project = make_project()
        _, token = create_invitation(
            project=project, actor=project.created_by, role="annotator", max_uses=50, days=1
        )
        rates()
        hashed()
        taken = {"token": token, "username": project.created_by.username, "password": NEW, "again": NEW}
        found = [Client().post(reverse("join"), taken).status_code for _ in range(6)]
        assert found == [200] * 3 + [429] * 3
        assert hashed() == 0, "the name is looked at first"

    def test_who_joins_uses_up_nobodys_attempts(self, rates) -> None:
        project = make_project()
        _, token = create_invitation(
            project=project, actor=project.created_by, role="annotator", max_uses=50, days=1
        )
        rates()
        for number in range(6):
            new = {"token": token, "username": f"new{number}", "password": NEW, "again": NEW}
            assert Client().post(reverse("join"), new).status_code == 302

    def test_a_password_that_is_lost(self, rates, hashed) -> None:
        project = make_project()
        made, _password = create_account(
            project=project, actor=project.created_by, username="ann", role="annotator"
        )
        victim = made.user
        uid, token = reset_link(project=project, actor=project.created_by, user=victim)
        client = Client()
        page = client.get(reverse("password_reset", args=[uid, token])).url
        rates()
        hashed()
        found = [
            client.post(page, {"new_password1": NEW, "new_password2": "x"}).status_code for _ in range(6)
        ]
        assert found == [200] * 3 + [429] * 3
        assert client.post(page, {"new_password1": NEW, "new_password2": NEW}).status_code == 429
        assert hashed() == 0

    def test_ones_own_password(self, rates, hashed) -> None:
        ann = make_user("ann")
        client = Client()
        client.force_login(ann)
        rates()
        hashed()
        form = {"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}
        found = [client.post(reverse("password"), form).status_code for _ in range(6)]
        assert found == [200] * 3 + [429] * 3
        assert hashed() == 3

    def test_accounts_that_an_owner_makes(self, rates, hashed) -> None:
        project = make_project()
        client = Client()
        client.force_login(project.created_by)
        rates()
        hashed()
        path = reverse("member_create", args=[project.slug])
        for number in range(6):
            client.post(path, {"new-username": f"new{number}", "new-role": "annotator"})
        assert hashed() == 3


def test_a_refusal_is_logged_without_what_was_sent(rates, caplog, monkeypatch) -> None:
    monkeypatch.setattr("annotation.people.attempt_limits._refusals._told_at", -100.0)
    rates(address="1/hour")
    with caplog.at_level(logging.WARNING):
        for _ in range(40):
            log_in(Client(), "hunter1", "hunter2", REMOTE_ADDR="192.0.2.77")
    told = [line for line in caplog.messages if "were refused" in line]
    assert len(told) == 1, "a line now and then, not one for each"
    assert "192.0.2.77" in told[0]
    assert "hunter" not in "".join(line for line in caplog.messages if "AXES" not in line)


def test_a_refusal_writes_nothing(rates, django_assert_max_num_queries) -> None:
    rates(address="1/hour")
    log_in(Client(), "ann")
    before = list(AttemptBucket.objects.order_by("name").values())
    with django_assert_max_num_queries(1) as asked:
        log_in(Client(), "ann")
    assert [query["sql"][:6] for query in asked.captured_queries] == ["SELECT"]
    assert list(AttemptBucket.objects.order_by("name").values()) == before
