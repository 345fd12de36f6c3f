"""Answers that are sent in as a table (CSV, TSV, Excel, a JSON list, Parquet): which column is what, and what
a row says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _, gettext_noop

from annotation.common.files import open_file
from annotation.errors import InputError
from annotation.imports.columns import ID_NAMES
from annotation.imports.encodings import ZIP
from annotation.imports.faults import fault
from annotation.imports.format_choice import SAMPLE
from annotation.imports.formats import registry
from annotation.imports.formats.base import UNCOMPUTED, Importer, Row
from annotation.imports.formats.delimited import Delimited
from annotation.imports.formats.detect import detect
from annotation.imports.formats.excel import Excel
from annotation.imports.formats.json_list import JsonList
from annotation.imports.formats.parquet import Parquet
from annotation.imports.reading import Reading, reading
from annotation.models import StoredFile
from routing.sources.backends.recorded import READERS
from routing.sources.backends.uploaded.answers import COUNTS, FIELDS
from routing.sources.suggested import models_named

TABLES = (Delimited, Excel, JsonList, Parquet)
ITEM, LABEL, REASON = "external_id", "label", "reason"
SHEETS_TRIED = 5
SHOWN, SHOWN_CHARACTERS = 20, 40


def table_in(stored: StoredFile, encoding: str) -> Importer | None:
    """What reads the file as a table; None for lines of JSON, and for whatever else is read line by line.

    Raises InputError where nothing reads it, or it is an archive.
    """
    importer = registry.get(detect(stored, registry.IMPORTERS.values(), encoding))
    if isinstance(importer, TABLES):
        return importer
    with open_file(stored) as file:
        if file.read(len(ZIP[0])).startswith(ZIP):
            words = gettext_noop(
                "This is an archive (%(kind)s). Unpack it, and send what is in it: JSON Lines, CSV, TSV, "
                "Excel or Parquet."
            )
            raise fault(words, where="file", kind=_(importer.title))
    return None


def columns_in(
    stored: StoredFile, importer: Importer, encoding: str, *, id_column: str = ""
) -> tuple[Importer, dict[str, str]]:
    """Field of an answer -> the column that holds it, with the sheet of a workbook where they are found.
    `id_column` names the items where that is said.

    Raises InputError where the item or the answer has no column, or more than one could be it.
    """
    refusal: InputError | None = None
    with reading(stored, encoding=encoding, waiting=True) as opened:
        for one in _sheets(importer, opened):
            try:
                return one.named, columns_of(_names(one.reader, opened), _(importer.title), id_column)
            except InputError as error:
                refusal = refusal or error
    assert refusal is not None  # noqa: S101 - a workbook without a sheet is refused before
    raise refusal


def columns_of(names: Sequence[str], title: str, id_column: str = "") -> dict[str, str]:
    """Of columns with these names; those that hold nothing of an answer are left out. Raises InputError."""
    if id_column and id_column not in names:
        raise fault(_NO_SUCH_COLUMN, where="id_column", column=id_column, columns=_list(names))
    exact = {name.strip().lower(): name for name in reversed(names)}
    found = {field: exact[field] for field in FIELDS if field in exact}
    item = id_column or next((exact[name] for name in (ITEM, *ID_NAMES) if name in exact), "")
    models = models_named([name for name in names if name != item])
    own = [one for one in models.values() if one["label_column"] == found.get(LABEL)]
    chosen = own or ([] if LABEL in found else [*models.values()])
    if len(chosen) > 1:
        raise fault(_SEVERAL, where="file", answers=_list([one["label_column"] for one in chosen]))
    for role, column in chosen[0].items() if chosen else ():
        found.setdefault(role.removesuffix("_column"), column)
    if not item or LABEL not in found:
        missing = _ITEM_MISSING if not item else _ANSWER_MISSING
        raise fault(missing, where="file", title=title, columns=_list(names))
    if "confidence" in found:
        found.pop("uncertainty", None)  # an answer has one of the two
    return {ITEM: item, **{field: column for field, column in found.items() if field != ITEM}}


def entry_of(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    """The answer that a row holds, as a line of JSON would say it. An empty cell says nothing; without a
    label the model gave none. Raises InputError for a formula that was never computed.
    """
    if field := next((field for field, column in columns.items() if column in row.uncomputed), ""):
        raise fault(UNCOMPUTED, where=field)
    cells = {field: row.columns.get(column, "").strip() for field, column in columns.items()}
    entry: dict[str, Any] = {field: _value(field, cell) for field, cell in cells.items() if cell}
    if entry.setdefault(LABEL, None) is not None:
        entry.pop(REASON, None)  # that says why there is none
    return entry


_NO_SUCH_COLUMN = gettext_noop("The table has no column “%(column)s”; its columns are %(columns)s.")
_SEVERAL = gettext_noop(
    "The answers of several models are in this table: %(answers)s could each be it. Call the one that is "
    "meant “label”, or send one file for each model."
)
_ITEM_MISSING = gettext_noop(
    "This is a table (%(title)s) with the columns %(columns)s, and none of them names the items. Call the "
    "column with their ids “external_id” or “id”, and the one with the answers “label”; “confidence” says "
    "how sure the model is."
)
_ANSWER_MISSING = gettext_noop(
    "This is a table (%(title)s) with the columns %(columns)s, and none of them holds the answers, as far as "
    "their names tell. Call it “label”, “prediction”, “guess” or “answer”; “confidence” says how sure the "
    "model is."
)


class _Sheet:
    """A table with what reads it while somebody waits, and its name in a job."""

    def __init__(self, named: Importer, reader: Importer) -> None:
        self.named, self.reader = named, reader


def _sheets(importer: Importer, opened: Reading) -> Iterator[_Sheet]:
    if not isinstance(importer, Excel):
        yield _Sheet(importer, importer)
        return
    in_time = importer.in_a_request()
    for name in in_time.sheets(opened.file, opened.name)[:SHEETS_TRIED]:
        yield _Sheet(Excel(sheet=name), replace(in_time, sheet=name))


def _names(importer: Importer, opened: Reading) -> list[str]:
    """The columns of the first rows, in their order."""
    rows = [one for one in islice(opened.records(importer), SAMPLE) if isinstance(one, Row)]
    if not rows:
        raise fault(gettext_noop("The file has a header but no rows."), where="file")
    return list(dict.fromkeys(name for row in rows for name in row.columns))


def _list(names: Sequence[str]) -> str:
    shown = [f"“{name[:SHOWN_CHARACTERS]}”" for name in names[:SHOWN]]
    return ", ".join([*shown, *(["…"] if len(names) > SHOWN else [])])


def _value(field: str, cell: str) -> Any:
    if field in READERS:
        return READERS[field](cell)
    return int(cell) if field in COUNTS and cell.isdecimal() and len(cell) < SHOWN else cell
