"""The columns of a file, by the names an experiment knows them under, and their cells as numbers."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.experiment.table import TableError

PARQUET = {".parquet", ".pq"}
WHOLE = 2.0**53
"""Below it every whole number is a float."""
LONGEST_NAME = 10_000
"""Characters of a column name; more of them are text whose first row is missing."""


@dataclass(frozen=True)
class Columns:
    """The cells of a file, blank ones as ''.

    Attributes
    ----------
    name : str
        Of the file.
    cells : mapping
        Texts (N,) by column, under the names of the file.
    names : mapping
        What a column is called in the file, by what it is called here, where that differs.
    """

    name: str
    cells: Mapping[str, Sequence[str]]
    names: Mapping[str, str]
    size: int

    def __contains__(self, column: str) -> bool:
        if column in self.names:
            return True
        return column in self.cells and column not in _taken(self.names)

    def first(self, *either: str) -> str | None:
        """The first of the columns that was mapped, else the first that is there; None without any."""
        there = [column for column in either if column in self]
        return next((column for column in there if column in self.names), there[0] if there else None)

    def texts(self, column: str) -> Sequence[str]:
        """The cells (N,) of a column that is there."""
        return self.cells[self.names.get(column, column)]

    def where(self, row: int, column: str) -> str:
        """How a message calls a cell; rows count from 1, the header not among them."""
        item = f" (item {self.texts('item_id')[row]!r})" if "item_id" in self else ""
        return f"{self.name}: row {row + 1}{item}, column {self.names.get(column, column)!r}"

    def numbers(self, column: str, *, least: float = 0.0, most: float | None = None) -> Floats:
        """The cells as numbers (N,), NaN where blank.

        Raises
        ------
        TableError
            A cell is no finite number or outside [least, most].
        """
        values = np.empty(self.size)
        for row, text in enumerate(self.texts(column)):
            try:
                if "_" in text:
                    raise ValueError(text)  # Python would read 1_0 as 10
                value = float(text) if text.strip() else float("nan")
            except ValueError:
                raise TableError(f"{self.where(row, column)}: {_short(text)} is no number") from None
            if text.strip() and not (isfinite(value) and value >= least and (most is None or value <= most)):
                allowed = f"of at least {least:g}" if most is None else f"from {least:g} to {most:g}"
                raise TableError(f"{self.where(row, column)}: {_short(text)} must be a number {allowed}")
            values[row] = value
        return values

    def complete(self, column: str, *, least: float = 0.0, most: float | None = None) -> Floats:
        """`numbers` of a column in which no cell may be blank."""
        values = self.numbers(column, least=least, most=most)
        blank = np.flatnonzero(np.isnan(values))
        if len(blank):
            raise TableError(f"{self.where(int(blank[0]), column)}: the cell is blank; a number is needed")
        return values


def open_columns(path: Path, *, names: Mapping[str, str], wanted: Sequence[str]) -> Columns:
    """Those of the ``wanted`` columns that the file has; other columns are not read.

    Parameters
    ----------
    path
        CSV in UTF-8 with a header row, or Parquet (".parquet", ".pq").
    names
        What a column is called in the file, by what it is called here.

    Raises
    ------
    TableError
        The file cannot be read, has no rows, a row has another number of cells than the header, or a name in
        ``names`` is no column.
    """
    parquet = path.suffix.lower() in PARQUET
    try:
        header = _parquet_header(path) if parquet else _csv_header(path)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror or error}") from None
    if not parquet:
        _check_separator(path, header)
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise TableError(f"{path.name}: two columns are called {twice[0]!r}")
    for known, name in names.items():
        if name not in header:
            raise TableError(f"{path.name}: there is no column {name!r}, which {known!r} should be read from")
        if known not in wanted:
            raise TableError(f"there is no column {known!r} to map {name!r} to; see the list of columns")
    taken = _taken(names)
    read = [name for name in wanted if name in names or (name in header and name not in taken)]
    chosen = list(dict.fromkeys(names.get(name, name) for name in read))  # two may be read from one
    table = _read_parquet(path, chosen) if parquet else _read_csv(path, chosen)
    if not table.num_rows:
        raise TableError(f"{path.name}: there is a header, but no row")
    cells = {name: _texts(table.column(name), f"{path.name}: column {name!r}") for name in chosen}
    return Columns(path.name, cells, dict(names), table.num_rows)


def _taken(names: Mapping[str, str]) -> set[str]:
    """Columns that are read under another name and have given up their own; people may be asked about an item
    with a probability that is its score, say, so that ``p`` takes nothing.
    """
    return {column for known, column in names.items() if known != "p"}


def _csv_header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except UnicodeDecodeError as error:
        raise TableError(f"{path.name}: the file is not UTF-8 ({error.reason} in its header)") from None
    except csv.Error as error:
        raise TableError(f"{path.name}: the first row does not name columns ({error})") from None
    if not header:
        raise TableError(f"{path.name}: the first row is empty; it must name the columns")
    longest = max(map(len, header))
    # How long a cell the csv module reads is one number for the whole process, which others may have raised.
    if longest > LONGEST_NAME:
        raise TableError(
            f"{path.name}: the first row does not name columns (a cell has {longest:,} characters)"
        )
    return header


def _check_separator(path: Path, header: Sequence[str]) -> None:
    """A header of one column with another separator in it was meant to be several columns."""
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "'|'")):
        if len(header) == 1 and sign in header[0]:
            raise TableError(
                f"{path.name}: its columns seem to be separated by {name}; write them with commas, and "
                "numbers with a decimal point"
            )


def _read_csv(path: Path, columns: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv as reader

    uneven: list[Any] = []

    def keep(row: Any) -> str:
        uneven.append(row)
        return "error"

    try:
        return reader.read_csv(
            path,
            read_options=reader.ReadOptions(use_threads=False),  # with threads, a bad row has no number
            parse_options=reader.ParseOptions(newlines_in_values=True, invalid_row_handler=keep),
            convert_options=reader.ConvertOptions(
                include_columns=columns,
                column_types={name: pa.string() for name in columns},
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        if not uneven:
            raise TableError(f"{path.name}: {error}") from None
        row = uneven[0]
        raise TableError(
            f"{path.name}: row {row.number - 1} has {row.actual_columns} cells, the header "
            f"{row.expected_columns}: {_short(row.text)}"
        ) from None


def _parquet_header(path: Path) -> list[str]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return list(parquet.read_schema(path).names)
    except pa.ArrowException as error:
        raise TableError(f"{path.name} is no Parquet file that can be read: {error}") from None


def _read_parquet(path: Path, columns: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_table(path, columns=columns)
    except pa.ArrowException as error:
        raise TableError(f"{path.name}: {error}") from None


def _texts(column: Any, where: str) -> list[str]:
    """The cells of an Arrow column as texts, missing ones and NaN as ''."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    no_text = (
        pa.types.is_nested,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
    )
    if any(is_kind(kind) for is_kind in no_text):
        raise TableError(f"{where} holds cells of type {kind}; write texts or numbers")
    return [value if isinstance(value, str) else _text(value) for value in column.to_pylist()]


def _text(value: object) -> str:
    """A cell that is no text.  Whole floats are written as whole numbers: a column of them has become one of
    floats wherever a cell was missing, and its labels should still equal those of a column that has not.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < WHOLE else repr(value)
    return str(value)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
