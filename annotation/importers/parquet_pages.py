"""How many values the pages of a column of a Parquet file hold, by their own heads.

What the file says of the column at its end may be forged, and a page is unpacked by what its head says: a few
bytes can be any number of values that are the same. The heads are structs of Thrift's compact protocol.
"""

import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.parquet as pq

STOP, BYTE, INT32, DOUBLE, BINARY, STRUCT = 0, 3, 5, 7, 8, 12
TRUTHS, NUMBERS = (1, 2), (4, 5, 6)
# Fields of a head, and those of them that say of a page of this type what is in it.
TYPE, SIZE = 1, 3
CONTENT = {0: 5, 3: 8}
MOST_DEPTH = 4
# Of pages that have none: a column has one dictionary.
MOST_WITHOUT_VALUES = 100


def count_values(file: IO[bytes], column: "pq.ColumnChunkMetaData") -> int:
    """Values in the pages that are read for the column of a group of rows: up to the number that the file
    says, by whole pages. Raises ValueError where they cannot be read.
    """
    first = column.dictionary_page_offset or column.data_page_offset
    file.seek(min(first, column.data_page_offset))
    count = empty = 0
    while count < column.num_values:
        values, size = _page(file)
        count += values
        empty += not values
        if empty > MOST_WITHOUT_VALUES:
            raise ValueError("there are pages without values")
        file.seek(size, os.SEEK_CUR)
    return count


def _page(file: IO[bytes]) -> tuple[int, int]:
    """Values in a page, and the bytes that it takes behind its head."""
    found: dict[int, int] = {}
    for field, kind in _fields(file):
        if field in (TYPE, SIZE) and kind == INT32:
            found[field] = _int32(file)
        elif field in CONTENT.values() and kind == STRUCT:
            for inner, of in _fields(file):
                if inner == 1 and of == INT32:
                    found[field] = _int32(file)
                else:
                    _skip(file, of)
        else:
            _skip(file, kind)
    if TYPE not in found or SIZE not in found:
        raise ValueError("a page has no readable head")
    content = CONTENT.get(found[TYPE])
    if content and content not in found:
        raise ValueError("a page does not say what it holds")
    return found[content] if content else 0, found[SIZE]


def _fields(file: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Number and type of each field of a struct; what it holds is read before the next one is asked for."""
    number = 0
    while (head := _byte(file)) & 15 != STOP:
        number = number + (head >> 4) if head >> 4 else _signed(file)
        yield number, head & 15


def _skip(file: IO[bytes], kind: int, depth: int = 0) -> None:
    if kind in NUMBERS:
        _varint(file)
    elif kind in (BYTE, DOUBLE, BINARY):
        file.seek({BYTE: 1, DOUBLE: 8}.get(kind) or _varint(file), os.SEEK_CUR)
    elif kind == STRUCT and depth < MOST_DEPTH:
        for _number, of in _fields(file):
            _skip(file, of, depth + 1)
    elif kind not in TRUTHS:
        raise ValueError("a page has no readable head")


def _int32(file: IO[bytes]) -> int:
    number = _signed(file)
    if not 0 <= number < 2**31:
        raise ValueError("a page has no readable head")
    return number


def _signed(file: IO[bytes]) -> int:
    number = _varint(file)
    return (number >> 1) ^ -(number & 1)


def _varint(file: IO[bytes]) -> int:
    number = 0
    for shift in range(0, 64, 7):
        byte = _byte(file)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise ValueError("a page has no readable head")


def _byte(file: IO[bytes]) -> int:
    read = file.read(1)
    if not read:
        raise ValueError("a page is not there")
    return read[0]
