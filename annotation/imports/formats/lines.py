"""Plain text: each line that is not blank is a row of one column."""

from collections.abc import Iterator
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.faults import fault
from annotation.imports.formats.base import Entries, ReadThrough, Record, check_row_count, row_or_problem
from annotation.imports.formats.text import TextLines
from annotation.jobs.places import place_of_line

COLUMN = "text"


class PlainLines(ReadThrough):
    name = "lines"
    reads_text = is_streamed = True
    endings = (".txt",)
    title = gettext_noop("Plain lines, one item each")
    holds_images = False

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(entry: tuple[int, str]) -> Record:
            number, line = entry
            columns = {COLUMN: line.rstrip("\r\n")}
            return row_or_problem(place_of_line(number), f"{file_name}:{number}", columns, longest)

        return Entries(text_lines(file, file_name), record)


def text_lines(file: IO[bytes], file_name: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers. Raises InputError where there is none, or too many."""
    lines = TextLines(file)
    most = settings.HYPAC_MAX_IMPORT_ROWS
    rows = 0
    for line in lines:
        lines.new_row()
        if line.isspace():
            continue
        rows += 1
        if rows > most:
            check_row_count(rows, place_of_line(lines.number))
        yield lines.number, line
    if not rows:
        raise fault(gettext_noop("The file is empty."), where=file_name)
