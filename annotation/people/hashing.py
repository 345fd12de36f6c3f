"""Hashing passwords without taking the processors from everybody else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from annotation.common.attempts import ServerBusyError

# In one process. Hashing is meant to take long, and does so beside the other threads, each on a core of its
# own: without a limit, log-ins take them all.
AT_ONCE = 1
# Others wait in their threads, of which most have to stay free for pages: gunicorn has 4 here, `manage.py
# serve` 8. More places would hash no faster; who finds none is not counted, and comes back in a second.
WAITING = 2
WAIT_SECONDS = 5.0


class _Gate:
    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._places = threading.BoundedSemaphore(AT_ONCE + WAITING)

    @contextmanager
    def entered(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise ServerBusyError
        try:
            if not self._free.acquire(timeout=WAIT_SECONDS):
                raise ServerBusyError
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._places.release()


_gate = _Gate()


class OneAtATimeHasher(PBKDF2PasswordHasher):
    """Django's, one at a time. Raises ServerBusyError where too many wait already."""

    def encode(self, *args: Any, **kwargs: Any) -> str:
        with _gate.entered():
            return str(super().encode(*args, **kwargs))

    def harden_runtime(self, password: str, encoded: str) -> None:
        """After a wrong one: this attempt was looked at, and stays counted."""
        with suppress(ServerBusyError):
            super().harden_runtime(password, encoded)
