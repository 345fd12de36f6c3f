"""Rows from what people have - a DataFrame, dictionaries - to NDJSON, types kept."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from os import PathLike
from tempfile import TemporaryFile
from typing import IO, Any, TypeAlias
from uuid import UUID

Records: TypeAlias = Any
"""A pandas DataFrame, or any number of dictionaries: pandas need not be there."""

NDJSON = "application/x-ndjson"
BYTES = "application/octet-stream"
ROWS_AT_ONCE = 10_000
BLOCK = 2**20


def rows_of(data: Records) -> Iterator[Mapping[str, Any]]:
    """One mapping a row; of a DataFrame its columns, without the index."""
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        columns = [str(name) for name in data.columns]
        if len(set(columns)) < len(columns):
            raise ValueError("two columns of the DataFrame have the same name")
        for start in range(0, len(data), ROWS_AT_ONCE):
            page = data.iloc[start : start + ROWS_AT_ONCE]
            # Column by column: row by row pandas would make floats of whole numbers.
            values = [page.iloc[:, index].tolist() for index in range(len(columns))]
            for row in zip(*values, strict=True):
                yield dict(zip(columns, row, strict=True))
        return
    if isinstance(data, str | bytes | Mapping | PathLike):
        raise TypeError(f"expected a DataFrame or dictionaries, one a row, not {type(data).__name__}")
    yield from data


def ndjson(data: Records) -> Iterator[bytes]:
    """One line a row."""
    for number, row in enumerate(rows_of(data), start=1):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number}: expected a dictionary, not {type(row).__name__}")
        try:
            plain = {str(name): plain_value(value) for name, value in row.items()}
            line = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            yield line.encode() + b"\n"
        except TypeError as error:
            raise TypeError(f"row {number}: {error}") from None
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from None


def lines_file(data: Records | str | PathLike[str] | IO[Any]) -> IO[bytes]:
    """Lines as a file that can be sent again, and that the caller closes: that of a path, as it is; what is
    left of an open file, bytes or text; rows as `ndjson` writes them.
    """
    if isinstance(data, str | PathLike):
        return open(data, "rb")
    return spooled(data)


def spooled(data: Records | IO[Any]) -> IO[bytes]:
    """The lines in a temporary file without a name, so that they can be sent again."""
    file = TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        file.writelines(_blocks(data) if hasattr(data, "read") else ndjson(data))
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


def _blocks(file: IO[Any]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block.encode() if isinstance(block, str) else block


def plain_value(value: Any) -> Any:
    """As JSON has it. A missing value of pandas is null; a decimal and a date are text, which is exact."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError("infinity cannot be written as JSON")
        return None if math.isnan(value) else float(value)
    if isinstance(value, int):
        return int(value)
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return plain_value(value.tolist())
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")
