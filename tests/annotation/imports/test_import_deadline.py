"""Files that were made to keep a reader busy without giving a row: each ends at the deadline, or before."""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.errors import InputError
from annotation.imports.allowance import Deadline, DeadlineFile
from annotation.imports.formats import hugging_face, parquet, parquet_pages, registry
from annotation.imports.formats.label_studio import prediction_values
from annotation.imports.limits import ImportLimitError
from annotation.imports.reading import reading
from annotation.models import Project
from testbed.factories import make_project
from tests.annotation.imports.test_import_hugging_face import data_set, stream
from tests.annotation.imports.test_import_parquet import table
from tests.annotation.imports.test_importers import make_zip
from tests.annotation.imports.test_imports import storage, store

__all__ = ["storage"]

SECONDS = 60
MIN = b'{"id":1,"annotator":1,"annotation_id":1,"lead_time":1}'
TABLE = pa.table({"text": ["a"]})


@pytest.fixture
def project() -> Project:
    return make_project()


class Clock:
    """A second passes each time that somebody looks."""

    def __init__(self) -> None:
        self.now = 0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("annotation.imports.allowance.time", found)
    return found


def blank_lines() -> bytes:
    return gzip.compress(b"text,b\n1,2\n" + b"\n" * 8_000_000, 1)


def zipped(content: bytes) -> bytes:
    return make_zip({"data.csv": content}, compression=zipfile.ZIP_DEFLATED)


def empty_batches() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, TABLE.schema) as writer:
        for _ in range(200):
            writer.write_batch(pa.record_batch({"text": pa.array([], pa.string())}))
        writer.write_table(TABLE)
    return data_set(out.getvalue())


def no_streams() -> bytes:
    """Files without a row, and one behind them that has one."""
    nothing = stream(TABLE.slice(0, 0))
    files = {f"{number}.arrow": nothing for number in range(200)}
    listed = [{"filename": name} for name in [*files, "data.arrow"]]
    return make_zip({
        "state.json": json.dumps({"_data_files": listed}), "dataset_info.json": b"{}",
        **files, "data.arrow": stream(TABLE),
    })  # fmt: skip


SLOW: dict[str, tuple[str, Callable[[], bytes]]] = {
    "blank.csv.gz": ("csv", blank_lines),
    "blank.jsonl.gz": ("jsonl", lambda: gzip.compress(b'{"text":"a"}\n' + b"\n" * 8_000_000, 1)),
    "blank.csv.zip": ("zip_file", lambda: zipped(b"text,b\n1,2\n" + b"\n" * 8_000_000)),
    "blank.csv": ("csv", lambda: b"text,b\n1,2\n" + b"\n" * 8_000_000),
    "min.json": ("label_studio", lambda: b"[" + b",".join([MIN] * 3_000) + b"]"),
    "blank.json": ("json", lambda: b"[" + b" " * 8_000_000 + b'{"text":"a"}]'),
    "batches.zip": ("hf_dataset", empty_batches),
    "streams.zip": ("hf_dataset", no_streams),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", SLOW)
class TestWhatGivesNoRow:
    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch) -> None:
        monkeypatch.setattr("annotation.imports.allowance.BLOCK", 1024)

    def test_ends_while_somebody_waits(self, project, clock, monkeypatch, name) -> None:
        monkeypatch.setattr("annotation.imports.allowance.REQUEST_SECONDS", 3)
        importer, content = SLOW[name]
        stored = store(project, content(), name)
        with (
            reading(stored, waiting=True) as opened,
            pytest.raises(ImportLimitError, match="more than 3 seconds"),
        ):
            next(opened.records(registry.get(importer), skip=1), None)
        assert clock.now < 20

    def test_ends_an_import(self, project, clock, settings, name) -> None:
        settings.HYPAC_MAX_IMPORT_SECONDS = 5
        importer, content = SLOW[name]
        with (
            reading(store(project, content(), name)) as opened,
            pytest.raises(ImportLimitError, match="more than 5 seconds"),
        ):
            opened.count(registry.get(importer))
        assert clock.now < 20


def test_what_is_in_the_buffer_is_not_read_for_ever(clock) -> None:
    file = DeadlineFile(io.BytesIO(b"x"), Deadline(SECONDS, SECONDS), "x")
    assert file.read(1) == b"x"
    file.seek(0)
    clock.now = SECONDS
    with pytest.raises(ImportLimitError):
        file.read(1)


