"""Workbooks: Excel (.xlsx, .xlsb, .xls) and OpenDocument (.ods). One sheet, with a header row.

They are read in a process of their own (`excel_reader`), whose memory is limited.
"""

import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.allowance import Deadline
from annotation.imports.faults import fault
from annotation.imports.formats.archives import open_archive
from annotation.imports.formats.base import (
    Format,
    Problem,
    Record,
    Row,
    check_columns,
    check_row_count,
    row_or_problem,
)
from annotation.imports.formats.text import longest_row
from annotation.imports.limits import CELL, WORKBOOK_MEGABYTES, WORKBOOK_SECONDS
from annotation.jobs.places import place_of_row
from annotation.words import Words

NAME = "excel"
READER = Path(__file__).with_name("excel_reader.py")
ZIP_MAGIC = b"PK"
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # .xls, and a workbook with a password


@dataclass(frozen=True)
class Excel(Format):
    """The rows below the first one that is not empty. Numbers and truth values keep their type, times are in
    ISO 8601, a formula is the value that was stored for it (where none was, the cell is empty and the row
    says so), an error cell its text (#N/A).
    """

    endings = (".xlsx", ".xlsb", ".xls", ".ods")
    begins_with = (OLE_MAGIC,)
    sheet: str = ""
    title: str = gettext_noop("Excel or OpenDocument table")
    holds_images: bool = False
    holds_labels: bool = False
    deadline: Deadline | None = None
    """Of all reading together: the reader is a process of its own, which no file's deadline stops."""

    @property
    def name(self) -> str:
        """As it is asked for in the registry: "excel:" and the sheet's name."""
        return f"{NAME}:{self.sheet}" if self.sheet else NAME

    def in_a_request(self) -> "Excel":
        """The same with a limit on the time that all reading together may take."""
        return replace(self, deadline=Deadline.of_a_look())

    def sheets(self, file: IO[bytes], file_name: str) -> list[str]:
        """Names of the visible sheets."""
        with closing(self._said(file, file_name)) as said:
            found: list[str] = next(said)["sheets"]
        return found

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        with closing(self._rows(file, file_name)) as rows:
            _number, header = next(rows)
            names = [_text(cell) for cell in header]
            for number, cells in islice(rows, skip, None):
                where = place_of_row(number)
                if cells is None:
                    yield Problem(
                        where, Words(gettext_noop("This row is too long. Raise HYPAC_MAX_CELL_CHARACTERS."))
                    )
                    continue
                by_name = dict(zip(names, cells, strict=True))
                columns = {name: _text(cell) for name, cell in by_name.items()}
                typed = {
                    name: cell for name, cell in by_name.items() if cell is not None and type(cell) is not str
                }
                row = row_or_problem(where, f"{file_name}:{number}", columns, longest, typed)
                if None in cells and isinstance(row, Row):
                    empty = frozenset(name for name, cell in by_name.items() if cell is None)
                    row = row._replace(uncomputed=empty)
                yield row

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        with closing(self._rows(file, file_name)) as rows:
            _number, header = next(rows)
            least = sum(len(_text(cell)) + CELL for cell in header)
            for _number, cells in rows:
                yield 1, least + sum(len(cell) for cell in cells or () if isinstance(cell, str))

    def _rows(self, file: IO[bytes], file_name: str) -> Generator[Any, None, None]:
        """(number, cells) of the header and of each row."""
        with closing(self._said(file, file_name)) as said:
            where = next(said)["sheet"]
            header = next(said, "end")
            if header == "end":
                raise fault(gettext_noop("The sheet is empty."), where=where)
            names = [_text(cell) for cell in header[1]]
            place = place_of_row(header[0], f"{where}, ")
            check_columns(names, place)
            if max(map(len, names)) > settings.HYPAC_MAX_CELL_CHARACTERS:
                raise fault(HEADER_TOO_LONG, where=place)
            yield header
            most = settings.HYPAC_MAX_IMPORT_ROWS
            for count, row in enumerate(said):
                if row == "end":
                    if not count:
                        raise fault(gettext_noop("The sheet has a header but no rows."), where=where)
                    return
                if count >= most:
                    check_row_count(count + 1, place_of_row(row[0]))
                yield row

    def _said(self, file: IO[bytes], file_name: str) -> Generator[Any, None, None]:
        """What the reader says of the file, up to and with "end"."""
        file.seek(0)
        if file.read(len(ZIP_MAGIC)) == ZIP_MAGIC:
            open_archive(file).close()
        most = (WORKBOOK_MEGABYTES, WORKBOOK_SECONDS, longest_row())
        command = [sys.executable, "-I", str(READER), *map(str, most), self.sheet]
        with (
            _with_descriptor(file) as source,
            subprocess.Popen(
                command,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"RUST_BACKTRACE": "0"},
            ) as reader,
        ):
            until = self.deadline.until if self.deadline else math.inf
            timer = threading.Timer(until - time.monotonic(), reader.kill)
            timer.daemon = True
            if self.deadline:
                timer.start()
            try:
                value = None
                for line in reader.stdout or ():
                    value = json.loads(line)
                    if isinstance(value, dict) and "error" in value:
                        raise _refusal(value, self.sheet, file_name)
                    yield value
                if value != "end" and self.deadline and time.monotonic() >= until:
                    words = gettext_noop(
                        "Reading the workbook takes more than %(most)s seconds. Save the sheet as CSV in "
                        "UTF-8, or split it."
                    )
                    raise fault(words, where=file_name, most=self.deadline.seconds)
                if value != "end":
                    words = gettext_noop(
                        "The workbook is damaged, or reading it takes more than %(most)s MB of memory. Save "
                        "the sheet as CSV in UTF-8, or split it."
                    )
                    raise fault(words, where=file_name, most=f"{_most_megabytes():,}")
            finally:
                timer.cancel()
                reader.kill()


HEADER_TOO_LONG = gettext_noop(
    "The names of the columns are too long. Shorten them, or raise HYPAC_MAX_CELL_CHARACTERS."
)


def _most_megabytes() -> int:
    """What the reader may have: its own limit, or that of the process that starts it where that is lower."""
    inherited, _hard = resource.getrlimit(resource.RLIMIT_DATA)
    if inherited == resource.RLIM_INFINITY:
        return WORKBOOK_MEGABYTES
    return min(WORKBOOK_MEGABYTES, inherited // 1024**2)


@contextmanager
def _with_descriptor(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The file where the operating system knows it, else a copy."""
    file.seek(0)
    try:
        file.fileno()
    except (OSError, AttributeError):
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield copy
    else:
        yield file


def _refusal(said: dict[str, str], sheet: str, file_name: str) -> InputError:
    if said["error"] == "password":
        return fault(
            gettext_noop("The workbook is protected by a password. Save it without one."), where=file_name
        )
    if said["error"] == "sheet" and sheet:
        words = gettext_noop("There is no sheet “%(sheet)s” that can be seen; there are: %(sheets)s.")
        return fault(words, where="format", sheet=sheet, sheets=said["text"])
    if said["error"] == "sheet":
        return fault(gettext_noop("There is no sheet that can be seen in this workbook."), where=file_name)
    if said["error"] == "header":
        return fault(HEADER_TOO_LONG, where=place_of_row(said["text"]))
    words = gettext_noop("The workbook is damaged and cannot be read (%(error)s).")
    return fault(words, where=file_name, error=said["text"])


def _text(cell: Any) -> str:
    if cell is None:  # a formula without a value
        return ""
    if isinstance(cell, str):
        return cell
    return json.dumps(cell)
