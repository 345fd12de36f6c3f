"""CSV for spreadsheets: UTF-8, commas, CRLF as in RFC 4180, one column for each original one and then
ours. TSV is the same with tabs.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import IO, Any, ClassVar

from annotation.values import as_text
from routing.delivery.base import ADDED, Page, added_names

# A spreadsheet takes a cell that starts like this for a formula, and a formula can send data away. The
# apostrophe makes it text. A plain negative number is none; the JSONL file is exact in any case.
FORMULA = frozenset("=+-@\t\r")
NUMBER = re.compile(r"-[0-9]+(?:\.[0-9]+)?")


class CsvWriter:
    file_name: ClassVar[str] = "labels.csv"
    media_type: ClassVar[str] = "text/csv"
    delimiter: ClassVar[str] = ","

    def __init__(self, out: IO[bytes], columns: Sequence[str], *, several: bool = False) -> None:
        self._columns = columns
        self._text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=False)
        self._csv = csv.writer(self._text, delimiter=self.delimiter)
        # A list cannot be looked up.
        self._different = _DIFFERENT | ({"label", "label_name"} if several else set())
        names = added_names(columns)
        self._csv.writerow([_safe(name) for name in (*columns, *(names[name] for name in ADDED))])

    def write(self, page: Page) -> None:
        cells = [_originals(page.originals, column) for column in self._columns]
        cells += [_added(page.columns[name], repeats=name not in self._different) for name in ADDED]
        self._csv.writerows(zip(*cells, strict=True))

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


class TsvWriter(CsvWriter):
    file_name: ClassVar[str] = "labels.tsv"
    media_type: ClassVar[str] = "text/tab-separated-values"
    delimiter: ClassVar[str] = "\t"


def _originals(originals: Sequence[Mapping[str, Any]], column: str) -> list[str]:
    values = [original.get(column, "") for original in originals]
    return [
        value if type(value) is str and value[:1] not in FORMULA else _safe(_cell(value)) for value in values
    ]


# Columns whose values hardly ever repeat.
_DIFFERENT = frozenset({"external_id", "uncertainty"})


def _added(values: Sequence[Any], *, repeats: bool) -> list[str]:
    if repeats:
        return list(map(_Cells().__getitem__, values))
    return [_safe(_cell(value)) for value in values]


class _Cells(dict[Any, str]):
    """The cells that were made of a column's values. Values of one column are of one type, or None."""

    def __missing__(self, value: Any) -> str:
        cell = self[value] = _safe(_cell(value))
        return cell


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return as_text(value)
    return repr(value) if isinstance(value, float) else str(value)


def _safe(cell: str) -> str:
    return f"'{cell}" if cell[:1] in FORMULA and not NUMBER.fullmatch(cell) else cell
