"""What an importer is, and what it yields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import IO, Protocol

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.errors import InputError

MAX_COLUMNS = 500


@dataclass(frozen=True)
class Image:
    """An image that was decoded without an error."""

    content: bytes
    media_type: str


@dataclass(frozen=True)
class Row:
    """One row of a file: its columns in their order, all as text.

    `where` is for people; `name` is the item's id where no column holds one: the same each time the same file
    is read, and another one in every row.
    """

    where: str
    name: str
    columns: dict[str, str]
    image: Image | None = None


@dataclass(frozen=True)
class Problem:
    """One row that cannot be used, and why; the rows after it are read all the same."""

    where: str
    message: str


Record = Row | Problem


class ReadThrough:
    """For a format whose records are found only by reading all before them: `_records` gives every one."""

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        return islice(self._records(file, file_name), skip, None)

    def count(self, file: IO[bytes], file_name: str) -> int:
        return sum(1 for _ in self._records(file, file_name))

    def _records(self, file: IO[bytes], file_name: str) -> Iterator[Record]:
        raise NotImplementedError


class Importer(Protocol):
    """One file format. `registry` holds one object of each."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def holds_images(self) -> bool: ...

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        """Read from the start, after `skip` records, holding one record in memory at a time.

        Raises InputError, with the line, where nothing after it can be relied on (no UTF-8, an open quote).
        """
        ...

    def count(self, file: IO[bytes], file_name: str) -> int:
        """Number of records in the whole file. Raises as `records` does: what is counted can be read."""
        ...


def check_columns(names: list[str], where: str) -> None:
    """Refuse a header that cannot name columns."""
    if len(names) > MAX_COLUMNS:
        raise InputError(
            _("There are %(count)s columns; at most %(max_columns)s are read.")
            % {"count": f"{len(names):,}", "max_columns": MAX_COLUMNS},
            where=where,
        )
    for place, name in enumerate(names, 1):
        if not name.strip():
            raise InputError(
                _("Column %(place)s has no name. Name it, or remove it.") % {"place": place}, where=where
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            _("The column %(twice)r is there twice. Rename one of them.") % {"twice": twice}, where=where
        )


def cell_problem(columns: Mapping[str, str]) -> str:
    """Why these cells cannot be stored; "" where they can."""
    for name, value in columns.items():
        if len(value) > settings.HYPAC_MAX_CELL_CHARACTERS:
            return _(
                "The column %(name)r has %(count)s characters; at most "
                "%(hypac_max_cell_characters)s are read (HYPAC_MAX_CELL_CHARACTERS)."
            ) % {
                "name": name,
                "count": f"{len(value):,}",
                "hypac_max_cell_characters": f"{settings.HYPAC_MAX_CELL_CHARACTERS:,}",
            }
        if "\0" in value:
            return _("The column %(name)r contains a NUL character.") % {"name": name}
    return ""


def check_row_count(rows: int, where: str) -> None:
    if rows > settings.HYPAC_MAX_IMPORT_ROWS:
        raise InputError(
            _(
                "There are more than %(hypac_max_import_rows)s rows. Split the file, or raise "
                "HYPAC_MAX_IMPORT_ROWS."
            )
            % {"hypac_max_import_rows": f"{settings.HYPAC_MAX_IMPORT_ROWS:,}"},
            where=where,
        )
