"""Own rate limits and pauses, by a clock of the test's own."""

import pytest

from routing.sources.backends import BackendError
from routing.sources.backends.concurrent import StoppedError
from routing.sources.backends.openai_api import throttle
from routing.sources.backends.openai_api.throttle import Throttle


class Clock:
    """Stands in for the time and for the event on which threads wait."""

    def __init__(self) -> None:
        self.now, self.stopped = 1000.0, False

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.stopped

    def is_set(self) -> bool:
        return self.stopped


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(throttle, "time", clock)
    monkeypatch.setattr(throttle.random, "uniform", lambda low, high: high)
    monkeypatch.setattr(throttle, "FIRST_PAUSE", 1.0)
    return clock


def starts(own: Throttle, clock: Clock, calls: int, tokens: int = 0) -> list[float]:
    found = []
    for _ in range(calls):
        own.wait(tokens, clock)
        found.append(round(clock.now - 1000, 3))
    return found


def test_without_limits_nobody_waits(clock):
    assert starts(Throttle(None, None), clock, 3, 10**6) == [0, 0, 0]


def test_calls_per_minute_are_spaced(clock):
    assert starts(Throttle(120, None), clock, 4) == [0, 0.5, 1.0, 1.5]


def test_tokens_per_minute_come_out_of_a_store_of_ten_seconds(clock):
    # 100 a second, 1,000 at the most.
    own = Throttle(None, 6000)
    assert starts(own, clock, 4, 400) == [0, 0, 2.0, 6.0]


def test_a_call_larger_than_the_store_starts_when_it_is_full(clock):
    own = Throttle(None, 6000)
    assert starts(own, clock, 3, 5000) == [0, 50.0, 100.0]


def test_what_a_call_used_less_is_given_back(clock):
    own = Throttle(None, 6000)
    own.wait(1000, clock)
    own.correct(1000, 100)
    assert starts(own, clock, 1, 900) == [0]


def test_what_a_call_used_more_is_waited_for(clock):
    own = Throttle(None, 6000)
    own.wait(0, clock)
    own.correct(0, 2000)
    assert starts(own, clock, 1, 500) == [15.0]


def test_nobody_calls_while_the_server_asks_for_a_pause_and_not_all_at_once_after_it(clock):
    own = Throttle(None, None)
    own.limited(8.0)
    assert starts(own, clock, 2) == [10.001, 10.001]  # and at most a quarter of the pause later


def test_the_longest_pause_that_is_asked_for_counts(clock):
    own = Throttle(None, None)
    own.limited(8.0)
    own.limited(2.0)
    assert starts(own, clock, 1) == [10.001]


def test_pauses_of_nobodys_asking_double(clock):
    own, pauses = Throttle(None, None), []
    for _ in range(8):
        before = clock.now
        own.limited(None)
        own.limited(None)  # of the same moment: one refusal
        own.wait(0, clock)
        pauses.append(round((clock.now - before) / 1.25, 1))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    own.succeeded()
    before = clock.now
    own.limited(None)
    own.wait(0, clock)
    assert clock.now - before < 2


def test_a_server_that_only_refuses_is_left_alone_in_the_end(clock):
    own = Throttle(None, None)

    def refused_for_ever():
        while True:
            own.limited(60)
            own.wait(0, clock)

    with pytest.raises(BackendError, match="too many calls") as caught:
        refused_for_ever()
    assert not caught.value.permanent
    assert 900 <= clock.now - 1000 < 1100


def test_a_success_in_between_renews_the_patience(clock):
    own = Throttle(None, None)
    for _ in range(40):
        own.limited(60)
        own.wait(0, clock)
        own.succeeded()


def test_waiting_ends_where_the_call_was_given_up(clock):
    own = Throttle(60, None)
    own.wait(0, clock)
    clock.stopped = True
    with pytest.raises(StoppedError):
        own.wait(0, clock)
