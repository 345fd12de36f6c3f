"""A file of answers as it is read: lines of JSON, or the rows of a table, each with its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from django.utils.translation import gettext as _, gettext_noop

from annotation.errors import InputError
from annotation.imports.allowance import Allowance, Deadline, one_look
from annotation.imports.encodings import EncodingNeededError, encoding_of
from annotation.imports.faults import fault
from annotation.imports.formats import registry
from annotation.imports.formats.base import Record
from annotation.imports.formats.lines import text_lines
from annotation.imports.formats.text import NOT_UTF8
from annotation.imports.reading import Reading, reading
from annotation.jobs.places import place_of_line
from annotation.models import StoredFile
from routing.sources.backends.uploaded.lines import FORMATS, Line
from routing.sources.sent_tables import columns_in, table_in

TABLE = "table"
READ_AS = (*FORMATS, TABLE)


class Entry(NamedTuple):
    """A line as it stands, or a row; `number` is its place among those of the file, `where` is for people."""

    number: int
    where: str
    said: str | Record


class ParsedEntry(NamedTuple):
    """What was made of an entry: its answer, or where and why there is none."""

    entry: Entry
    line: Line | None
    problem: tuple[str, str] | None = None


@one_look()
def how_to_read(
    stored: StoredFile, *, format_name: str = "", encoding: str = "", id_column: str = "", quotes: bool = True
) -> dict[str, Any]:
    """The params of the job that say how the file is read: `encoding`, of a table `table`, what reads it, and
    `columns`, the field of an answer -> the column that holds it; of lines `id_column`, the field that names
    the item where that is said.

    Raises EncodingNeededError where somebody has to say the encoding; InputError where the file is nothing
    that answers are read from, or is no table or no lines, as is asked for, or its columns cannot be told.
    Without `quotes` neither says what is in the file, for those who may not have it.
    """
    if format_name and format_name not in READ_AS:
        raise InputError(_("The formats are %(names)s.") % {"names": ", ".join(READ_AS)}, where="format")
    try:
        with _said_of_sent_files():
            return _how_to_read(stored, format_name, encoding, id_column)
    except EncodingNeededError as error:
        if quotes:
            raise
        unquoted = fault(_WHICH_ENCODING, where="encoding", raised_as=EncodingNeededError)
        assert isinstance(unquoted, EncodingNeededError)  # noqa: S101
        unquoted.offers = [replace(offer, words=()) for offer in error.offers]
        raise unquoted from None
    except InputError as error:
        if quotes or error.where == "encoding" or error.params.get("words") in (_NO_TABLE, _IS_TABLE):
            raise  # such ones speak of what was asked for
        raise fault(_UNQUOTED, where="file") from None


_WHICH_ENCODING = gettext_noop("This text is not UTF-8. Say below which encoding it is in.")
_NO_TABLE = gettext_noop("This file is no table. Leave open what it is, or say what its lines are.")
_IS_TABLE = gettext_noop(
    "This file is a table (%(title)s) and has no lines of JSON. Leave open what it is, or say that it is a "
    "table."
)
_UNQUOTED = gettext_noop(
    "No answers can be read from this file. While a run is open it is not said what is in a file that was "
    "sent before: choose the file again to see why."
)


def _how_to_read(stored: StoredFile, format_name: str, encoding: str, id_column: str) -> dict[str, Any]:
    encoding = encoding_of(stored, encoding)
    params: dict[str, Any] = {"encoding": encoding} if encoding else {}
    importer = table_in(stored, encoding)
    if importer is None:
        if format_name == TABLE:
            raise fault(_NO_TABLE, where="format")
        return {**params, "id_column": id_column} if id_column else params
    importer, columns = columns_in(stored, importer, encoding, id_column=id_column)
    if format_name not in ("", TABLE):
        raise fault(_IS_TABLE, where="format", title=_(importer.title))
    return {**params, "table": importer.name, "columns": columns}


_NOT_UTF8_SENT = gettext_noop(
    "This is not UTF-8: byte 0x%(raw)s at place %(start)s of the line. Send the file again and say its "
    "encoding, under “Its letters look odd” on the page, or save it as UTF-8."
)


@contextmanager
def _said_of_sent_files() -> Iterator[None]:
    """What is in another encoding beyond what was looked at is sent again, and not imported."""
    try:
        yield
    except InputError as error:
        if error.params.get("words") != NOT_UTF8:
            raise
        told = {name: error.params[name] for name in ("raw", "start")}
        raise fault(_NOT_UTF8_SENT, where=error.where, **told) from None


class SentFile:
    """A file of answers that is open, to be read as the params of its job say."""

    def __init__(self, opened: Reading, stored: StoredFile, params: dict[str, Any]) -> None:
        self._opened, self._size = opened, stored.size
        self._importer = registry.get(params["table"]) if "table" in params else None

    def count(self) -> int:
        """How many lines or rows there are. What is counted can be read."""
        if self._importer:
            return self._opened.count(self._importer)
        return sum(1 for _line in self._lines())

    def entries(self, *, skip: int) -> Iterator[Entry]:
        """From the start, without the first ones."""
        if self._importer:
            for number, record in enumerate(self._opened.records(self._importer, skip=skip), skip + 1):
                yield Entry(number, record.where, record)
            return
        for number, text in islice(self._lines(), skip, None):
            yield Entry(number, place_of_line(number), text)

    def _lines(self) -> Iterator[tuple[int, str]]:
        self._opened.file.until(Deadline.of_an_import())
        self._opened.file.seek(0)
        return Allowance(self._size).lines(text_lines(self._opened.file, self._opened.name))


@contextmanager
def sent_file(stored: StoredFile, params: dict[str, Any]) -> Iterator[SentFile]:
    """`params` are those of the job. Jobs of earlier versions say nothing but the format of lines."""
    with _said_of_sent_files(), reading(stored, encoding=params.get("encoding", "")) as opened:
        yield SentFile(opened, stored, params)
