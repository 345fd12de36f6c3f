"""Whether calls fail because of their items or because of the server."""

import time
from collections import deque
from threading import Lock


class Health:
    """What became of the latest attempts, of all threads."""

    def __init__(self, concurrency: int) -> None:
        self._lock = Lock()
        self._latest: deque[tuple[int, bool]] = deque(maxlen=max(16, 2 * concurrency))
        self._last_success: float | None = None

    def note(self, call: int, good: bool) -> None:
        with self._lock:
            self._latest.append((call, good))
            if good:
                self._last_success = time.monotonic()

    @property
    def has_answered(self) -> bool:
        """Whether any call has succeeded yet."""
        return self._last_success is not None

    def serves_others(self, call: int, since: float) -> bool:
        """Whether the server is fine but for this call: others were answered since it began, and so were most
        of the latest."""
        with self._lock:
            others = [good for number, good in self._latest if number != call]
            answered = self._last_success is not None and self._last_success >= since
            return answered and 2 * sum(others) >= len(others)
