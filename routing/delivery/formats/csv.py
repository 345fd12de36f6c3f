"""CSV for spreadsheets: UTF-8, commas, CRLF as in RFC 4180, one column for each original one and then
ours. TSV is the same with tabs.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from annotation.common.spreadsheets import FIRST, escape_formula
from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.labels.page import DeliveryInfo, Page, added_names

LIMITS = (
    Limit(
        "types",
        _(
            "Every cell is text: a number, true or false reads back as such only where whoever reads it "
            "guesses so; a list is written as JSON."
        ),
    ),
    Limit("empty", _("A cell that is empty, one that is null and one that was not there look the same.")),
    Limit(
        "formula",
        _(
            "A cell that a spreadsheet would take for a formula (it starts with =, +, - or @, also after "
            "blanks or in full width, or with a tab or an end of a line; plain negative numbers apart) has "
            "an apostrophe in front, and one more where it had some: without the first it is as it was."
        ),
        counted=True,
    ),
)


class CsvWriter(RowWriter):
    file_name: ClassVar[str] = "labels.csv"
    summary: ClassVar[Any] = _(
        "Every item with its label, for spreadsheets. Cells that would start a formula have an apostrophe in "
        "front."
    )
    media_type: ClassVar[str] = "text/csv"
    limits: ClassVar[tuple[Limit, ...]] = LIMITS
    delimiter: ClassVar[str] = ","

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._columns = info.columns
        self._out = files.open(self.file_name, self.media_type)
        # A list cannot be looked up.
        self._different = _DIFFERENT | ({"label", "label_name"} if info.kind.several else set())
        self._added_columns = info.added
        names = added_names(info.columns, info.added)
        header = (*info.columns, *(names[name] for name in info.added))
        self._write([[escape_formula(name) for name in header]])
        self.counts["formula"] += sum(escape_formula(name) != name for name in header)

    def write(self, page: Page) -> None:
        cells = [self._originals(page.originals, column) for column in self._columns]
        cells += [
            self._added(page.columns[name], repeats=name not in self._different)
            for name in self._added_columns
        ]
        self._write(zip(*cells, strict=True))

    def close(self) -> None:
        """Every page is written at once."""

    def _write(self, rows: Iterable[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.delimiter).writerows(rows)
        self._out.write(text.getvalue().encode())

    def _originals(self, originals: Sequence[Mapping[str, Any]], column: str) -> list[str]:
        return self._cells([original.get(column, "") for original in originals])

    def _added(self, values: Sequence[Any], *, repeats: bool) -> list[str]:
        if not repeats:
            return self._cells(values)
        known = _Cells()
        cells = list(map(known.__getitem__, values))
        if known.escaped:
            self.counts["formula"] += sum(map(known.escaped.__contains__, values))
        return cells

    def _cells(self, values: Sequence[Any]) -> list[str]:
        return [
            value if type(value) is str and value[:1] not in FIRST else self._other(value) for value in values
        ]

    def _other(self, value: object) -> str:
        cell = cell_text(value)
        safe = escape_formula(cell)
        self.counts["formula"] += safe is not cell
        return safe


class TsvWriter(CsvWriter):
    file_name: ClassVar[str] = "labels.tsv"
    summary: ClassVar[Any] = _("As labels.csv, with tabs in place of commas.")
    media_type: ClassVar[str] = "text/tab-separated-values"
    delimiter: ClassVar[str] = "\t"


# Columns whose values hardly ever repeat.
_DIFFERENT = frozenset({"external_id", "uncertainty"})


class _Cells(dict[Any, str]):
    """The cells that were made of a column's values. Values of one column are of one type, or None."""

    def __init__(self) -> None:
        self.escaped: set[Any] = set()

    def __missing__(self, value: Any) -> str:
        cell = cell_text(value)
        safe = self[value] = escape_formula(cell)
        if safe is not cell:
            self.escaped.add(value)
        return safe


def cell_text(value: object) -> str:
    """As a table has it in which every cell is text."""
    if type(value) is str:
        return value
    if type(value) is float:
        return repr(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)
