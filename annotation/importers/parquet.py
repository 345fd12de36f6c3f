"""Parquet: a table by columns, read in groups of rows."""

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.importers.arrow import MOST_BYTES, check_types, features_of, is_text, records_of
from annotation.importers.base import Record, check_columns, check_row_count
from annotation.importers.parquet_pages import count_values

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# Rows that are unpacked together.
BATCH = 1_000
# In this encoding a text can be as long as the one before and take no room in the file.
SHARING = "DELTA_BYTE_ARRAY"
BATCH_OF_SHARING = 10
BUFFER = 1024**2
# A table that unpacks to so many times its size is made to fill a memory.
MAX_RATIO = 200
# Values in the lists of one group of rows, where one row may have them all: a row is unpacked at once.
# A group may hold more, up to the second number, if they take a byte each in the file: what they fill is then
# in proportion to what was uploaded.
MOST_LISTED = 20_000_000
MOST_LISTED_OF_LARGE = 200_000_000
ALWAYS_ALLOWED_BYTES = 10 * 1024**2


class Parquet:
    """Values become text: text as it is, numbers and times as they are written, nothing empty. Numbers that
    a double holds, truth values and nothing are kept as they are beside their text.
    """

    name = "parquet"
    title = gettext_noop("Parquet table")
    holds_images = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        table = _opened(file, file_name)
        features = features_of((table.schema_arrow.metadata or {}).get(b"huggingface"))
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        number = skip
        for batch in _batches(table, file, skip):
            yield from records_of(batch, features, first=number + 1, name=file_name, longest=longest)
            number += len(batch)

    def count(self, file: IO[bytes], file_name: str) -> int:
        return sum(map(len, _batches(_opened(file, file_name), file, 0)))


def _opened(file: IO[bytes], file_name: str) -> "pq.ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = file.seek(0, 2)
    try:
        file.seek(0)
        table = pq.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)
        schema = table.schema_arrow
        if listed := [path for path in _paths(table) if path not in schema.names]:
            # Of texts in lists each is unpacked once, and rows are made of a few at a time.
            table = pq.ParquetFile(file, read_dictionary=listed, buffer_size=BUFFER, pre_buffer=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(error, file_name) from None
    check_columns(list(schema.names), file_name)
    check_types(schema, file_name)
    rows = table.metadata.num_rows
    if not rows:
        raise InputError(_("The file has a header but no rows."), where=file_name)
    check_row_count(rows, file_name)
    _check_nested(table, file, file_name)
    groups = map(table.metadata.row_group, range(table.num_row_groups))
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > max(MAX_RATIO * size, ALWAYS_ALLOWED_BYTES):
        words = _(
            "The file of %(size)s bytes says that it unpacks to %(unpacked)s bytes, more than %(max_ratio)s "
            "times its size; it is not read."
        )
        values = {"size": f"{size:,}", "unpacked": f"{unpacked:,}", "max_ratio": MAX_RATIO}
        raise InputError(words % values, where=file_name)
    return table


def _paths(table: "pq.ParquetFile") -> list[str]:
    return [table.schema.column(number).path for number in range(len(table.schema))]


def _check_nested(table: "pq.ParquetFile", file: IO[bytes], where: str) -> None:
    """Values in lists take next to no room where they are the same: it is their number that counts, in all
    columns together.
    """
    size = file.seek(0, 2)
    names = set(table.schema_arrow.names)
    in_lists = [table.schema.column(number).max_repetition_level > 0 for number in range(len(table.schema))]
    for group in range(table.num_row_groups):
        found = table.metadata.row_group(group)
        columns = [found.column(number) for number in range(found.num_columns)]
        packed = sum(
            column.total_compressed_size for number, column in enumerate(columns) if in_lists[number]
        )
        most = max(MOST_LISTED, min(packed, size, MOST_LISTED_OF_LARGE))
        listed = 0
        for number, column in enumerate(columns):
            if column.path_in_schema in names and not in_lists[number]:
                continue
            if in_lists[number]:
                listed += column.num_values
            if listed > most:
                words = _(
                    "The lists in the column %(name)r are too large to be read. Write the file in smaller "
                    "groups of rows (row_group_size), or the lists as text."
                )
                raise InputError(words % {"name": column.path_in_schema}, where=where)
            if SHARING in column.encodings:
                words = _("The lists in the column %(name)r are too large to be read. Write them as text.")
                raise InputError(words % {"name": column.path_in_schema}, where=where)
            if in_lists[number]:
                try:
                    values = count_values(file, column)
                except (ValueError, OSError) as error:
                    raise _damaged(error, where) from None
                if values > column.num_values:
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
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(error, f"row {start + 1}") from None


def _together(table: "pq.ParquetFile", file: IO[bytes], group: int) -> int:
    """How many rows of the group to unpack at once. A text that is in many rows may be in the file once, in
    the column's dictionary: a few bytes could become more than any memory holds.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found = table.metadata.row_group(group)
    columns = [found.column(number) for number in range(found.num_columns)]
    if any(SHARING in column.encodings for column in columns):
        return BATCH_OF_SHARING
    names = [column.path_in_schema for column in columns if column.has_dictionary_page]
    top = set(table.schema_arrow.names)
    texts = [name for name in names if name in top and is_text(table.schema_arrow.field(name).type)]
    if not texts:
        return BATCH
    with_dictionaries = pq.ParquetFile(file, read_dictionary=texts, buffer_size=BUFFER, pre_buffer=False)
    first = next(with_dictionaries.iter_batches(1, row_groups=[group], columns=texts))
    longest = sum(pc.max(pc.binary_length(column.dictionary)).as_py() or 0 for column in first.columns)
    return min(max(MOST_BYTES // max(longest, 1), 1), BATCH)


def _damaged(error: Any, where: str) -> InputError:
    words = _("The Parquet file is damaged and cannot be read (%(error)s).")
    return InputError(words % {"error": str(error).partition("\n")[0][:300]}, where=where)
