"""Files that people upload: every importer of the registry, how a format and an encoding are told, images."""

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

from annotation.errors import InputError
from annotation.imports import encodings
from annotation.imports.allowance import Deadline, DeadlineFile
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.base import Importer, Record, Row
from annotation.imports.formats.detect import detect_in
from annotation.imports.formats.images import checked_image, thumbnail
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.limits import ImportLimitError
from annotation.imports.reading import Reading
from annotation.imports.rows import candidate_of
from annotation.models import StoredFile
from annotation.words import Words, for_reader
from testbed.fuzz import corpus
from testbed.fuzz.mutations import zipped
from testbed.fuzz.storable import assert_storable
from testbed.fuzz.target import Target

NAME = "data.x"
MOST_ROWS = 500
SEEDS: dict[str, Callable[[], Sequence[bytes]]] = {
    "csv": lambda: [*corpus.tables("csv"), b"sep=;\na;b\n1;2\n"],
    "tsv": lambda: corpus.tables("tsv"),
    "jsonl": lambda: corpus.tables("jsonl"),
    "json": lambda: corpus.tables("json"),
    "doccano": lambda: [corpus.lines(corpus.DOCCANO, corpus.DOCCANO), *corpus.tables("doccano")],
    "manifest": lambda: [corpus.lines(corpus.GROUND_TRUTH), *corpus.tables("manifest")],
    "label_studio": lambda: [
        corpus.lines([corpus.LS_TASK, corpus.LS_TASK]),
        corpus.lines([corpus.LS_MIN, corpus.LS_MIN]),
        *corpus.tables("label_studio"),
    ],
    "lines": lambda: [b"one\ntwo\n\nthree", "é\n".encode("utf-16")],
    "parquet": lambda: [corpus.one_of("parquet")],
    "excel": corpus.workbooks,
    "zip_images": lambda: [zipped({f"a/{n}.png": one for n, one in enumerate(corpus.images())})],
    "zip_texts": lambda: [zipped({"a.txt": b"one", "b/c.md": "é".encode("utf-16"), "README.md": b"about"})],
    "zip_file": lambda: [
        zipped({"data.csv": corpus.one_of("csv")}),
        zipped({"data.parquet": corpus.one_of("parquet")}),
        zipped({"data.jsonl.gz": corpus.tables("jsonl")[1]}),
    ],
    "hf_dataset": lambda: [zipped(corpus.delivered("huggingface"))],
    "argilla": lambda: [corpus.argilla()],
}
# Readers that are as another one but for a parameter, and are tried on its files beside their own.
ALIKE = {"csv": ("csv_comma", "csv_semicolon"), "hf_dataset": ("hf_images",)}
WORDS: dict[str, tuple[bytes, ...]] = {
    "label_studio": (b'"annotations"', b'"choices"', b'"rating"', b'"was_cancelled":true'),
    "manifest": (b'"class-map"', b'-metadata"', b'"human-annotated"', b'"source-ref"'),
    "excel": (b'<row r="1048576">', b'<c r="XFD1048576"', b't="e"', b"&#0;", b't="s"><v>99999999</v>'),
}
COSTLY = {"excel": 6, "hf_dataset": 40, "parquet": 40}


def read_import(names: Sequence[str], data: bytes) -> None:
    """In each format, as a preview and an import read it."""
    refused: InputError | None = None
    for name in names:
        try:
            _read_as(IMPORTERS[name], data)
        except InputError as error:
            refused = error
    if refused:
        raise refused


def _read_as(importer: Importer, data: bytes) -> None:
    stored = StoredFile(original_name=NAME, size=len(data))

    def opened() -> Reading:
        return Reading(io.BytesIO(data), stored, encoding="", waiting=True, spent=0)

    counted, refusal = -1, ""
    try:
        counted = opened().count(importer)
    except ImportLimitError:
        counted = -2
    except InputError as error:
        refusal = str(error)
    refused: InputError | None = None
    found: list[Record] = []
    try:
        found = list(islice(opened().records(importer), MOST_ROWS))
    except ImportLimitError:
        raise
    except InputError as error:
        refused = error
    if refused:
        assert counted < 0, f"counted as {counted} records, and then refused: {refused}"
        raise refused
    for record in found:
        _look_at(record)
    if len(found) == MOST_ROWS or counted == -2:
        return
    assert not refusal, f"refused when counted, and then read: {refusal}"
    assert counted == len(found), f"{counted} records counted, {len(found)} read"
    skip = len(found) // 2
    again = list(opened().records(importer, skip=skip))
    assert again == found[skip:], "the rows behind those that are passed over are others"


def _look_at(record: Record) -> None:
    assert_storable(record.where)
    if not isinstance(record, Row):
        assert_storable(for_reader(record.message))
        return
    assert record.name
    assert_storable([record.columns, record.typed])
    for label in record.labels:
        assert_storable([label.annotator, label.created_at, label.tool, str(label.problem)])
        assert label.lead_time_ms is None or 0 <= label.lead_time_ms < 2**63
    shown = tuple(record.columns)[:2]
    for mapping in (ColumnMapping(), ColumnMapping.showing(shown, id_column=shown[-1] if shown else "")):
        made = candidate_of(1, record, mapping)
        if isinstance(made, tuple):
            assert_storable(
                for_reader(made.message) if isinstance(made.message, Words) else str(made.message)
            )


def detected(data: bytes) -> None:
    """Which format and which encoding a file has: what a preview asks first."""
    timed = DeadlineFile(io.BytesIO(data), Deadline.of_a_look(), NAME)
    if (sample := encodings._sample(timed, most=encodings.LOOKED_AT)) is not None:
        for offer in encodings._offers(sample):
            assert_storable(list(offer.words))
            as_such = encodings.as_encoded(io.BytesIO(data), offer.name, Deadline.of_a_look(), NAME)
            with suppress(InputError):
                as_such.read(1000)
    assert detect_in(timed, NAME, IMPORTERS.values()) in IMPORTERS


def image(data: bytes) -> None:
    checked = checked_image(data)
    assert checked.media_type.startswith("image/")
    thumbnail(checked)


def _everything() -> list[bytes]:
    return [seed for seeds in SEEDS.values() for seed in seeds()]


TARGETS = [
    *(
        Target(
            f"import-{name}",
            partial(read_import, (name, *ALIKE.get(name, ()))),
            seeds,
            (InputError,),
            words=WORDS.get(name, ()),
            runs=COSTLY.get(name, 60),
        )
        for name, seeds in SEEDS.items()
    ),
    Target("detect", detected, _everything, (InputError,)),
    Target("image", image, corpus.images, (InputError,), megabytes=512),
]