class Forged:
    """A Parquet file made of its parts, in Thrift's compact protocol."""

    def __init__(self) -> None:
        self.raw, self.last = b"", 0

    @staticmethod
    def varint(number: int) -> bytes:
        out = b""
        while number > 127:
            out, number = out + bytes([number & 127 | 128]), number >> 7
        return out + bytes([number])

    def field(self, number: int, kind: int, raw: bytes) -> "Forged":
        self.raw += bytes([(number - self.last) << 4 | kind]) + raw
        self.last = number
        return self

    def numbers(self, kind: int, **values: int) -> "Forged":
        for name, value in values.items():
            self.field(int(name[1:]), kind, self.varint(value << 1))
        return self

    def several(self, number: int, kind: int, items: list[bytes]) -> "Forged":
        size = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind])
        return self.field(
            number, 9, size + (self.varint(len(items)) if len(items) > 14 else b"") + b"".join(items)
        )

    def text(self, number: int, words: bytes) -> "Forged":
        return self.field(number, 8, self.varint(len(words)) + words)

    def end(self) -> bytes:
        return self.raw + b"\0"


def one_chain(groups: int, pages: int, *, size: int = 0, apart: int = 0) -> bytes:
    """Many groups of rows with the same pages, of one value; each group `apart` behind the last."""
    content = Forged().numbers(5, _1=1, _2=0, _3=3, _4=3).end()
    page = Forged().numbers(5, _1=0, _2=size, _3=size).field(5, 12, content).end() + b"\0" * size
    listed = []
    for group in range(groups):
        meta = Forged().numbers(5, _1=6).several(2, 5, [b"\0"]).several(3, 8, [b"\x04text"])
        meta.numbers(5, _4=0).numbers(6, _5=pages, _6=1, _7=1, _9=4 + group * apart * len(page))
        chunk = Forged().numbers(6, _2=4).field(3, 12, meta.end()).end()
        listed.append(Forged().several(1, 12, [chunk]).numbers(6, _2=1, _3=1).end())
    root = Forged().text(4, b"schema").numbers(5, _5=1).end()
    leaf = Forged().numbers(5, _1=6, _3=0).text(4, b"text").numbers(5, _6=0).end()
    end = Forged().numbers(5, _1=1).several(2, 12, [root, leaf]).numbers(6, _3=groups)
    footer = end.several(4, 12, listed).end()
    return b"PAR1" + page * pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


class TestForgedParquet:
    @pytest.fixture
    def heads(self, monkeypatch) -> list[int]:
        """One for each head of a page that is read."""
        found: list[int] = []
        page = parquet_pages._page
        monkeypatch.setattr(parquet_pages, "_page", lambda file: found.append(1) or page(file))
        return found

    @pytest.mark.parametrize("options", [{}, {"size": 5}, {"size": 5, "apart": 1}])
    def test_no_page_is_looked_at_for_two_groups(self, heads, options) -> None:
        content = one_chain(20, 100, **options)
        with pytest.raises(InputError, match=r"same pages|overlap|no room"):
            list(registry.get("parquet").measure(io.BytesIO(content), "x"))
        assert len(heads) <= 100

    def test_a_page_with_values_takes_room(self, heads) -> None:
        with pytest.raises(InputError, match="no room"):
            list(registry.get("parquet").measure(io.BytesIO(one_chain(1, 100)), "x"))
        assert len(heads) == 1

    def test_heads_are_looked_at_as_long_as_there_is_time(self, heads, clock) -> None:
        file = DeadlineFile(io.BytesIO(one_chain(1, 5_000, size=5)), Deadline(2_000, 2_000), "x")
        with pytest.raises(ImportLimitError, match="more than 2000 seconds"):
            list(registry.get("parquet").measure(file, "x"))
        assert len(heads) < 1_000

    def test_there_are_so_many_groups_at_most(self, monkeypatch) -> None:
        monkeypatch.setattr(parquet, "MOST_GROUPS", 3)
        with pytest.raises(InputError, match="groups of rows"):
            list(registry.get("parquet").measure(io.BytesIO(table({"t": ["a"] * 4}, row_group_size=1)), "x"))

    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    @pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
    def test_pages_of_next_to_nothing_are_read(self, version, compression) -> None:
        schema = pa.schema([
            pa.field("text", pa.string(), nullable=False), pa.field("empty", pa.string()),
            pa.field("none", pa.int32()), pa.field("null", pa.null()), pa.field("truth", pa.bool_()),
            pa.field("sure", pa.bool_(), nullable=False), pa.field("listed", pa.list_(pa.int32())),
        ])  # fmt: skip
        rows = [
            {"text": "", "empty": "", "none": None, "null": None, "truth": True, "sure": False, "listed": []}
        ] * 25
        for options in (
            {},
            {"use_dictionary": False},
            {"use_dictionary": False, "column_encoding": {"sure": "RLE"}},
        ):
            out = io.BytesIO()
            pq.write_table(
                pa.Table.from_pylist(rows, schema), out, row_group_size=10, data_page_size=1,
                write_batch_size=2, data_page_version=version, compression=compression, **options,
            )  # fmt: skip
            assert len(list(registry.get("parquet").records(out, "x"))) == 25


