"""Many calls of a slow model at a time, for a caller that stores their answers in groups."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from statistics import median
from threading import Event, Thread

from annotation.models import Item
from routing.sources.backends.base import Answer, Answered

GATHER_SHARE, MOST_SHARE = 0.03, 0.1
"""A group is gathered for the first share of the median latency: long enough that answers share a commit, and
short beside the calls that wait to be started. It is gathered on, up to the second share, as long as every
answer has a spare item to be followed by: no thread waits for one then."""
LONGEST_GATHER = 1.0
REMEMBERED = 101
SPARE = 4
"""One item more for so many calls at a time is taken, so that a call can follow another while the caller
stores answers. Without it 9 % of the time went by in that way beside a server that answers 32 calls at a time
in 200 ms, with commits of 4 ms; with it 3 %."""

Ask = Callable[[Item, Event], Answer]
"""Answers for one item, in a thread of its own: so without the database. Where the event is set, nobody waits
for the answer any more, and no further call should be started; `StoppedError` then ends it without one."""


class StoppedError(Exception):
    """The call was given up because nobody waits for its answer."""


@dataclass(frozen=True)
class _Outcome:
    item: Item
    answer: Answer | None = None
    error: Exception | None = None


def in_flight(concurrency: int) -> int:
    """The most items that are out at a time: asked for, about to be, or answered and not stored yet."""
    return concurrency + concurrency // SPARE


def concurrently(items: Iterable[Item], ask: Ask, concurrency: int) -> Iterator[list[Answered]]:
    """The answers of `ask` in groups, in the order in which they come; `concurrency` calls at a time.

    An item is taken, in the caller's thread, only where fewer than `in_flight(concurrency)` are out; those of
    a group count as out until the caller asks for the next group. `busy_ms` of an answer is its share of the
    time since the group before, but no more than its own latency: while nothing may be asked, because of
    limits, nothing is busy. What `ask` or `items` raises is raised here once the calls under way have
    ended and their answers were given. Closing the iterator starts no further call and waits for none.
    """
    pool = _Pool(ask)
    rest: Iterator[Item] | None = iter(items)
    failure: Exception | None = None
    latencies: deque[float] = deque(maxlen=REMEMBERED)
    out, last = 0, time.monotonic()
    try:
        while True:
            while rest is not None and failure is None and out < in_flight(concurrency):
                try:
                    item = next(rest, None)
                except Exception as error:
                    failure = error
                    break
                if item is None:
                    rest = None
                else:
                    pool.start(item, min(out, concurrency - 1))
                    out += 1
            if not out:
                break
            outcomes = pool.gather(out, latencies, concurrency // SPARE)
            out -= len(outcomes)
            # What an item alone could not survive ends as its answer: here the model cannot answer at all.
            failed = [outcome.error for outcome in outcomes if outcome.error is not None]
            if failed and failure is None:
                failure = failed[0]
                pool.stopped.set()
            answered = [(one.item, one.answer) for one in outcomes if one.answer is not None]
            if answered:
                now = time.monotonic()
                share = (now - last) * 1000 / len(answered)
                last = now
                yield [(item, replace(answer, busy_ms=_least(share, answer))) for item, answer in answered]
        if failure is not None:
            raise failure
    finally:
        pool.close()


class _Pool:
    """Threads that are started as they are needed. They end with the process, whatever they wait for."""

    def __init__(self, ask: Ask) -> None:
        self.stopped = Event()
        self._ask = ask
        self._todo: SimpleQueue[Item | None] = SimpleQueue()
        self._done: SimpleQueue[_Outcome] = SimpleQueue()
        self._threads = 0

    def start(self, item: Item, busy: int) -> None:
        self._todo.put(item)
        if self._threads <= busy:
            self._threads += 1
            Thread(target=self._work, name=f"model-call-{self._threads}", daemon=True).start()

    def gather(self, out: int, latencies: deque[float], spare: int) -> list[_Outcome]:
        """What has ended, at least one: waited for at first without end, then for a share of the latency."""
        outcomes = [self._done.get()]
        _remember(outcomes[0], latencies)
        began, latency = time.monotonic(), median(latencies) / 1000 if latencies else 0.0
        while len(outcomes) < out:
            share = MOST_SHARE if len(outcomes) < spare else GATHER_SHARE
            until = began + min(LONGEST_GATHER, share * latency)
            try:
                outcomes.append(self._done.get(timeout=max(0.0, until - time.monotonic())))
            except Empty:
                break
            _remember(outcomes[-1], latencies)
        return outcomes

    def close(self) -> None:
        self.stopped.set()
        for _ in range(self._threads):
            self._todo.put(None)

    def _work(self) -> None:
        while (item := self._todo.get()) is not None:
            if self.stopped.is_set():
                self._done.put(_Outcome(item))
                continue
            try:
                self._done.put(_Outcome(item, self._ask(item, self.stopped)))
            except StoppedError:
                self._done.put(_Outcome(item))
            except Exception as error:  # of whatever kind: the caller's thread raises it
                self._done.put(_Outcome(item, error=error))


def _least(share: float, answer: Answer) -> float:
    return share if answer.latency_ms is None else min(share, answer.latency_ms)


def _remember(outcome: _Outcome, latencies: deque[float]) -> None:
    if outcome.answer is not None and outcome.answer.latency_ms is not None:
        latencies.append(outcome.answer.latency_ms)
