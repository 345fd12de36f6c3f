"""Parquet for analysis: one column for each original one, typed where all its cells agree, and then ours with
their types.

`label` is text, or a list of texts where several choices may be given; `p_i` is an exact decimal.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext_lazy as _

from routing.delivery.formats.arrow import Columns
from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.labels.page import DeliveryInfo, Page

if TYPE_CHECKING:
    import pyarrow as pa

# A row group is held until it is written, and ends after so many rows or so many bytes.
GROUP_ROWS = 100_000
GROUP_BYTES = 64 * 1024**2

LIMITS = (
    Limit(
        "mixed",
        _(
            "A column has one type. In one whose cells are of several kinds, objects or whole numbers of "
            "more than 64 bits among them, those that are no text are written as JSON."
        ),
        counted=True,
    ),
    Limit(
        "times",
        _("Dates, times and decimals became text when they were imported, and are text here."),
    ),
    Limit("absent", _("A cell that is null and one that was not there look the same.")),
)


class ParquetWriter(RowWriter):
    file_name: ClassVar[str] = "labels.parquet"
    summary: ClassVar[Any] = _(
        "For analysis with pandas, Polars, DuckDB or Spark: typed columns, every value exact."
    )
    media_type: ClassVar[str] = "application/vnd.apache.parquet"
    limits: ClassVar[tuple[Limit, ...]] = LIMITS
    reads_kinds: ClassVar[bool] = True

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        import pyarrow.parquet as pq

        super().__init__()
        self._columns = Columns(info)
        out = files.open(self.file_name, self.media_type)
        self._writer = pq.ParquetWriter(out, self._columns.schema, compression="zstd")
        self._held: list[pa.RecordBatch] = []

    def write(self, page: Page) -> None:
        self._held.append(self._columns.batch(page))
        rows, size = sum(len(batch) for batch in self._held), sum(batch.nbytes for batch in self._held)
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        self._write_group()
        self._writer.close()
        self.counts["mixed"] = self._columns.as_json

    def _write_group(self) -> None:
        import pyarrow as pa

        if self._held:
            group = pa.Table.from_batches(self._held, self._columns.schema)
            self._writer.write_table(group, row_group_size=len(group))
            self._held.clear()
