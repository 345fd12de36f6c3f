"""One JSON list of objects, however its lines are broken: [{...}, {...}]."""

import codecs
import re
from collections.abc import Iterator
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.faults import fault, said_by
from annotation.imports.formats.base import (
    Entries,
    Problem,
    ReadThrough,
    Record,
    check_row_count,
    row_or_problem,
)
from annotation.imports.formats.jsonl import columns_of
from annotation.imports.formats.text import BLOCK, longest_row, without_marks
from annotation.jobs.places import place_in_line, place_of_line
from annotation.words import Words

# What matters in order to find where an entry ends; inside of a string only its end does.
_MARKS = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'"|\\.|\\\Z', re.DOTALL)


class JsonList(ReadThrough):
    """Entries are cut out by their brackets and read one by one, as lines of JSON Lines are. One that is no
    object is a problem of its own; where brackets or quotation marks do not fit together, reading ends.
    """

    name = "json"
    reads_text = is_streamed = True
    endings = (".json",)
    title = gettext_noop("JSON list of objects")
    holds_images = False

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(entry: tuple[int, int, str]) -> Record:
            number, line, text = entry
            # Many entries may stand on one line.
            where = place_in_line(line, number)
            try:
                columns, typed = columns_of(text)
            except ValueError as error:
                return Problem(
                    where, Words(gettext_noop("This entry cannot be used: %(error)s"), error=said_by(error))
                )
            return row_or_problem(where, f"{file_name}:{number}", columns, longest, typed)

        return Entries(numbered_entries(file, file_name), record)


def numbered_entries(file: IO[bytes], file_name: str) -> Iterator[tuple[int, int, str]]:
    """(number, line, text) of each entry."""
    number = 0
    most = settings.HYPAC_MAX_IMPORT_ROWS
    for number, (line, text) in enumerate(_Entries(file), 1):
        if number > most:
            check_row_count(number, place_in_line(line, number))
        yield number, line, text
    if not number:
        raise fault(gettext_noop("The list has no entries."), where=file_name)


class _Entries:
    """Iterates over the texts of the entries, each with the line on which it starts.

    The file may be one long line, so that it is read in blocks. Raises InputError with the line where the
    list cannot be taken apart.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = without_marks(file)
        self._line = 1

    def __iter__(self) -> Iterator[tuple[int, str]]:
        depth, in_string, escaped = 0, False, False
        parts: list[str] = []
        length, longest = 0, longest_row()
        start = 1
        blocks = self._blocks()
        for block in blocks:
            begin = counted = 0
            place = int(escaped)
            escaped = False
            while found := (_IN_STRING if in_string else _MARKS).search(block, place):
                place, mark = found.end(), found.group()
                if in_string:
                    in_string = mark != '"'
                    escaped = mark == "\\"
                elif depth == 0 and (mark != "[" or block[begin : found.start()].strip()):
                    raise self._error(gettext_noop("A JSON list begins with [."))
                elif mark == '"':
                    in_string = True
                elif mark in "{[":
                    depth += 1
                    if depth == 1:
                        begin = place
                elif depth > 1:
                    depth -= mark in "}]"
                elif mark == "}":
                    raise self._error(gettext_noop("There is a } without its {."))
                else:
                    parts.append(block[begin : found.start()])
                    text = "".join(parts)
                    self._line += block.count("\n", counted, place)
                    counted = place
                    if text.strip() or mark == ",":
                        yield start + _blank_lines(text), text.strip()
                    parts, length, begin, start = [], 0, place, self._line
                    if mark == "]":
                        self._expect_nothing(block[place:], blocks)
                        return
            self._line += block.count("\n", counted)
            if depth:
                parts.append(block[begin:])
                length += len(block) - begin
                if length > longest:
                    raise fault(
                        gettext_noop(
                            "The entry that starts here is longer than %(longest)s characters. Is a "
                            "quotation mark never closed? Otherwise raise HYPAC_MAX_CELL_CHARACTERS."
                        ),
                        where=place_of_line(start),
                        longest=f"{longest:,}",
                    )
            elif block[begin:].strip():
                raise self._error(gettext_noop("A JSON list begins with [."))
        start += _blank_lines("".join(parts))
        words = gettext_noop(
            "The list is never closed: what starts here has no end. The file seems to be cut off: export or "
            "upload it again, whole."
        )
        raise fault(words, where=place_of_line(start))

    def _blocks(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        while True:
            raw = self._file.read(BLOCK)
            try:
                block = decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                self._line += raw[: error.start].count(b"\n")
                raise self._error(
                    gettext_noop("This is not UTF-8. Save the file as UTF-8 and import it again.")
                ) from None
            if "\0" in block:
                raise self._error(gettext_noop("There is a NUL character, which no text has."))
            if block:
                yield block
            elif not raw:
                return

    def _expect_nothing(self, rest: str, blocks: Iterator[str]) -> None:
        for text in (rest, *blocks):
            self._line += _blank_lines(text)
            if text.strip():
                raise self._error(gettext_noop("There is something after the end of the list."))

    def _error(self, words: str) -> InputError:
        return fault(words, where=place_of_line(self._line))


def _blank_lines(text: str) -> int:
    """Ends of lines before the first character that is not blank."""
    return text[: len(text) - len(text.lstrip())].count("\n")
