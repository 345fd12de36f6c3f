"""CSV for spreadsheets: UTF-8, commas, CRLF as in RFC 4180, one column for each original one and then
ours."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import IO, ClassVar

from annotation.values import as_text
from routing.delivery.base import ADDED, Row, added_names

# A spreadsheet takes a cell that starts like this for a formula, and a formula can send data away. The
# apostrophe makes it text. A plain negative number is none; the JSONL file is exact in any case.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"-[0-9]+(?:\.[0-9]+)?")


class CsvWriter:
    file_name: ClassVar[str] = "labels.csv"
    media_type: ClassVar[str] = "text/csv"

    def __init__(self, out: IO[bytes], columns: Sequence[str]) -> None:
        self._columns = columns
        self._text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=False)
        self._csv = csv.writer(self._text)
        names = added_names(columns)
        self._csv.writerow([_safe(name) for name in (*columns, *(names[name] for name in ADDED))])

    def write(self, original: Mapping[str, str], row: Row) -> None:
        cells = [original.get(column, "") for column in self._columns]
        self._csv.writerow(
            [_safe(_cell(value)) for value in (*cells, *(getattr(row, name) for name in ADDED))]
        )

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return as_text(value)
    return repr(value) if isinstance(value, float) else str(value)


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell
