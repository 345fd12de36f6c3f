"""CSV and TSV: a header line, then a row for each item."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.errors import InputError
from annotation.importers.base import (
    Problem,
    ReadThrough,
    Record,
    Row,
    cell_problem,
    check_columns,
    check_row_count,
)
from annotation.importers.text import TextLines


@dataclass(frozen=True)
class Delimited(ReadThrough):
    """Quoted as in RFC 4180, in UTF-8. Of several delimiters it is the one most frequent in the header."""

    name: str
    title: str
    delimiters: str
    holds_images: bool = False

    def _records(self, file: IO[bytes], file_name: str) -> Iterator[Record]:
        lines = TextLines(file)
        rows = self._rows(lines)
        try:
            _line, header = next(rows)
        except StopIteration:
            raise InputError(_("The file is empty."), where=file_name) from None
        check_columns(header, "line 1")
        for number, (line, cells) in enumerate(rows, 1):
            check_row_count(number, f"line {line}")
            where = f"line {line}"
            if len(cells) != len(header):
                words = ngettext(
                    "This row has %(count)s cell, but the header names %(columns)s columns.",
                    "This row has %(count)s cells, but the header names %(columns)s columns.",
                    len(cells),
                )
                yield Problem(where, words % {"count": len(cells), "columns": len(header)})
                continue
            columns = dict(zip(header, cells, strict=True))
            if problem := cell_problem(columns):
                yield Problem(where, problem)
            else:
                yield Row(where, f"{file_name}:{line}", columns)

    def _rows(self, lines: TextLines) -> Iterator[tuple[int, list[str]]]:
        """Rows that are not blank, with the number of the line on which they start."""
        first = next(lines, None)
        if first is None:
            return
        delimiter = max(self.delimiters, key=first.count)
        # The reader has one cap for the whole process; `cell_problem` has the exact one for cells,
        # which leaves out a single row.
        csv.field_size_limit(8 * settings.HYPAC_MAX_CELL_CHARACTERS + 64 * 1024)
        reader = csv.reader(_again(first, lines), delimiter=delimiter, strict=True)
        start = 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(
                    _(
                        "The quotation marks do not fit together (%(error)s). The row starts here "
                        "and is read up to line %(lines)s."
                    )
                    % {"error": error, "lines": lines.number},
                    where=f"line {start}",
                ) from None
            if cells:
                yield start, cells
            start = lines.number + 1
            lines.new_row()


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest
