"""Parquet: a table by columns, read in groups of rows."""

import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.allowance import check_time
from annotation.imports.faults import fault
from annotation.imports.formats.arrow import check_types, features_of, is_text, measured, records_of
from annotation.imports.formats.base import Format, Record, check_columns, check_row_count
from annotation.imports.formats.parquet_pages import Pages, pages_of, start_of
from annotation.imports.limits import (
    MOST_BYTES,
    MOST_GROUPS,
    MOST_LISTED,
    MOST_LISTED_OF_LARGE,
    MOST_PAGE_BYTES,
    MOST_SHARING_BYTES,
    most_unpacked,
    unpacks_to_too_much,
    uploaded_bytes,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# Rows that are unpacked together.
BATCH = 1_000
# In this encoding a text can be as long as the one before and take no room in the file.
SHARING = "DELTA_BYTE_ARRAY"
BATCH_OF_SHARING = 10
BUFFER = 1024**2


class Parquet(Format):
    """Values become text: text as it is, numbers and times as they are written, nothing empty. Numbers that
    a double holds, truth values and nothing are kept as they are beside their text.
    """

    name = "parquet"
    endings = (".parquet",)
    begins_with = (b"PAR1",)
    title = gettext_noop("Parquet table")
    holds_images = False
    holds_labels = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        table = _opened(file, file_name)
        features = features_of((table.schema_arrow.metadata or {}).get(b"huggingface"))
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        number = skip
        for batch in _batches(table, file, skip):
            yield from records_of(batch, features, first=number + 1, name=file_name, longest=longest)
            number += len(batch)

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        return map(measured, _batches(_opened(file, file_name), file, 0))


def _opened(file: IO[bytes], file_name: str) -> "pq.ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file.seek(0)
        table = pq.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)
        schema = table.schema_arrow
        if listed := [path for path in _paths(table) if path not in schema.names]:
            # Of texts in lists each is unpacked once, and rows are made of a few at a time.
            table = pq.ParquetFile(file, read_dictionary=listed, buffer_size=BUFFER, pre_buffer=False)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(error, file_name) from None
    check_columns(list(schema.names), file_name)
    check_types(schema, file_name)
    rows = table.metadata.num_rows
    if not rows:
        raise fault(gettext_noop("The file has a header but no rows."), where=file_name)
    check_row_count(rows, file_name)
    _check_pages(table, file, file_name)
    return table


def _paths(table: "pq.ParquetFile") -> list[str]:
    return [table.schema.column(number).path for number in range(len(table.schema))]


def _check_pages(table: "pq.ParquetFile", file: IO[bytes], where: str) -> None:
    """Look at the heads of all pages before one is unpacked: what the file says at its end may be forged."""
    uploaded, unpacked = uploaded_bytes(file), 0
    if table.num_row_groups > MOST_GROUPS:
        words = gettext_noop(
            "There are more than %(most)s groups of rows. Write larger ones (row_group_size)."
        )
        raise fault(words, where=where, most=f"{MOST_GROUPS:,}")
    try:
        ends = _ends(table, file)
    except ValueError as error:
        raise _damaged(error, where) from None
    for group in range(table.num_row_groups):
        check_time(file)
        columns = _columns(table, group)
        try:
            pages = [pages_of(file, column, ends.get(start_of(column), 0)) for column in columns]
        except (ValueError, OSError) as error:
            raise _damaged(error, where) from None
        for column, of in zip(columns, pages, strict=True):
            unpacked += of.unpacked
            shared = of.unpacked if SHARING in column.encodings else 0
            if of.largest > MOST_PAGE_BYTES or shared > MOST_SHARING_BYTES:
                words = gettext_noop(
                    "The column %(name)r unpacks to more at once than is read. Write the file in smaller "
                    "groups of rows (row_group_size)."
                )
                raise fault(words, where=where, name=column.path_in_schema)
        if unpacked > most_unpacked(uploaded):
            raise unpacks_to_too_much(uploaded, unpacked, where)
        _check_nested(table, columns, pages, uploaded, where)


def _columns(table: "pq.ParquetFile", group: int) -> "list[pq.ColumnChunkMetaData]":
    found = table.metadata.row_group(group)
    return [found.column(number) for number in range(found.num_columns)]


