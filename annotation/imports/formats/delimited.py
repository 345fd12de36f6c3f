"""CSV and TSV: a header line, then a row for each item."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.common.spreadsheets import unescape_formula
from annotation.imports.faults import fault
from annotation.imports.formats.base import (
    Entries,
    Problem,
    ReadThrough,
    Record,
    check_columns,
    check_row_count,
    row_or_problem,
)
from annotation.imports.formats.delivered import columns_of
from annotation.imports.formats.text import TextLines, outside_quotes
from annotation.imports.limits import CELL
from annotation.jobs.places import place_of_line
from annotation.words import Words


@dataclass(frozen=True)
class Delimited(ReadThrough):
    """Quoted as in RFC 4180, in UTF-8. Of several delimiters it is the one most frequent in the header,
    outside of quotation marks; where a first line says `sep=;`, what that names.
    """

    name: str
    title: str
    delimiters: str
    is_streamed = True
    holds_images: bool = False

    @property
    def reads_text(self) -> bool:
        """Not where one of several delimiters is guessed: then there is one for each of them."""
        return len(self.delimiters) == 1

    @property
    def endings(self) -> tuple[str, ...]:
        return (".tsv", ".tab") if self.delimiters == "\t" else (".csv",)

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        rows = self._rows(TextLines(file))
        try:
            line, header = next(rows)
        except StopIteration:
            raise fault(gettext_noop("The file is empty."), where=file_name) from None
        # What HyPAC delivered has an apostrophe in front of what a spreadsheet would take for a formula.
        is_escaped = bool(columns_of(header))
        if is_escaped:
            header = list(map(unescape_formula, header))
        check_columns(header, place_of_line(line))
        width = len(header)
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(row: tuple[int, list[str] | Words]) -> Record:
            line, cells = row
            where = place_of_line(line)
            if isinstance(cells, Words):
                return Problem(where, cells)
            if len(cells) != width:
                return _uneven(where, len(cells), width)
            columns = dict(zip(header, map(unescape_formula, cells) if is_escaped else cells, strict=True))
            return row_or_problem(where, f"{file_name}:{line}", columns, longest)

        return Entries(rows, record, sum(map(len, header)) + CELL * width)

    def _rows(self, lines: TextLines) -> Iterator[tuple[int, Any]]:
        """Rows that are not blank, with the number of the line on which they start: the cells, or why a row
        has none.
        """
        pushed = _Lines(lines)
        if (first := pushed.first()) is None:
            return
        said = SAYS_DELIMITER.fullmatch(first)
        delimiter = said[1] if said else max(self.delimiters, key=outside_quotes(first).count)
        if not said:
            pushed.back([first])
        # The reader has one cap for the whole process; `cell_problem` has the exact one for cells,
        # which leaves out a single row.
        csv.field_size_limit(8 * settings.HYPAC_MAX_CELL_CHARACTERS + 64 * 1024)
        reader = csv.reader(pushed, delimiter=delimiter, strict=True)
        rows, width = -1, 0  # the header is none
        most = settings.HYPAC_MAX_IMPORT_ROWS
        while True:
            start = pushed.number + 1
            pushed.new_row()
            cells: list[str] | Words
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                cut_off = str(error) == CUT_OFF
                if rows < 0 or not _told_apart(pushed.row, delimiter, width, cut_off=cut_off):
                    raise fault(
                        QUOTES, where=place_of_line(start), error=error, lines=pushed.number, start=start
                    ) from None
                pushed.back(pushed.row[1:])
                cells = Words(QUOTES_OF_ROW, error=str(error))
            if cells:
                rows += 1
                width = width or len(cells)
                if rows > most:
                    check_row_count(rows, place_of_line(start))
                yield start, cells


class _Lines:
    """Lines that can be given back, and that knows those of the row at hand. `number` is that of the last."""

    def __init__(self, lines: TextLines) -> None:
        self._lines = lines
        self._waiting: deque[str] = deque()
        self.row: list[str] = []
        self.number = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else next(self._lines)
        self.number += 1
        self.row.append(line)
        return line

    def first(self) -> str | None:
        return next(self, None)

    def back(self, lines: Sequence[str]) -> None:
        self._waiting.extendleft(reversed(lines))
        self.number -= len(lines)

    def new_row(self) -> None:
        self.row = []
        if not self._waiting:
            self._lines.new_row()


def _told_apart(row: Sequence[str], delimiter: str, width: int, *, cut_off: bool) -> bool:
    """Whether the mistake is in the first of these lines alone: all that follow are rows by themselves, so
    that nothing hangs on where its quotation mark should end. One that is open at the end of the last line
    may be where the file was cut off.
    """
    if len(row) == 1:
        return not cut_off
    return width > 1 and all(_is_row(line, delimiter, width) for line in row[1:])


def _is_row(line: str, delimiter: str, width: int) -> bool:
    try:
        cells = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return False
    return len(cells) in (0, width) and '"' not in outside_quotes(line)


SAYS_DELIMITER = re.compile(r"[Ss][Ee][Pp]=([^\w\s\"]|\t)[ \r]*(?:\n|$)")
"""The first line of a file that says to Excel what is between its cells."""
CUT_OFF = "unexpected end of data"
QUOTES = gettext_noop(
    "The quotation marks do not fit together (%(error)s). The row starts here "
    "and is read up to line %(lines)s. Close the quotation mark in line %(start)s, and "
    "double each one inside of a cell; or export or upload the file again, whole."
)
QUOTES_OF_ROW = gettext_noop(
    "The quotation marks of this row do not fit together (%(error)s). Close each of them, and double each "
    "one inside of a cell."
)
ONE_CELL = gettext_noop(
    "This row has %(count)s cell, but the header names %(columns)s columns. Complete it, or take it out."
)
TOO_FEW = gettext_noop(
    "This row has %(count)s cells, but the header names %(columns)s columns. Complete it; of an empty cell "
    "the separator alone."
)
TOO_MANY = gettext_noop(
    "This row has %(count)s cells, but the header names %(columns)s columns. Put each cell that holds the "
    "separator into quotation marks."
)


def _uneven(where: str, cells: int, columns: int) -> Problem:
    words = ONE_CELL if cells == 1 else TOO_FEW if cells < columns else TOO_MANY
    return Problem(where, Words(words, count=cells, columns=columns))
