"""A data set of Hugging Face `datasets`, as its `save_to_disk` writes it: `datasets.load_from_disk` reads the
folder. Arrow streams, their names and the types of the columns; written with pyarrow alone.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext_lazy as _

from annotation.common.files import BLOCK
from routing.delivery.formats.arrow import Columns
from routing.delivery.formats.base import Files, Limit, RowWriter
from routing.delivery.formats.parquet import LIMITS
from routing.labels.page import DeliveryInfo, Page

if TYPE_CHECKING:
    import pyarrow as pa

# A batch ends after so many items, or so much text; which depends on nothing but the items.
BATCH = 1_000
BATCH_CHARACTERS = 8_000_000
SHARD_BYTES = 500 * 1000**2
ARROW = "application/vnd.apache.arrow.stream"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


MACHINE = "machine-generated"
CREATORS = {"person": "other", "expert": "expert-generated"}
"""What the Hub calls who labelled, by our column ``source``: people of one's own are no crowd."""


class HuggingFaceWriter(RowWriter):
    file_name: ClassVar[str] = "dataset/"
    summary: ClassVar[Any] = _(
        "A folder for `datasets.load_from_disk` of Hugging Face: Arrow files, typed columns, a data card."
    )
    media_type: ClassVar[str] = ARROW
    limits: ClassVar[tuple[Limit, ...]] = (
        *LIMITS,
        Limit(
            "classes",
            _("`label` is a number of a ClassLabel, whose names are the keys of the choices in their order."),
        ),
    )
    reads_kinds: ClassVar[bool] = True

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._files, self._info = files, info
        self._columns = Columns(info, classes=list(info.choices))
        self._features = features(self._columns)
        written = json.dumps({"info": {"features": self._features}}, ensure_ascii=False)
        self._schema = self._columns.schema.with_metadata({"huggingface": written})
        self._shards: list[IO[bytes]] = []
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._held: list[Page] = []
        self._rows = self._held_rows = self._characters = 0
        self._labelled_by: set[str] = set()

    def write(self, page: Page) -> None:
        self._labelled_by |= {CREATORS.get(source, MACHINE) for source in page.columns["source"] if source}
        start = 0
        for end, characters in enumerate(_characters(page), 1):
            self._characters += characters
            self._held_rows += 1
            if self._held_rows >= BATCH or self._characters >= BATCH_CHARACTERS:
                self._held.append(page.part(start, end))
                self._write_batch()
                start = end
        if start < len(page):
            self._held.append(page.part(start, len(page)))

    def close(self) -> None:
        self._write_batch()
        if not self._shards:
            self._new_shard()
        self._end_shard()
        names = [f"data-{number:05d}-of-{len(self._shards):05d}.arrow" for number in range(len(self._shards))]
        digest = hashlib.sha256()
        for name, shard in zip(names, self._shards, strict=True):
            shard.seek(0)
            while block := shard.read(BLOCK):
                digest.update(block)
            self._files.add(f"{self.file_name}{name}", shard, ARROW)
        self._small("dataset_info.json", {"features": self._features})
        self._small("state.json", _state(names, digest.hexdigest()[:16]))
        self.headers[f"{self.file_name}README.md"] = self._header()
        self.counts["mixed"] = self._columns.as_json

    def _write_batch(self) -> None:
        import pyarrow as pa

        if not self._held:
            return
        batches = [self._columns.batch(page) for page in self._held]
        table = pa.Table.from_batches(batches, self._columns.schema).combine_chunks()
        if self._stream is None:
            self._new_shard()
        assert self._stream is not None  # noqa: S101 - for mypy
        for batch in table.to_batches():
            self._stream.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        self._rows += self._held_rows
        self._held.clear()
        self._held_rows = self._characters = 0
        if self._shards[-1].tell() >= SHARD_BYTES:
            self._end_shard()

    def _new_shard(self) -> None:
        import pyarrow as pa

        self._shards.append(self._files.unnamed())
        self._stream = pa.ipc.new_stream(self._shards[-1], self._schema)

    def _end_shard(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _small(self, name: str, content: dict[str, Any]) -> None:
        out = self._files.open(f"{self.file_name}{name}", "application/json")
        out.write(json.dumps(content, ensure_ascii=False, indent=2).encode())

    def _header(self) -> str:
        """What the Hub reads of a data set's card."""
        size = next((words for most, words in SIZES if self._rows < most), "n>1M")
        return "\n".join(
            [
                "---",
                f"pretty_name: {json.dumps(self._info.name)}",
                *(["task_categories:\n- text-classification"] if self._info.kind.has_choices else []),
                f"size_categories:\n- {size}",
                *(
                    ["annotations_creators:", *(f"- {by}" for by in sorted(self._labelled_by))]
                    if self._labelled_by
                    else []
                ),
                'configs:\n- config_name: default\n  data_files: "data-*.arrow"',
                "---",
                "",
                "",
            ]
        )


def _characters(page: Page) -> Iterator[int]:
    return (sum(len(cell) for cell in row.values() if type(cell) is str) for row in page.originals)


def _state(names: list[str], fingerprint: str) -> dict[str, Any]:
    return {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def features(columns: Columns) -> dict[str, Any]:
    """The types of the columns as `datasets` writes them down."""
    classes = {columns.label: columns.classes} if columns.classes else {}
    return {field.name: _feature(field.type, classes.get(field.name)) for field in columns.schema}


def _feature(type_: "pa.DataType", classes: list[str] | None) -> dict[str, Any]:
    import pyarrow as pa

    if pa.types.is_list(type_):
        # Read by all versions; newer ones call it List.
        return {"feature": _feature(type_.value_type, classes), "_type": "Sequence"}
    if classes:
        return {"names": classes, "_type": "ClassLabel"}
    named = {"double": "float64", "decimal128(9, 8)": "decimal128(9, 8)"}
    return {"dtype": named.get(str(type_), str(type_)), "_type": "Value"}
