"""What an importer is, and what it yields."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, NamedTuple, Protocol

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.faults import fault
from annotation.imports.limits import MAX_COLUMNS, MAX_NAME_CHARACTERS
from annotation.words import Words


@dataclass(frozen=True)
class Image:
    """An image that was decoded without an error."""

    content: bytes
    media_type: str


class GivenLabel(NamedTuple):
    """A label that a person gave elsewhere, as a file says it.

    `value` is anything that `annotation.common.value_reader` reads: text, a number, a list of choices.
    `annotator` is a username or an e-mail address where the file has one, else whatever tells people apart;
    "" where it says nothing. `created_at` is the time as it stands in the file, ISO 8601, "" for none; `tool`
    names the program that the label comes from. `problem` says why there is no value that can be read.
    """

    value: Any
    annotator: str = ""
    created_at: str = ""
    lead_time_ms: int | None = None
    tool: str = ""
    problem: str = ""


class Row(NamedTuple):
    """One row of a file: its columns in their order, all as text.

    `where` is for people; `name` is the item's id where no column holds one: the same each time the same file
    is read, and another one in every row. `typed` has the values of those columns whose cell was no text (a
    number, a truth value, null, a list, an object), as `json` reads them; None where all were. `answers` are
    the columns with what people said whose names do not tell that by themselves, as those in `reserved` do.
    `left_out` counts people's responses that are no labels: drafts, and what they discarded or skipped.
    `uncomputed` are columns, empty here, whose cell holds a formula without a value.
    """

    where: str
    name: str
    columns: dict[str, str]
    image: Image | None = None
    labels: tuple[GivenLabel, ...] = ()
    typed: dict[str, Any] | None = None
    answers: tuple[str, ...] = ()
    left_out: int = 0
    uncomputed: frozenset[str] = frozenset()


UNCOMPUTED = gettext_noop(
    "Its cell holds a formula that was never computed, and so no value. Open the workbook in a spreadsheet "
    "program, save it, and send it again."
)


EMPTY_IN_ITEM = gettext_noop(
    "This cell is empty in the item: it holds a formula that was never computed. Of each column the first "
    "such cell is told, and all are counted. Open the workbook in a spreadsheet program and save it, take "
    "this import back, and import the file again."
)


class Problem(NamedTuple):
    """One row that cannot be used, and why; the rows after it are read all the same."""

    where: str
    message: str


Record = Row | Problem


class Entries(NamedTuple):
    """What a file consists of: `found` gives one entry after the other, with its place, in whatever form is
    cheapest, and `record` makes a record of one. So entries can be counted and passed over fast. `least` are
    characters that each record has at least, whatever is in the file for it: names of columns.
    """

    found: Iterator[Any]
    record: Callable[[Any], Record]
    least: int = 0


class Format:
    """What holds of a format that says nothing else about itself."""

    @property
    def reads_text(self) -> bool:
        return False

    @property
    def is_streamed(self) -> bool:
        return False

    @property
    def endings(self) -> tuple[str, ...]:
        return ()

    @property
    def begins_with(self) -> tuple[bytes, ...]:
        return ()

    def claims_object(self, first: Any, *, listed: bool) -> bool:
        return False

    def claims_archive(self, archive: zipfile.ZipFile) -> bool:
        return False


class ReadThrough(Format):
    """For a format whose entries are found only by reading all before them."""

    holds_labels = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        entries = self._entries(file, file_name)
        yield from map(entries.record, islice(entries.found, skip, None))

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        entries = self._entries(file, file_name)
        return ((1, entries.least) for _entry in entries.found)

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        raise NotImplementedError


class Importer(Protocol):
    """One file format. `registry` holds one object of each."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def holds_images(self) -> bool: ...

    @property
    def holds_labels(self) -> bool:
        """Whether the format says which labels people gave."""
        ...

    @property
    def reads_text(self) -> bool:
        """Whether any text may be read in it, if somebody wants that."""
        ...

    @property
    def is_streamed(self) -> bool:
        """Whether it is read from front to back only, so that what lies in an archive needs no copy."""
        ...

    @property
    def endings(self) -> tuple[str, ...]:
        """Of the names of such files, for the dialogue in which one is chosen."""
        ...

    @property
    def begins_with(self) -> tuple[bytes, ...]:
        """The first bytes of such files, where no other file begins so."""
        ...

    def claims_object(self, first: Any, *, listed: bool) -> bool:
        """Whether a file of JSON whose first object this is, in a list or not, is of the format. Of several
        formats that say so of one file the last in the registry reads it.
        """
        ...

    def claims_archive(self, archive: zipfile.ZipFile) -> bool:
        """Whether a zip archive is of the format, by the names in it."""
        ...

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        """Read from the start, after `skip` records, holding one record in memory at a time.

        Raises InputError, with the line, where nothing after it can be relied on (no UTF-8, an open quote).
        """
        ...

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        """Go through the whole file, and say of each piece of it how many records it has, and how many
        characters they have at least. Raises as `records` does: what is counted can be read.
        """
        ...


