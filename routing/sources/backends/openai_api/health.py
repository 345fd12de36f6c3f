"""Whether calls fail because of their items or because of the server."""

from collections import deque
from threading import Lock


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
