"""What is shown while one waits: on a terminal a bar where tqdm is installed, else a line now and then."""

import sys
import time
from typing import Any, Protocol

from hypac_client.texts import printable

LINE_SECONDS = 2.0


class Progress(Protocol):
    def show(self, stage: str, done: int, total: int | None) -> None: ...

    def close(self) -> None: ...


class Silent:
    def show(self, stage: str, done: int, total: int | None) -> None:
        pass

    def close(self) -> None:
        pass


class Lines:
    """A line to standard error where something has changed, at most every two seconds, and what is last."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._shown = self._last = ""
        self._next = 0.0

    def show(self, stage: str, done: int, total: int | None) -> None:
        count = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        line = ": ".join(part for part in (self.title, stage, count) if part)
        self._last = line
        if time.monotonic() >= self._next:
            self._print()

    def close(self) -> None:
        self._print()

    def _print(self) -> None:
        if self._last != self._shown:
            self._shown = self._last
            self._next = time.monotonic() + LINE_SECONDS
            print(printable(self._shown, sys.stderr.encoding), file=sys.stderr, flush=True)


class Bar:
    """A bar of tqdm."""

    def __init__(self, title: str, bar: Any) -> None:
        self.title = title
        self._bar = bar

    def show(self, stage: str, done: int, total: int | None) -> None:
        words = printable(f"{self.title}: {stage}" if stage else self.title, sys.stderr.encoding)
        self._bar.set_description_str(words, refresh=False)
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


def progress_of(title: str, shown: bool | Progress) -> Progress:
    """`shown`: True, False, or an object of your own that is told instead."""
    if not isinstance(shown, bool):
        return shown
    if not shown:
        return Silent()
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return Lines(title)  # each step of a bar would be a line of a log
    try:
        from tqdm import tqdm
    except ImportError:
        return Lines(title)
    return Bar(title, tqdm(desc=printable(title), unit="", leave=True))
