"""CSV and TSV: a header line, then a row for each item."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

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
from annotation.imports.formats.text import TextLines, outside_quotes
from annotation.imports.limits import CELL
from annotation.jobs.places import place_of_line
from annotation.words import Words


@dataclass(frozen=True)
class Delimited(ReadThrough):
    """Quoted as in RFC 4180, in UTF-8. Of several delimiters it is the one most frequent in the header,
    outside of quotation marks.
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
            _line, header = next(rows)
        except StopIteration:
            raise fault(gettext_noop("The file is empty."), where=file_name) from None
        check_columns(header, place_of_line(1))
        width = len(header)
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(row: tuple[int, list[str]]) -> Record:
            line, cells = row
            where = place_of_line(line)
            if len(cells) != width:
                return _uneven(where, len(cells), width)
            columns = dict(zip(header, cells, strict=True))
            return row_or_problem(where, f"{file_name}:{line}", columns, longest)

        return Entries(rows, record, sum(map(len, header)) + CELL * width)

    def _rows(self, lines: TextLines) -> Iterator[tuple[int, list[str]]]:
        """Rows that are not blank, with the number of the line on which they start."""
        first = next(lines, None)
        if first is None:
            return
        delimiter = max(self.delimiters, key=outside_quotes(first).count)
        # The reader has one cap for the whole process; `cell_problem` has the exact one for cells,
        # which leaves out a single row.
        csv.field_size_limit(8 * settings.HYPAC_MAX_CELL_CHARACTERS + 64 * 1024)
        reader = csv.reader(_again(first, lines), delimiter=delimiter, strict=True)
        start = 1
        rows = -1  # the header is none
        most = settings.HYPAC_MAX_IMPORT_ROWS
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise fault(
                    gettext_noop(
                        "The quotation marks do not fit together (%(error)s). The row starts here "
                        "and is read up to line %(lines)s. Close the quotation mark in line %(start)s, and "
                        "double each one inside of a cell; or export or upload the file again, whole."
                    ),
                    where=place_of_line(start),
                    error=error,
                    lines=lines.number,
                    start=start,
                ) from None
            if cells:
                rows += 1
                if rows > most:
                    check_row_count(rows, place_of_line(start))
                yield start, cells
            start = lines.number + 1
            lines.new_row()


ONE_CELL = gettext_noop("This row has %(count)s cell, but the header names %(columns)s columns.")
CELLS = gettext_noop("This row has %(count)s cells, but the header names %(columns)s columns.")


def _uneven(where: str, cells: int, columns: int) -> Problem:
    words = ONE_CELL if cells == 1 else CELLS
    return Problem(where, Words(words, count=cells, columns=columns))


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest
