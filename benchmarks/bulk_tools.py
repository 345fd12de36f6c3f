"""What the parts of bulk.py share: rows of its table, and the peak of memory of one stage of the work."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Row:
    """One line of the table: `count` things (items, rows, queries) in `seconds`, and the peak of memory."""

    what: str
    size: int
    count: int = 0
    seconds: float = 0.0
    peak_mib: float = 0.0
    note: str = ""


@contextmanager
def measured(what: str, size: int, count: int | None = None) -> Iterator[Row]:
    """Time what is done inside, and take this process's peak of memory meanwhile.

    Linux forgets the old peak where it is asked to; elsewhere the peak is that since the process began.
    """
    row = Row(what, size, size if count is None else count)
    _forget_peak()
    start = time.perf_counter()
    yield row
    row.seconds = time.perf_counter() - start
    row.peak_mib = peak_mib()


def peak_mib() -> float:
    """The most memory that this process has held at once, in MiB."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
