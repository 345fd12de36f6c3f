"""A model server as its calls see it: asked again where that may help, left alone where it asks for that."""

import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.outside.net import GuardedClient, NetError
from routing.sources.backends.base import MOST_REASON, BackendError, shortened
from routing.sources.backends.concurrent import StoppedError
from routing.sources.backends.llm import Usage
from routing.sources.backends.openai_api.completions import answer_body
from routing.sources.backends.openai_api.params import Params
from routing.sources.backends.openai_api.throttle import PATIENCE, Throttle
from routing.sources.backends.openai_api.verdicts import Kind, Verdict, verdict_on, verdict_on_failure

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds: the most that is waited before the second attempt, and before any."""
LONGEST_PROBE = 60.0
MOST_REFUSALS = 10
"""So many refusals with no answer between them, and one asks whether it still is the items."""
GREETING = ({"role": "user", "content": "Hi"},)
OF_PROBE = " (its tokens are those of a harmless call, made to see whether the server works)"
MIB = 2**20
BYTES_PER_ALTERNATIVE = 160
"""What an alternative at a token takes in an answer, with its bytes spelled out."""

REFUSES_ALL = failures.register(
    "every_call_refused",
    gettext_noop(
        "The server refuses every call %(because)s. Change the parameters of the source so that it accepts "
        "them."
    ),
)
NOT_NOW = failures.register("model_server_not_now", gettext_noop("The server cannot be used now: %(why)s."))
NO_ANSWER = failures.register(
    "model_server_silent",
    gettext_noop("The server does not answer: %(why)s. Items that it has answered are kept."),
)


class ItemError(Exception):
    """This item cannot be answered; others may be. `usage` is what was spent on finding out."""

    def __init__(self, reason: str, usage: Usage) -> None:
        super().__init__(reason)
        self.reason, self.usage = reason, usage


@dataclass
class Clock:
    """What is left of an item's time; `seconds` is what its good calls took."""

    left: float
    seconds: float = 0.0


