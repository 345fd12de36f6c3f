"""Counting attempts at passwords, and hashing one at a time, whatever happens at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.hashers import check_password, make_password
from django.db import connection
from django.db.models import QuerySet
from django.test import RequestFactory

from annotation.common import attempts
from annotation.common.addresses import network_of
from annotation.common.attempts import Limit, ServerBusyError, TooManyAttemptsError
from annotation.models import AttemptBucket
from annotation.people import hashing
from testbed.factories import make_user

pytestmark = pytest.mark.database

NOW = 1_800_000_000.0


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [NOW]
    monkeypatch.setattr(attempts.time, "time", lambda: now[0])
    return now


@pytest.mark.django_db
class TestBuckets:
    def test_one_takes_as_many_at_once_as_it_says_and_then_empties_evenly(self, clock) -> None:
        limit = Limit("a", "4/min")
        for _ in range(4):
            attempts.take([limit])
        with pytest.raises(TooManyAttemptsError) as refused:
            attempts.take([limit])
        assert refused.value.wait == 15
        clock[0] += 14
        with pytest.raises(TooManyAttemptsError) as refused:
            attempts.take([limit])
        assert refused.value.wait == 1
        clock[0] += 0.6
        attempts.take([limit])
        with pytest.raises(TooManyAttemptsError):
            attempts.take([limit])
        clock[0] += 3600
        for _ in range(4):
            attempts.take([limit])
        with pytest.raises(TooManyAttemptsError):
            attempts.take([limit])

    def test_what_one_refuses_is_counted_in_none(self, clock) -> None:
        """Else one address would use up what all have."""
        mine, everybody = Limit("mine", "1/min"), Limit("all", "3/min")
        attempts.take([mine, everybody])
        for _ in range(5):
            with pytest.raises(TooManyAttemptsError):
                attempts.take([mine, everybody])
        for name in "bc":
            attempts.take([Limit(name, "1/min"), everybody])
        with pytest.raises(TooManyAttemptsError):
            attempts.take([Limit("d", "1/min"), everybody])

    def test_one_attempt_is_given_back(self, clock) -> None:
        limit = Limit("a", "2/min")
        attempts.take([limit])
        attempts.take([limit])
        attempts.give_back([limit])
        attempts.take([limit])
        with pytest.raises(TooManyAttemptsError):
            attempts.take([limit])

    def test_no_rate_is_no_limit(self) -> None:
        for _ in range(50):
            attempts.take([Limit("a", "")])
        assert not AttemptBucket.objects.exists()

    def test_empty_ones_are_forgotten(self, clock) -> None:
        attempts.take([Limit("short", "1/s"), Limit("long", "1/day")])
        clock[0] += 60
        attempts.forget_old()
        assert AttemptBucket.objects.count() == 2, "not while it may still be looked at"
        clock[0] += 2
        attempts.forget_old()
        assert list(AttemptBucket.objects.values_list("name", flat=True)) == ["long"]

    def test_one_that_is_forgotten_at_the_same_moment_refuses_nobody(self, clock, monkeypatch) -> None:
        limit = Limit("a", "3/s")
        attempts.take([limit])
        clock[0] += 3600
        update, forgotten = QuerySet.update, []

        def too_late(self: QuerySet, **values: object) -> int:
            if not forgotten:
                forgotten.append(AttemptBucket.objects.filter(name="a").delete())
            return update(self, **values)

        monkeypatch.setattr(QuerySet, "update", too_late)
        for _ in range(3):
            attempts.take([limit])
        assert forgotten
        with pytest.raises(TooManyAttemptsError):
            attempts.take([limit])

    def test_what_is_full_refuses_though_nothing_is_counted_in_it(self, clock) -> None:
        limit, own = Limit("a", "9/min"), Limit("own", "1/min")
        for _ in range(2):
            attempts.take([limit], unless_full=[own])
        attempts.note(own)
        with pytest.raises(TooManyAttemptsError) as refused:
            attempts.take([limit], unless_full=[own])
        assert refused.value.wait == 60


@pytest.mark.django_db(transaction=True)
def test_many_at_once_are_counted_one_by_one() -> None:
    start = threading.Barrier(8)

    def attempt(_: int) -> bool:
        start.wait(30)
        try:
            attempts.take([Limit("a", "3/hour"), Limit("all", "100/hour")])
        except TooManyAttemptsError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 3


class TestHashing:
    @pytest.fixture(autouse=True)
    def _real(self, settings, monkeypatch) -> None:
        settings.PASSWORD_HASHERS = ["annotation.people.hashing.OneAtATimeHasher"]
        monkeypatch.setattr(hashing.OneAtATimeHasher, "iterations", 2)

    def test_its_hashes_are_djangos(self, settings) -> None:
        made = make_password("secret")
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
        assert check_password("secret", made)

    def test_one_at_a_time_two_wait_and_the_others_are_told_so(self, monkeypatch) -> None:
        """Each waits in a thread of the web server, of which most are for pages."""
        hashing_now, go_on = threading.Semaphore(0), threading.Event()
        at_once, most = [], []

        def slow(self: object, *_args: object, **_options: object) -> str:
            at_once.append(1)
            most.append(len(at_once))
            hashing_now.release()
            assert go_on.wait(30)
            at_once.pop()
            return "hash"

        monkeypatch.setattr(hashing.PBKDF2PasswordHasher, "encode", slow)
        refused = threading.Semaphore(0)

        def hash_one(_: int) -> str:
            try:
                return make_password("secret")
            except ServerBusyError as error:
                refused.release()
                return f"refused for {error.wait} s"

        with ThreadPoolExecutor(8) as pool:
            outcomes = pool.map(hash_one, range(8))
            assert hashing_now.acquire(timeout=30)
            for _ in range(5):
                assert refused.acquire(timeout=30)
            go_on.set()
            assert sorted(outcomes) == ["hash"] * 3 + ["refused for 1 s"] * 5
        assert max(most) == 1
        assert make_password("secret") == "hash", "and afterwards all is free again"

    @pytest.mark.django_db(transaction=True)
    def test_no_transaction_waits_for_a_hash(self, monkeypatch) -> None:
        """SQLite has one lock for all who write: nobody could, while somebody logs in."""
        inside = []
        encode = hashing.PBKDF2PasswordHasher.encode

        def looked_at(self: hashing.PBKDF2PasswordHasher, *args: object, **options: object) -> str:
            inside.append(connection.in_atomic_block)
            return encode(self, *args, **options)

        user = make_user("ann", password="secret")
        monkeypatch.setattr(hashing.PBKDF2PasswordHasher, "encode", looked_at)
        monkeypatch.setattr(hashing.OneAtATimeHasher, "iterations", 3)
        assert user.check_password("secret")
        assert "$3$" in user.password, "hashed anew"
        assert inside
        assert not any(inside)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:51234", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::"),
        ("2001:DB8:1:2::9", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unix:", ""),
        ("unknown", ""),
        ('"><script>', ""),
        ("1" * 10_000, ""),
    ],
)
def test_where_a_request_comes_from(given: str, found: str) -> None:
    assert network_of(RequestFactory().get("/", REMOTE_ADDR=given)) == found
