"""Parquet for analysis: one column for each original one, as text, and then ours with their types.

`label` is text, or a list of texts where several choices may be given; `p_i` is an exact decimal.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, ClassVar

from routing.delivery.base import ADDED, Page, added_names

if TYPE_CHECKING:
    import pyarrow as pa

# A row group is held until it is written, and ends after so many rows or so many bytes.
GROUP_ROWS = 100_000
GROUP_BYTES = 64 * 1024**2


class ParquetWriter:
    file_name: ClassVar[str] = "labels.parquet"
    media_type: ClassVar[str] = "application/vnd.apache.parquet"

    def __init__(self, out: IO[bytes], columns: Sequence[str], *, several: bool = False) -> None:
        # Not before it is needed: web servers, which write no files, would hold 50 MB more.
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa = pa
        self._columns = columns
        names, types = added_names(columns), added_types(several=several)
        self._schema = pa.schema(
            [
                *((column, pa.string()) for column in columns),
                *((names[name], types[name]) for name in ADDED),
            ]
        )
        self._writer = pq.ParquetWriter(out, self._schema, compression="zstd")
        self._held: list[pa.RecordBatch] = []

    def write(self, page: Page) -> None:
        pa = self._pa
        arrays = [
            pa.array([_text(original.get(column)) for original in page.originals], pa.string())
            for column in self._columns
        ]
        added = self._schema.types[len(self._columns) :]
        arrays += [
            pa.array(_values(name, page.columns[name]), type_)
            for name, type_ in zip(ADDED, added, strict=True)
        ]
        self._held.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        rows, size = sum(len(batch) for batch in self._held), sum(batch.nbytes for batch in self._held)
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        if self._held:
            group = self._pa.Table.from_batches(self._held, self._schema)
            self._writer.write_table(group, row_group_size=len(group))
            self._held.clear()


def added_types(*, several: bool) -> "dict[str, pa.DataType]":
    """The types of our columns. `several`: a label is a list of choices."""
    import pyarrow as pa

    label = pa.list_(pa.string()) if several else pa.string()
    others = {
        "label": label,
        "label_name": label,
        "uncertainty": pa.float64(),
        "p_i": pa.decimal128(9, 8),
        "asked": pa.bool_(),
        "run": pa.int32(),
    }
    return {name: others.get(name, pa.string()) for name in ADDED}


def _values(name: str, values: Sequence[Any]) -> Sequence[Any]:
    if name != "p_i":
        return values
    return [None if value is None else Decimal(value) for value in values]


def _text(value: Any) -> str | None:
    return value if value is None or type(value) is str else json.dumps(value, ensure_ascii=False)
