"""Many calls at a time: what is taken when, and what is given back whatever happens."""

import threading
import time
from types import SimpleNamespace

import pytest

from annotation.models import Item
from routing.sources.backends import Answer, concurrent
from routing.sources.backends.concurrent import StoppedError, concurrently, in_flight
from tests.routing.sources.backends.asking import collected, items


def numbered(item: Item, stopped: threading.Event) -> Answer:
    return Answer(item.external_id, latency_ms=1.0)


def given_back(groups) -> list[tuple[str, str]]:
    return sorted((item.external_id, answer.value) for group in groups for item, answer in group)


@pytest.mark.parametrize("concurrency", [1, 3, 32])
def test_every_item_gets_its_own_answer_once(concurrency):
    found = given_back(concurrently(items(100), numbered, concurrency))
    assert found == sorted((str(n), str(n)) for n in range(100))


def test_no_items_give_no_group():
    assert list(concurrently([], numbered, 4)) == []


def test_no_more_calls_than_allowed_run_at_a_time_and_all_of_them_do():
    lock, now, most = threading.Lock(), 0, 0
    together = threading.Barrier(8, timeout=60)

    def ask(item, stopped):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        if int(item.external_id) < 8:
            together.wait()  # is only passed where eight calls run at once
        time.sleep(0.002)
        with lock:
            now -= 1
        return Answer("x", latency_ms=2.0)

    list(concurrently(items(40), ask, 8))
    assert most == 8


@pytest.mark.parametrize("concurrency", [1, 4, 32])
def test_items_are_taken_only_where_those_before_were_given_and_stored(concurrency):
    taken, stored, most = 0, 0, 0

    def source():
        nonlocal taken, most
        for item in items(200):
            taken += 1
            most = max(most, taken - stored)
            yield item

    for group in concurrently(source(), numbered, concurrency):
        # Nothing is taken while the caller stores a group, whose items still count as out.
        before = taken
        time.sleep(0.001)
        assert taken == before
        stored += len(group)
    assert most == in_flight(concurrency)
    assert stored == 200


def test_items_are_read_and_groups_given_in_the_thread_of_the_caller():
    mine, threads = threading.get_ident(), set()

    def source():
        for item in items(20):
            threads.add(threading.get_ident())
            yield item

    list(concurrently(source(), numbered, 4))
    assert threads == {mine}


def test_answers_that_come_together_share_a_group(monkeypatch):
    monkeypatch.setattr(concurrent, "LONGEST_GATHER", 60.0)
    release = threading.Barrier(20, timeout=60)

    def ask(item, stopped):
        if int(item.external_id) < 20:
            release.wait()
        return Answer("x", latency_ms=1e9)

    groups = list(concurrently(items(20), ask, 20))
    # The longest that a group is gathered is long enough for all of them.
    assert [len(group) for group in groups] == [20]


def test_a_slow_answer_does_not_hold_back_the_others():
    done = threading.Event()

    def ask(item, stopped):
        if item.external_id == "0":
            assert done.wait(60)
        return Answer(item.external_id, latency_ms=1.0)

    seen = []
    for group in concurrently(items(10), ask, 2):
        seen += [item.external_id for item, _ in group]
        if len(seen) == 9:
            assert "0" not in seen
            done.set()
    assert len(seen) == 10


def test_the_time_that_the_machine_was_busy_is_shared_out(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(concurrent, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def ten_milliseconds():
        clock.now += 0.01

    four = threading.Barrier(4, action=ten_milliseconds, timeout=60)

    def ask(item, stopped):
        four.wait()
        return Answer("x", latency_ms=10.0)

    found = [answer for group in concurrently(items(20), ask, 4) for _, answer in group]
    # Five rounds of 10 ms; each answer took 10 ms, and together they took a quarter of that.
    assert sum(answer.busy_ms for answer in found) == pytest.approx(50)


def test_time_in_which_nothing_could_be_asked_is_nobodys_share():
    def ask(item, stopped):
        time.sleep(0.05)  # for a limit
        return Answer("x", latency_ms=10.0)

    ((_, answer),) = [one for group in concurrently(items(1), ask, 1) for one in group]
    assert answer.busy_ms == 10.0


def test_what_was_answered_is_given_before_the_failure_is_raised():
    second = threading.Event()

    def ask(item, stopped):
        if item.external_id == "1":
            second.set()
            raise RuntimeError("the model is gone")
        assert second.wait(60)
        assert stopped.wait(60)
        return Answer("x", latency_ms=1.0)

    given, error = collected(concurrently(items(50), ask, 4))
    assert str(error) == "the model is gone"
    assert sorted(item.external_id for item, _ in given) == ["0", "2", "3"]


def test_a_failure_of_the_items_is_raised_after_what_was_answered():
    def source():
        yield from items(3)
        raise RuntimeError("the database is gone")

    given, error = collected(concurrently(source(), numbered, 4))
    assert str(error) == "the database is gone"
    assert len(given) == 3


def test_closing_starts_no_further_call_and_waits_for_none():
    started, hold, others = [], threading.Event(), set(threading.enumerate())

    def ask(item, stopped):
        started.append(item.external_id)
        if item.external_id == "0":
            return Answer("x", latency_ms=1.0)
        assert hold.wait(60)
        return Answer("x", latency_ms=1.0)

    groups = concurrently(items(50), ask, 4)
    next(groups)
    while len(started) < 5:  # the one that has ended, and four under way: all that are out
        time.sleep(0.01)
    threads = set(threading.enumerate()) - others
    groups.close()  # would hang if it waited for the calls under way
    hold.set()
    for thread in threads:
        thread.join(60)
    assert sorted(started) == ["0", "1", "2", "3", "4"]


def test_calls_that_were_given_up_give_no_answer():
    def ask(item, stopped):
        if item.external_id == "0":
            raise RuntimeError("no")
        assert stopped.wait(60)
        raise StoppedError

    given, error = collected(concurrently(items(10), ask, 4))
    assert given == []
    assert str(error) == "no"