def _ends(table: "pq.ParquetFile", file: IO[bytes]) -> dict[int, int]:
    """Where the pages of a column of a group end at the latest, by where they start: where the next ones do.
    So no part of the file is read for two of them. Raises ValueError where two start at the same place.
    """
    starts: list[int] = []
    for group in range(table.num_row_groups):
        check_time(file)
        starts += [start_of(column) for column in _columns(table, group) if column.num_values]
    starts.sort()
    ends = dict(zip(starts, [*starts[1:], file.seek(0, os.SEEK_END)], strict=False))
    if len(ends) < len(starts):
        raise ValueError("two columns have the same pages")
    return ends


def _check_nested(
    table: "pq.ParquetFile",
    columns: "list[pq.ColumnChunkMetaData]",
    pages: list[Pages],
    uploaded: int,
    where: str,
) -> None:
    """Values in lists take next to no room where they are the same: it is their number that counts, in all
    columns of a group of rows together.
    """
    names = set(table.schema_arrow.names)
    in_lists = [table.schema.column(number).max_repetition_level > 0 for number in range(len(table.schema))]
    packed = sum(column.total_compressed_size for number, column in enumerate(columns) if in_lists[number])
    most = max(MOST_LISTED, min(packed, uploaded, MOST_LISTED_OF_LARGE))
    listed = 0
    for number, column in enumerate(columns):
        if column.path_in_schema in names and not in_lists[number]:
            continue
        if in_lists[number]:
            listed += column.num_values
        if listed > most:
            words = gettext_noop(
                "The lists in the column %(name)r are too large to be read. Write the file in smaller "
                "groups of rows (row_group_size), or the lists as text."
            )
            raise fault(words, where=where, name=column.path_in_schema)
        if SHARING in column.encodings:
            words = gettext_noop(
                "The lists in the column %(name)r are too large to be read. Write them as text."
            )
            raise fault(words, where=where, name=column.path_in_schema)
        if in_lists[number] and pages[number].values > column.num_values:
            raise _damaged("its pages hold more than it says", where)


def _batches(table: "pq.ParquetFile", file: IO[bytes], skip: int) -> "Iterator[pa.RecordBatch]":
    """The rows after the first `skip`, of which whole groups of rows are passed over.

    Raises InputError where the file is damaged, or a text is no UTF-8.
    """
    import pyarrow as pa

    start = 0
    for group in range(table.num_row_groups):
        rows = table.metadata.row_group(group).num_rows
        if not rows or start + rows <= skip:  # a writer may close a group that has none
            start += rows
            continue
        try:
            for batch in table.iter_batches(_together(table, file, group), row_groups=[group]):
                batch.validate(full=True)
                end = start + len(batch)
                if end > skip:
                    yield batch.slice(max(skip - start, 0))
                start = end
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(error, f"row {start + 1}") from None


def _together(table: "pq.ParquetFile", file: IO[bytes], group: int) -> int:
    """How many rows of the group to unpack at once. A text that is in many rows may be in the file once, in
    the column's dictionary: a few bytes could become more than any memory holds.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = _columns(table, group)
    if sharing := [column for column in columns if SHARING in column.encodings]:
        # One of them may be as long as all that the pages of its column hold.
        longest = sum(pages_of(file, column).unpacked for column in sharing)
        return min(max(MOST_BYTES // max(longest, 1), 1), BATCH_OF_SHARING)
    names = [column.path_in_schema for column in columns if column.has_dictionary_page]
    top = set(table.schema_arrow.names)
    texts = [name for name in names if name in top and is_text(table.schema_arrow.field(name).type)]
    if not texts:
        return BATCH
    with_dictionaries = pq.ParquetFile(file, read_dictionary=texts, buffer_size=BUFFER, pre_buffer=False)
    first = next(with_dictionaries.iter_batches(1, row_groups=[group], columns=texts), None)
    if first is None:
        raise ValueError("a group of rows has none of those that it names")
    longest = sum(pc.max(pc.binary_length(column.dictionary)).as_py() or 0 for column in first.columns)
    return min(max(MOST_BYTES // max(longest, 1), 1), BATCH)


def _damaged(error: Any, where: str) -> InputError:
    if "magic bytes" in str(error):  # which end every whole one
        words = gettext_noop(
            "The Parquet file is cut off: its end is missing. Export or upload it again, whole."
        )
        return fault(words, where=where)
    words = gettext_noop(
        "The Parquet file is damaged and cannot be read (%(error)s). Export or upload it again, whole."
    )
    return fault(words, where=where, error=str(error).partition("\n")[0][:300])
