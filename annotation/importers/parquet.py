"""Parquet: a table by columns, read in groups of rows."""

from collections.abc import Iterator
from itertools import repeat
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.importers.base import Problem, Record, check_columns, check_row_count, row_or_problem
from annotation.importers.text import longest_row

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# Rows that are unpacked together, and the bytes of text that they may have then.
BATCH = 1_000
MOST_BYTES = 32 * 1024**2
# In this encoding a text can be as long as the one before and take no room in the file.
SHARING = "DELTA_BYTE_ARRAY"
BATCH_OF_SHARING = 10
BUFFER = 1024**2
# A table that unpacks to so many times its size is made to fill a memory.
MAX_RATIO = 200
ALWAYS_ALLOWED_BYTES = 10 * 1024**2


class Parquet:
    """Values become text: text as it is, numbers and times as they are written, nothing empty."""

    name = "parquet"
    title = "Parquet table"
    holds_images = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        table = _opened(file, file_name)
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        number = skip
        for batch in _batches(table, file, skip):
            for columns in _rows(batch):
                number += 1
                where = f"row {number}"
                if columns is None:
                    yield Problem(where, _("This row is too long. Raise HYPAC_MAX_CELL_CHARACTERS."))
                else:
                    yield row_or_problem(where, f"{file_name}:{number}", columns, longest)

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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(error, file_name) from None
    check_columns(list(schema.names), file_name)
    for field in schema:
        if not (_is_text(field.type) or _has_text(field.type)):
            words = _(
                "The column %(name)r holds values of the type %(type)s, which are neither text nor numbers "
                "nor times. Write it as text, or leave it out; images are read from a zip archive."
            )
            raise InputError(words % {"name": field.name, "type": field.type}, where=file_name)
    rows = table.metadata.num_rows
    if not rows:
        raise InputError(_("The file has a header but no rows."), where=file_name)
    check_row_count(rows, file_name)
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
    texts = [name for name in names if _is_text(table.schema_arrow.field(name).type)]
    if not texts:
        return BATCH
    with_dictionaries = pq.ParquetFile(file, read_dictionary=texts, buffer_size=BUFFER, pre_buffer=False)
    first = next(with_dictionaries.iter_batches(1, row_groups=[group], columns=texts))
    longest = sum(pc.max(pc.binary_length(column.dictionary)).as_py() or 0 for column in first.columns)
    return min(max(MOST_BYTES // max(longest, 1), 1), BATCH)


def _rows(batch: "pa.RecordBatch") -> Iterator[dict[str, str] | None]:
    """None for a row that is longer than any that is read of another format."""
    import pyarrow.compute as pc

    sizes = _sizes(batch)
    too_long = pc.greater(sizes, longest_row())
    largest = pc.max(pc.if_else(too_long, 0, sizes)).as_py()
    together = min(max(MOST_BYTES // max(largest, 1), 1), len(batch))
    for start in range(0, len(batch), together):
        leave_out = too_long.slice(start, together)
        columns = [_texts(column, leave_out) for column in batch.slice(start, together).columns]
        names = batch.schema.names
        for out, values in zip(leave_out.to_pylist(), zip(*columns, strict=True), strict=True):
            yield None if out else dict(zip(names, values, strict=True))


def _sizes(batch: "pa.RecordBatch") -> "pa.Int64Array":
    """Bytes of text in each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = pa.array(repeat(0, len(batch)), pa.int64())
    for column in map(_plain, batch.columns):
        if pa.types.is_large_string(column.type):
            total = pc.add(total, pc.fill_null(pc.binary_length(column), 0))
    return total


def _texts(column: "pa.Array", leave_out: "pa.BooleanArray") -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.cast(_plain(column), pa.large_string())
    if pc.any(leave_out).as_py():
        column = pc.if_else(leave_out, None, column)
    return [value or "" for value in column.to_pylist()]


def _plain(column: "pa.Array") -> "pa.Array":
    """A column of text as one kind of text, any other as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_text(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        column = pc.take(column.dictionary, column.indices)
    return pc.cast(column, pa.large_string())


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _has_text(kind: "pa.DataType") -> bool:
    """Whether a value is written in one way, and short."""
    import pyarrow as pa

    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(numbers or pa.types.is_boolean(kind) or pa.types.is_temporal(kind) or pa.types.is_null(kind))


def _damaged(error: Any, where: str) -> InputError:
    words = _("The Parquet file is damaged and cannot be read (%(error)s).")
    return InputError(words % {"error": str(error).partition("\n")[0][:300]}, where=where)
