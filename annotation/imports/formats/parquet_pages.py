"""What the pages of a column of a Parquet file hold, by their own heads: values, and bytes once unpacked.

What the file says of the column at its end may be forged, and a page is unpacked by what its head says: a few
bytes can be any number of values that are the same. The heads are structs of Thrift's compact protocol.

Why not pyarrow alone, with a limit on memory: web servers look at files, too, and have no such limit. There
552 bytes (400 million zeros in one list) take 4.4 GB before anything can be refused, here nothing. In a
worker limited to 2 GB pyarrow does fail without a crash, after 5 s; but 13 of the 55 tests of Parquet fail
then, most of them attacks: forged numbers are believed, and nobody is told which column to write otherwise.
"""

import math
import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow.parquet as pq

STOP, BYTE, INT32, DOUBLE, BINARY, STRUCT = 0, 3, 5, 7, 8, 12
TRUTHS, NUMBERS = (1, 2), (4, 5, 6)
# Fields of a head, and those of them that say of a page of this type what is in it.
TYPE, UNPACKED, SIZE = 1, 2, 3
CONTENT = {0: 5, 3: 8}
MOST_DEPTH = 4
# Of pages that have none: a column has one dictionary.
MOST_WITHOUT_VALUES = 100


class Pages(NamedTuple):
    """Of a column of one group of rows: how many values there are, how many bytes all pages unpack to, and
    how many the largest does.
    """

    values: int
    unpacked: int
    largest: int


def start_of(column: "pq.ColumnChunkMetaData") -> int:
    """Where in the file the first page is."""
    first = column.dictionary_page_offset or column.data_page_offset
    return int(min(first, column.data_page_offset))


def pages_of(file: IO[bytes], column: "pq.ColumnChunkMetaData", end: float = math.inf) -> Pages:
    """Of the pages that are read for the column of a group of rows: up to the number of values that the file
    says, by whole pages. Raises ValueError where they cannot be read, or go on behind `end`.
    """
    file.seek(start_of(column))
    count = empty = total = largest = 0
    while count < column.num_values:
        values, size, unpacked = _page(file)
        count += values
        total += unpacked
        largest = max(largest, unpacked)
        empty += not values
        if empty > MOST_WITHOUT_VALUES:
            raise ValueError("there are pages without values")
        if values and not size:
            raise ValueError("a page has values, and no room for them")
        if file.seek(size, os.SEEK_CUR) > end:
            raise ValueError("the pages of two columns overlap")
    return Pages(count, total, largest)


def _page(file: IO[bytes]) -> tuple[int, int, int]:
    """Values in a page, the bytes that it takes behind its head, and those that it unpacks to."""
    found: dict[int, int] = {}
    for field, kind in _fields(file):
        if field in (TYPE, UNPACKED, SIZE) and kind == INT32:
            found[field] = _int32(file)
        elif field in CONTENT.values() and kind == STRUCT:
            for inner, of in _fields(file):
                if inner == 1 and of == INT32:
                    found[field] = _int32(file)
                else:
                    _skip(file, of)
        else:
            _skip(file, kind)
    if not {TYPE, UNPACKED, SIZE} <= found.keys():
        raise ValueError("a page has no readable head")
    content = CONTENT.get(found[TYPE])
    if content and content not in found:
        raise ValueError("a page does not say what it holds")
    return found[content] if content else 0, found[SIZE], found[UNPACKED]


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
