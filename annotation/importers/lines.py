"""Plain text: each line that is not blank is a row of one column."""

from collections.abc import Iterator
from typing import IO

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.importers.base import Problem, ReadThrough, Record, Row, cell_problem, check_row_count
from annotation.importers.text import TextLines

COLUMN = "text"


class PlainLines(ReadThrough):
    name = "lines"
    title = "Plain lines, one item each"
    holds_images = False

    def _records(self, file: IO[bytes], file_name: str) -> Iterator[Record]:
        lines = TextLines(file)
        rows = 0
        for line in lines:
            lines.new_row()
            if line.isspace():
                continue
            rows += 1
            where = f"line {lines.number}"
            check_row_count(rows, where)
            columns = {COLUMN: line.rstrip("\r\n")}
            if problem := cell_problem(columns):
                yield Problem(where, problem)
            else:
                yield Row(where, f"{file_name}:{lines.number}", columns)
        if not rows:
            raise InputError(_("The file is empty."), where=file_name)
