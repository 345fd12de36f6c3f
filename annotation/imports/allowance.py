"""What a file may still produce, counted while its rows flow: every format's rows pass through here. So does
what is read of it, since reading may go on and on without a row: blank lines, pages and batches of nothing.
"""

import gzip
import io
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _, gettext_noop

from annotation.errors import InputError
from annotation.imports.faults import fault
from annotation.imports.formats.base import Problem, Record, Row, name_too_long
from annotation.imports.limits import (
    CELL,
    MAX_COLUMNS,
    MAX_NAME_CHARACTERS,
    REQUEST_SECONDS,
    ROW,
    ImportLimitError,
    most_stored,
)
from annotation.words import Words

# Bytes that are read between two looks at the clock.
BLOCK = 64 * 1024


class Deadline(NamedTuple):
    """When reading has to have ended, by `time.monotonic`, and how many seconds that were at its start."""

    until: float
    seconds: float

    @classmethod
    def of_an_import(cls) -> "Deadline":
        return cls(time.monotonic() + settings.HYPAC_MAX_IMPORT_SECONDS, settings.HYPAC_MAX_IMPORT_SECONDS)

    @classmethod
    def of_a_look(cls) -> "Deadline":
        """For a look at a file while somebody waits."""
        return cls(end_of_look(), _request_seconds())

    def check(self, where: str) -> None:
        """Raises ImportLimitError where it has passed."""
        if time.monotonic() > self.until:
            raise self.error(where)

    def error(self, where: str) -> InputError:
        words = gettext_noop(
            "Reading the file takes more than %(most)s seconds. Split it, or save it in a simpler format."
        )
        return fault(words, where=where, raised_as=ImportLimitError, most=self.seconds)


class DeadlineFile(io.BufferedReader):
    """A file that gives nothing more once its deadline has passed, but raises ImportLimitError, whoever reads
    from it: what is compressed in it is unpacked from what it gives. It does not close the file, which is
    the caller's. `encoding` is that of the texts in an archive, "" where they say it themselves.
    """

    encoding = ""

    def __init__(self, file: IO[bytes], deadline: Deadline, where: str) -> None:
        self._timed = _Timed(file, deadline, where)
        super().__init__(self._timed, BLOCK)

    def read(self, size: int | None = -1, /) -> bytes:
        self.check()  # what is asked for may be in the buffer, again and again
        return super().read(size)

    def check(self) -> None:
        self._timed.check()

    def another(self, file: IO[bytes]) -> "DeadlineFile":
        """Another file with the same deadline."""
        return DeadlineFile(file, self._timed.deadline, self._timed.where)

    def until(self, deadline: Deadline) -> None:
        """Another deadline from now on."""
        self._timed.deadline = deadline


class PassThrough(io.RawIOBase):
    """A file that is read through another one, which it does not close: that is the caller's. What reading
    does besides, `readinto` says.
    """

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


class _Timed(PassThrough):
    def __init__(self, file: IO[bytes], deadline: Deadline, where: str) -> None:
        super().__init__(file)
        self.deadline, self.where = deadline, where

    def check(self) -> None:
        self.deadline.check(self.where)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self.check()
        content = self._file.read(min(len(buffer), 16 * BLOCK))
        buffer[: len(content)] = content
        return len(content)

    def fileno(self) -> int:
        return self._file.fileno()


def in_time_of(archive: IO[bytes], copy: IO[bytes]) -> IO[bytes]:
    """The copy of what lies in an archive, with the deadline of the archive if it has one."""
    return archive.another(copy) if isinstance(archive, DeadlineFile) else copy


def check_time(file: Any) -> None:
    """For a loop that goes on without a row and without reading. Raises ImportLimitError, if the file has a
    deadline and it has passed.
    """
    if isinstance(file, DeadlineFile):
        file.check()


class Allowance:
    """What may still come of one file of `uploaded` bytes. `spent` is what earlier attempts of an import have
    stored of it, and grows with each row: characters, those of names of columns included, and some for each
    row and cell.

    Raises ImportLimitError, with the row, where a limit is passed.
    """

    def __init__(self, uploaded: int, *, spent: int = 0, deadline: Deadline | None = None) -> None:
        self.spent = spent
        self._uploaded = uploaded
        self._most = most_stored(uploaded)
        self.deadline = deadline or Deadline.of_an_import()
        self._until = self.deadline.until

    def passed(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records, as long as there is room for them."""
        for record in records:
            if type(record) is Row:
                columns = record.columns
                names = sum(map(len, columns))
                if (len(columns) > MAX_COLUMNS or names > MAX_NAME_CHARACTERS) and (
                    problem := _problem_of_names(record)
                ):
                    record = problem
                else:
                    self.spent += CELL * len(columns) + names + sum(map(len, columns.values()))
                    if record.typed:  # what was no text is stored beside its text
                        self.spent += sum(CELL + len(name) + len(columns[name]) for name in record.typed)
            self._take(1, 0, record.where)
            yield record

    def lines(self, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Numbered lines, of a file that is no table, as long as there is room for them."""
        for number, line in lines:
            self._take(1, len(line), number)
            yield number, line

    def counted(self, measured: Iterable[tuple[int, int]]) -> int:
        """How many rows there are, of pairs (rows, characters at least), before anything is made of them."""
        rows = 0
        for more, characters in measured:
            rows += more
            self._take(more, characters, rows)
        return rows

    def _take(self, rows: int, characters: int, where: str | int) -> None:
        """`where`: a place, or the number of a row."""
        self.spent += ROW * rows + characters
        if self.spent > self._most or time.monotonic() > self._until:
            place = where if isinstance(where, str) else _("row %(number)s") % {"number": f"{where:,}"}
            raise self._too_much(place) if self.spent > self._most else self.deadline.error(place)

    def _too_much(self, where: str) -> InputError:
        words = gettext_noop(
            "Up to here the file of %(size)s bytes makes more than %(most)s characters in the database, with "
            "the names of columns in each row. That is the most for its size: it repeats itself as no data "
            "does. Drop columns or shorten their names, save the rows as CSV without compression, or raise "
            "HYPAC_MAX_INPUT_RATIO or HYPAC_MAX_IMPORT_CHARACTERS."
        )
        size, most = f"{self._uploaded:,}", f"{self._most:,}"
        return fault(words, where=where, raised_as=ImportLimitError, size=size, most=most)


_end: ContextVar[float | None] = ContextVar("end of the look under way", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """All looks at files within are one, that of whoever waits: together they take as long as one may."""
    outer = _end.set(end_of_look())
    try:
        yield
    finally:
        _end.reset(outer)


def end_of_look() -> float:
    """When whoever waits for the look under way, or for one that begins now, has waited long enough, by
    `time.monotonic`."""
    end = _end.get()
    return time.monotonic() + _request_seconds() if end is None else end


def seconds_left_of_look() -> float | None:
    """How long whoever waits for the look under way may still wait; None where nobody does."""
    end = _end.get()
    return None if end is None else max(0.0, end - time.monotonic())


def _request_seconds() -> float:
    return min(REQUEST_SECONDS, settings.HYPAC_MAX_IMPORT_SECONDS)


def _problem_of_names(row: Row) -> Problem | None:
    if len(row.columns) > MAX_COLUMNS:
        words = gettext_noop("There are %(count)s columns; at most %(max_columns)s are read.")
        return Problem(row.where, Words(words, count=len(row.columns), max_columns=MAX_COLUMNS))
    if longest := next((name for name in row.columns if len(name) > MAX_NAME_CHARACTERS), ""):
        return Problem(row.where, name_too_long(longest))
    return None