class TestForgedDataSets:
    def described(self, splits: object, files: object) -> bytes:
        return make_zip({
            "dataset_dict.json": json.dumps({"splits": splits}),
            "a/state.json": json.dumps({"_data_files": files}),
            "a/dataset_info.json": b"{}",
            "a/x": stream(TABLE),
        })  # fmt: skip

    @pytest.mark.parametrize(
        ("splits", "files", "message"),
        [
            (["a"] * 3, [{"filename": "x"}], "'a/' twice"),
            (["a"] * 800, [{"filename": "x"}], "at most 4"),
            (["a"], [{"filename": "x"}] * 3, "'a/x' twice"),
            (["a"], [{"filename": "x"}] * 20_000, "at most 4"),
            (5, [{"filename": "x"}], "no list"),
            (["a"], "x", "no list"),
            (["a"], [5], "is missing"),
        ],
    )
    def test_splits_and_files_are_named_once(self, monkeypatch, splits, files, message) -> None:
        calls: list[str] = []
        described = hugging_face.described
        monkeypatch.setattr(
            hugging_face,
            "described",
            lambda archive, paths, path: calls.append(path) or described(archive, paths, path),
        )
        with pytest.raises(InputError, match=message):
            list(registry.get("hf_dataset").measure(io.BytesIO(self.described(splits, files)), "x"))
        assert len(calls) <= 2

    def test_one_of_each_is_read(self) -> None:
        content = self.described(["a"], [{"filename": "x"}])
        assert sum(rows for rows, _size in registry.get("hf_dataset").measure(io.BytesIO(content), "x")) == 1

    def test_a_split_has_so_many_files_at_most(self, monkeypatch) -> None:
        monkeypatch.setattr(hugging_face, "MOST_DATA_FILES", 100)
        with pytest.raises(InputError, match="at most 100"):
            list(registry.get("hf_dataset").measure(io.BytesIO(no_streams()), "x"))


def test_the_names_of_versions_are_gone_through_once() -> None:
    """However many a task has: each is compared with all before it."""
    looked = []

    class Names(set[str]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            looked.append(1)
            return super().__iter__()

    said = [{"type": "choices", "from_name": "a", "value": {"choices": ["b"]}}]
    task = {"predictions": [{"model_version": f"m{n}", "result": said} for n in range(100)]}
    assert len(prediction_values(task, Names({"text"}))) == 200
    assert len(looked) <= 1


@pytest.mark.parametrize(
    ("format_name", "entries"),
    [("zip_texts", {"a.txt": "a", "b.txt": "b"}), ("zip_images", {"a.png": b"", "b.png": b""})],
)
def test_an_archive_ends_between_two_of_its_files(format_name: str, entries: dict[str, bytes | str]) -> None:
    file = DeadlineFile(io.BytesIO(make_zip(entries)), Deadline(float("inf"), 60), "archive.zip")
    records = registry.get(format_name).records(file, "archive.zip")
    next(records)
    file.until(Deadline(0, 60))
    with pytest.raises(ImportLimitError, match=r"archive.zip: Reading the file takes more than 60 seconds"):
        list(records)