def check_columns(names: list[str], where: str) -> None:
    """Refuse a header that cannot name columns."""
    if not names:
        raise fault(gettext_noop("There are no columns."), where=where)
    if len(names) > MAX_COLUMNS:
        raise fault(
            gettext_noop("There are %(count)s columns; at most %(max_columns)s are read."),
            where=where,
            count=f"{len(names):,}",
            max_columns=MAX_COLUMNS,
        )
    for place, name in enumerate(names, 1):
        if len(name) > MAX_NAME_CHARACTERS:
            raise fault(NAME_TOO_LONG, where=where, name=name[:60], most=f"{MAX_NAME_CHARACTERS:,}")
        if not name.strip():
            raise fault(
                gettext_noop("Column %(place)s has no name. Name it, or remove it."), where=where, place=place
            )
    if nul := next((place for place, name in enumerate(names, 1) if "\0" in name), 0):
        raise fault(
            gettext_noop("The name of column %(place)s contains a NUL character. Take it out."),
            where=where,
            place=nul,
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)[:60]
        raise fault(
            gettext_noop("The column %(twice)r is there twice. Rename one of them."), where=where, twice=twice
        )


NAME_TOO_LONG = gettext_noop(
    "The name of the column that begins with “%(name)s” has more than %(most)s characters. Shorten it."
)


def name_too_long(name: str) -> Words:
    return Words(NAME_TOO_LONG, name=name[:60], most=MAX_NAME_CHARACTERS)


def row_or_problem(
    where: str, name: str, columns: dict[str, str], longest: int, typed: dict[str, Any] | None = None
) -> Record:
    """The row, unless a cell cannot be stored. `longest` is HYPAC_MAX_CELL_CHARACTERS, which is read once for
    a file: the settings are slow to ask for each of a million rows.
    """
    for value in columns.values():
        if len(value) > longest or "\0" in value:
            return Problem(where, _cell_problem(columns, longest))
    return Row(where, name, columns, typed=typed) if typed else Row(where, name, columns)


def _cell_problem(columns: Mapping[str, str], longest: int) -> Words:
    """Why these cells cannot be stored."""
    for name, value in columns.items():
        if len(value) > longest:
            return Words(
                gettext_noop(
                    "The column %(name)r has %(count)s characters; at most "
                    "%(hypac_max_cell_characters)s are read (HYPAC_MAX_CELL_CHARACTERS)."
                ),
                name=name,
                count=len(value),
                hypac_max_cell_characters=longest,
            )
        if "\0" in value:
            break
    return Words(gettext_noop("The column %(name)r contains a NUL character."), name=name)


def check_row_count(rows: int, where: str) -> None:
    if rows > settings.HYPAC_MAX_IMPORT_ROWS:
        raise fault(
            gettext_noop(
                "There are more than %(hypac_max_import_rows)s rows. Split the file, or raise "
                "HYPAC_MAX_IMPORT_ROWS."
            ),
            where=where,
            hypac_max_import_rows=f"{settings.HYPAC_MAX_IMPORT_ROWS:,}",
        )
