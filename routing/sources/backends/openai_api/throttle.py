"""When a call may start: one's own rate limits, and the pauses that a server asks for."""

import random
import time
from threading import Event, Lock

from django.utils.translation import gettext_noop

from annotation import failures
from routing.sources.backends.base import BackendError
from routing.sources.backends.concurrent import StoppedError

LONGEST_PAUSE = 300.0
"""Seconds. A server that asks for more is left alone by the whole job, which is started again later."""
PATIENCE = 900.0
"""Seconds for which it may say that there are too many calls, and answer none."""
FIRST_PAUSE, MOST_UNASKED = 1.0, 60.0
"""Seconds of the first and the longest pause where the server does not say how long."""
SPREAD = 0.25
"""Calls start again within this share of the pause after it, and not all at once."""
ASKS_TO_WAIT = failures.register(
    "server_asks_to_wait",
    gettext_noop(
        "The server asks not to be called for %(seconds)s s (429): its limit is used up. Wait, or have the "
        "limit raised, and go on then."
    ),
)
LIMITED_FOR_LONG = failures.register(
    "limited_for_long",
    gettext_noop(
        "The server keeps answering that there are too many calls (429), for %(minutes)s minutes. Lower the "
        "concurrency, or the calls per minute."
    ),
)


class Throttle:
    """For all threads of a source. `requests` and `tokens` are the most per minute, None for no limit."""

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self._interval = 60 / requests if requests else 0.0
        self._rate = tokens / 60 if tokens else None
        self._lock = Lock()
        self._next = self._filled = time.monotonic()
        # Of ten seconds at the most: a minute's worth at once is more than a server counts as its limit.
        self._level = self._most = 10 * self._rate if self._rate else 0.0
        self._open_at = 0.0
        self._spread = 0.0
        self._level_of_pauses = 0
        self._limited_since: float | None = None

    def wait(self, tokens: int, stopped: Event) -> None:
        """Return when a call that uses about `tokens` may start. Raises StoppedError."""
        while (seconds := self._take(tokens)) > 0:
            if stopped.wait(seconds):
                raise StoppedError
        if stopped.is_set():
            raise StoppedError

    def correct(self, guessed: int, used: int) -> None:
        """What was taken for a call, and what it turned out to have used."""
        if self._rate is not None:
            with self._lock:
                self._level += guessed - used

    def succeeded(self) -> None:
        if self._limited_since is not None:
            with self._lock:
                self._limited_since, self._level_of_pauses = None, 0

    def limited(self, asked: float | None) -> None:
        """The server said that there are too many calls: nobody calls for the time that it asked for.

        Raises BackendError where that is too long, or has gone on for too long.
        """
        now = time.monotonic()
        with self._lock:
            if self._limited_since is None:
                self._limited_since = now
            if asked is not None and asked > LONGEST_PAUSE:
                seconds = f"{asked:,.0f}"
                raise ASKS_TO_WAIT.error(raised_as=BackendError, permanent=False, seconds=seconds)
            if now - self._limited_since > PATIENCE:
                minutes = f"{PATIENCE / 60:.0f}"
                raise LIMITED_FOR_LONG.error(raised_as=BackendError, permanent=False, minutes=minutes)
            if asked is None:
                # Calls that were under way together are one refusal.
                if now >= self._open_at:
                    self._level_of_pauses += 1
                asked = min(MOST_UNASKED, FIRST_PAUSE * 2 ** (self._level_of_pauses - 1))
            if now + asked > self._open_at:
                self._open_at, self._spread = now + asked, SPREAD * asked

    def _take(self, tokens: int) -> float:
        """Take a turn and return 0, or the seconds after which to look again."""
        with self._lock:
            now = time.monotonic()
            if now < self._open_at:
                return self._open_at - now + random.uniform(0.001, 0.001 + self._spread)  # noqa: S311 - no secret
            if self._rate is not None:
                self._level = min(self._most, self._level + (now - self._filled) * self._rate)
                self._filled = now
                # A call larger than the store may start when the store is full.
                short = min(tokens, self._most) - self._level
                if short > 0:
                    return short / self._rate
            if now < self._next:
                return self._next - now
            self._next = now + self._interval
            if self._rate is not None:
                self._level -= tokens
            return 0.0