class Endpoint:
    """Calls of one source; for all its threads. `task` is what a trial call is made for."""

    def __init__(self, params: Params, api_key: str, task: Any) -> None:
        self._params, self._key, self._task = params, api_key, task
        self._url = f"{params.url}/chat/completions"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._throttle = Throttle(params.requests_per_minute, params.tokens_per_minute)
        self._health = Health(params.concurrency)
        self._numbers = itertools.count(1)
        self._probing = Lock()
        self._refusals = 0  # since the last answer; what two threads count at once may count as one
        self._mean_out: float | None = None
        sampling = params.sampling
        most = BYTES_PER_ALTERNATIVE * (sampling.top_logprobs + 1) * params.max_tokens * sampling.samples
        self._client = GuardedClient(
            connect_timeout=params.connect_timeout,
            read_timeout=params.read_timeout,
            total_timeout=params.total_timeout,
            max_bytes=min(64 * MIB, 4 * MIB + most),
            max_connections=params.concurrency,
        )

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._client.close()

    def call(self, body: Mapping[str, Any], clock: Clock, stopped: Event) -> Mapping[str, Any]:
        """The server's answer to a chat completion.

        Raises ItemError where this item cannot be answered, BackendError where none can, StoppedError where
        nobody waits for it any more.
        """
        number, attempts, failed_at, limited_at = next(self._numbers), 0, 0.0, 0.0
        while True:
            guess = self._guess(body)
            self._throttle.wait(guess, stopped)
            began = time.monotonic()
            verdict = self._attempt(body, clock, guess)
            if verdict.body is not None:
                self._health.note(number, True, began)
                self._refusals = 0
                return verdict.body
            if verdict.kind is Kind.FATAL and verdict.error:
                raise BackendError.of(verdict.error)
            if verdict.kind is Kind.REFUSED:
                raise self._refused(verdict, stopped)
            if verdict.kind is Kind.LIMITED:
                clock.left += time.monotonic() - began  # as waiting for a limit is
                self._throttle.limited(verdict.wait)
                limited_at = limited_at or began
                if began - limited_at > PATIENCE:
                    raise ItemError(f"{verdict.reason}, for {PATIENCE / 60:.0f} minutes", Usage(0, 0))
                continue
            attempts += 1
            failed_at = failed_at or time.monotonic()
            self._health.note(number, False, began)
            pause = self._pause(attempts, verdict.wait)
            if attempts > self._params.retries or pause >= clock.left:
                raise self._failed(verdict, attempts, number, failed_at, stopped)
            clock.left -= pause
            if stopped.wait(pause):
                raise StoppedError

    def _attempt(self, body: Mapping[str, Any], clock: Clock, guess: int) -> Verdict:
        began = time.monotonic()
        try:
            response = self._client.request(
                "POST", self._url, headers=self._headers, json=body, total_timeout=max(0.05, clock.left)
            )
            verdict = verdict_on(response, self._key)
        except NetError as error:
            verdict = verdict_on_failure(error)
        seconds = time.monotonic() - began
        clock.left -= seconds
        if verdict.body is not None:
            clock.seconds += seconds
            self._throttle.succeeded()
            usage = usage_of(verdict.body)
            if usage.tokens_in is not None and usage.tokens_out is not None:
                self._throttle.correct(guess, usage.tokens_in + usage.tokens_out)
                self._mean_out = 0.9 * (self._mean_out or usage.tokens_out) + 0.1 * usage.tokens_out
        return verdict

    def _refused(self, verdict: Verdict, stopped: Event) -> Exception:
        """Whether the server refuses this item, or everything that is asked in this way."""
        usage, note = _spent(verdict), ""
        self._refusals += 1
        if not self._of_its_item():
            probed, other = self._probe(stopped, self._of_its_item)
            usage, note = usage + probed, _told(usage, probed)
            if other is None:
                self._refusals = 0
            if other is not None and other.kind is Kind.REFUSED:
                return REFUSES_ALL.error(raised_as=BackendError, because=verdict.said or verdict.why)
            if other is not None:
                return NOT_NOW.error(raised_as=BackendError, permanent=False, why=other.why)
        return ItemError(_with(verdict.reason, note), usage)

    def _of_its_item(self) -> bool:
        """Whether a refusal is one of its item: others are answered."""
        return self._health.has_answered and self._refusals < MOST_REFUSALS

    def _failed(
        self, verdict: Verdict, attempts: int, number: int, failed_at: float, stopped: Event
    ) -> Exception:
        """Whether calls fail because of this item, or because of the server."""
        reason = f"{verdict.reason}, after {attempts} attempt{'s' if attempts > 1 else ''}"
        usage, note = _spent(verdict), ""
        if not self._health.serves_others(number, failed_at):
            # Of the latest attempts too many failed, or none was made since: so one is.
            probed, other = self._probe(stopped, lambda: self._health.alive_since(failed_at))
            if other is not None:
                return NO_ANSWER.error(raised_as=BackendError, permanent=False, why=verdict.why)
            usage, note = usage + probed, _told(usage, probed)
        return ItemError(_with(reason, note), usage)

    def _probe(self, stopped: Event, fine: Callable[[], bool]) -> tuple[Usage, Verdict | None]:
        """Ask for something harmless in the same way: what it used, and None where it was answered. One
        thread at a time; those that have waited for it ask only where things are not `fine` by then.

        Raises BackendError where that shows that no call can be answered.
        """
        with self._probing:
            if fine():
                return Usage(), None
            if stopped.is_set():
                raise StoppedError
            began = time.monotonic()
            body = answer_body(self._params, self._task, GREETING)
            verdict = self._attempt(body, Clock(min(LONGEST_PROBE, self._params.total_timeout)), 0)
            self._health.note(0, verdict.body is not None, began)
            if verdict.kind is Kind.FATAL and verdict.error:
                raise BackendError.of(verdict.error)
            return (Usage(), verdict) if verdict.body is None else (usage_of(verdict.body), None)

    def _pause(self, attempts: int, asked: float | None) -> float:
        """Seconds before the next attempt: at random up to a time that doubles, no less than asked for."""
        most = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempts - 1))
        return max(asked or 0.0, random.uniform(0, most))  # noqa: S311 - no secret

    def _guess(self, body: Mapping[str, Any]) -> int:
        """About how many tokens a call uses, for the limit per minute."""
        if self._params.tokens_per_minute is None:
            return 0
        characters = sum(len(message["content"]) for message in body["messages"])
        out = self._mean_out if self._mean_out is not None else min(256, self._params.max_tokens)
        return characters // 3 + int(out)


def _spent(verdict: Verdict) -> Usage:
    """Of a call that failed: nothing where the server said so itself, else nobody knows."""
    return Usage(0, 0) if verdict.status is not None and verdict.status >= 400 else Usage(None, None)


def _told(spent: Usage, probed: Usage) -> str:
    """Why an item that got no answer has used tokens; "" where no other call was made for it, or it is not
    known what its own used."""
    return OF_PROBE if probed != Usage() and spent == Usage() else ""


def _with(reason: str, note: str) -> str:
    """A reason that has room for the note where it is stored."""
    return shortened(reason, MOST_REASON - len(note)) + note if note else reason


def usage_of(body: Mapping[str, Any]) -> Usage:
    """The tokens that an answer says it used; None for what it does not say."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return Usage(None, None)
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if known else None


class Health:
    """What became of the latest attempts, of all threads. Times are those of time.monotonic."""

    def __init__(self, concurrency: int) -> None:
        self._lock = Lock()
        self._latest: deque[tuple[int, bool]] = deque(maxlen=max(16, 2 * concurrency))
        self._alive_at = float("-inf")

    def note(self, call: int, good: bool, began: float) -> None:
        """An attempt of a call that began at that time has ended."""
        with self._lock:
            self._latest.append((call, good))
            if good:
                self._alive_at = max(self._alive_at, began)

    @property
    def has_answered(self) -> bool:
        """Whether any call has succeeded yet."""
        return self._alive_at > float("-inf")

    def alive_since(self, since: float) -> bool:
        """Whether a call that began after `since` has succeeded."""
        return self._alive_at >= since

    def serves_others(self, call: int, since: float) -> bool:
        """Whether the server is fine but for this call, which failed for the first time at `since`: another
        was answered that began later, and so were most of the latest."""
        with self._lock:
            others = [good for number, good in self._latest if number != call]
            return self.alive_since(since) and 2 * sum(others) >= len(others)
