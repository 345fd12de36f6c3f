"""Data sets as `datasets` saves them to disk, and files that are made to harm."""

import datetime
import io
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, List, Value

from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import hugging_face, registry
from annotation.imports.formats.base import GivenLabel, Problem, Row
from annotation.imports.formats.detect import detect_in
from annotation.imports.formats.registry import IMPORTERS
from testbed.factories import make_image, make_project
from tests.annotation.imports.test_importers import count_of, make_zip, read
from tests.annotation.imports.test_imports import counts, import_file, result, storage, store

__all__ = ["storage"]

FEATURES = Features({
    "text": Value("string"),
    "label": ClassLabel(names=["neg", "pos"]),
    "n": Value("int64"),
    "x": Value("float32"),
    "tags": List(ClassLabel(names=["a", "b"])),
    "meta": {"k": Value("string"), "v": Value("int32")},
    "spans": List({"t": Value("string"), "l": ClassLabel(names=["P", "Q"])}),
    "day": Value("date32"),
})  # fmt: skip
ROWS = [
    {
        "text": "héllo\n😀 עברית",
        "label": 1,
        "n": 2**60 + 1,
        "x": 0.1,
        "tags": [0, 1],
        "meta": {"k": "z", "v": 1},
        "spans": [{"t": "q", "l": 1}],
        "day": datetime.date(2020, 1, 2),
    },
    {"text": "second", "label": -1, "n": None, "x": None, "tags": [], "meta": None, "spans": [], "day": None},
]


def zipped(folder: Path, root: str = "") -> bytes:
    return make_zip({
        root + path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    })  # fmt: skip


def saved(data: Dataset | DatasetDict, folder: Path, **options: Any) -> bytes:
    data.save_to_disk(folder, **options)
    return zipped(folder)


def rows(name: str, content: bytes, **options: int) -> list[Row]:
    found = read(name, content, **options)
    assert all(isinstance(row, Row) for row in found), found
    return [row for row in found if isinstance(row, Row)]


@pytest.fixture
def plain(tmp_path: Path) -> bytes:
    return saved(Dataset.from_list(ROWS, features=FEATURES), tmp_path / "d")


class TestTables:
    def test_values_keep_their_types_and_classes_their_names(self, plain: bytes) -> None:
        assert detect_in(io.BytesIO(plain), "x.zip", IMPORTERS.values()) == "hf_dataset"
        first, second = rows("hf_dataset", plain)
        assert first.columns == {
            "text": "héllo\n😀 עברית", "label": "pos", "n": str(2**60 + 1), "x": "0.1", "tags": '["a", "b"]',
            "meta": '{"k": "z", "v": 1}', "spans": '[{"t": "q", "l": "Q"}]', "day": "2020-01-02",
        }  # fmt: skip
        assert first.typed == {
            "n": 2**60 + 1, "x": 0.1, "tags": ["a", "b"], "meta": {"k": "z", "v": 1},
            "spans": [{"t": "q", "l": "Q"}],
        }  # fmt: skip
        assert second.typed == {
            "label": None, "n": None, "x": None, "tags": [], "meta": None, "spans": [], "day": None,
        }  # fmt: skip
        assert (second.where, second.name) == ("row 2", "data.x:2")

    def test_splits_in_their_order_name_their_rows(self, tmp_path: Path) -> None:
        data = Dataset.from_dict({"text": [f"{n}" for n in range(5)]})
        both = DatasetDict({"train": data, "test": data.select([0, 1])})
        content = saved(both, tmp_path / "d", max_shard_size=20)
        assert sum(name.endswith(".arrow") for name in zipfile.ZipFile(io.BytesIO(content)).namelist()) > 2
        found = rows("hf_dataset", content)
        assert [(row.where, row.name, row.columns["split"]) for row in found][4:6] == [
            ("train, row 5", "data.x:train:5", "train"),
            ("test, row 1", "data.x:test:1", "test"),
        ]
        assert [row.columns["text"] for row in found] == ["0", "1", "2", "3", "4", "0", "1"]
        assert rows("hf_dataset", content, skip=4) == found[4:]
        assert count_of(registry.get("hf_dataset"), io.BytesIO(content), "x") == 7

    def test_the_folder_may_lie_in_the_archive_with_what_a_mac_adds(self, tmp_path: Path) -> None:
        Dataset.from_dict({"text": ["a"]}).save_to_disk(tmp_path / "d")
        content = zipped(tmp_path / "d", "my data/")
        with zipfile.ZipFile(io.BytesIO(content), "a"):
            pass
        assert [row.columns for row in rows("hf_dataset", content)] == [{"text": "a"}]

    def test_what_argilla_makes_has_given_labels(self, tmp_path: Path) -> None:
        data = Dataset.from_list([
            {
                "id": "1",
                "text": "x",
                "label.suggestion": "pos",
                "label.suggestion.score": 0.5,
                "label.responses": ["neg", "pos", "pos"],
                "label.responses.users": ["u1", "u2", "u3"],
                "label.responses.status": ["submitted", "draft", "submitted"],
            }
        ])  # fmt: skip
        (row,) = rows("hf_dataset", saved(data, tmp_path / "d"))
        assert row.labels == (
            GivenLabel("neg", annotator="u1", tool="Argilla"),
            GivenLabel("pos", annotator="u3", tool="Argilla"),
        )

    @pytest.mark.django_db
    def test_items_keep_what_was_no_text(self, plain: bytes) -> None:
        project = make_project()
        job = import_file(project, store(project, plain, "d.zip"), ColumnMapping(text_column="text"))
        assert counts(job) == result(added=2)
        first = project.items.order_by("position")[0]
        assert first.typed["meta"] == {"k": "z", "v": 1}
        assert (first.data["label"], first.data["n"]) == ("pos", str(2**60 + 1))


class TestImages:
    def test_one_column_of_images_makes_items_of_them(self, tmp_path: Path) -> None:
        features = Features({"image": Image(), "label": ClassLabel(names=["cat", "dog"])})
        data = Dataset.from_list(
            [
                {"image": {"bytes": make_image(1), "path": "a/1.png"}, "label": 1},
                {"image": None, "label": 0},
                {"image": {"bytes": b"no image", "path": None}, "label": 0},
            ],
            features=features,
        )
        content = saved(data, tmp_path / "d")
        assert detect_in(io.BytesIO(content), "x.zip", IMPORTERS.values()) == "hf_images"
        first, absent, broken = read("hf_images", content)
        assert isinstance(first, Row)
        assert first.image is not None
        assert (first.columns, first.image.media_type) == (
            {"label": "dog", "file_name": "1.png"},
            "image/png",
        )
        assert isinstance(absent, Problem)
        assert "not in the data set" in absent.message
        assert isinstance(broken, Problem)
        with pytest.raises(InputError, match="column 'image' holds Image"):
            read("hf_dataset", content)

    def test_images_may_come_without_another_column(self, tmp_path: Path) -> None:
        data = Dataset.from_list(
            [{"image": {"bytes": make_image(1), "path": "1.png"}}], features=Features({"image": Image()})
        )
        (row,) = rows("hf_images", saved(data, tmp_path / "d"))
        assert row.columns == {"file_name": "1.png"}


def stream(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return buffer.getvalue()


def data_set(content: bytes, **more: bytes) -> bytes:
    return make_zip({
        "state.json": b'{"_data_files": [{"filename": "data.arrow"}]}',
        "dataset_info.json": b'{"features": {}}',
        "data.arrow": content,
        **more,
    })  # fmt: skip


class TestRefusals:
    def test_what_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        table = pa.table({"text": ["a"], "raw": [b"\xff"]})
        with pytest.raises(InputError, match="'raw' holds values of the type binary"):
            read("hf_dataset", data_set(stream(table)))
        views = pa.array([["a"]], pa.list_(pa.string_view()))
        with pytest.raises(InputError, match="'text' holds values"):
            read("hf_dataset", data_set(stream(pa.table({"text": views}))))

    def test_compressed_streams_are_not_unpacked(self) -> None:
        table = pa.table({"text": ["x" * 50_000_000]})
        content = data_set(stream(table, compression="zstd"))
        assert len(content) < 100_000
        with pytest.raises(InputError, match="files are compressed"):
            read("hf_dataset", content)
        codes = pa.table({"text": pa.array(["x" * 1_000_000] * 3).dictionary_encode()})
        with pytest.raises(InputError, match="files are compressed"):
            read("hf_dataset", data_set(stream(codes, compression="lz4")))

    def test_lengths_that_are_forged(self) -> None:
        good = stream(pa.table({"text": ["a", "b"]}))
        for size in (2**31 - 1, -5, 16 * 1024**2 + 1):
            forged = good[:4] + struct.pack("<i", size) + good[8:]
            with pytest.raises(InputError, match="takes more than"):
                read("hf_dataset", data_set(forged))
        for place in range(8, len(good) - 8):
            forged = bytearray(good)
            forged[place] ^= 0xFF
            try:
                found = read("hf_dataset", data_set(bytes(forged)))
            except InputError:
                continue
            assert len(found) <= 2

    def test_many_values_that_take_no_room(self) -> None:
        """A list of a thousand million nothings has no bytes but the two ends of the list."""
        kind = pa.list_(pa.null())
        ends = pa.py_buffer(struct.pack("<ii", 0, 10**9))
        column = pa.Array.from_buffers(kind, 1, [None, ends], children=[pa.nulls(10**9)])
        with pytest.raises(InputError, match="lists with 1,000,000,000 values"):
            read("hf_dataset", data_set(stream(pa.table({"text": ["a"], "l": column}))))

    def test_rows_that_take_no_room(self, settings) -> None:
        """A thousand million rows of nothing are half a kilobyte."""
        nothing = data_set(stream(pa.table({"text": pa.nulls(10**9)})))
        rows = registry.get("hf_dataset").records(io.BytesIO(nothing), "x")
        with pytest.raises(InputError, match="more than 5,000,000 rows"):
            next(rows)
        settings.HYPAC_MAX_IMPORT_ROWS = 10**12
        rows = registry.get("hf_dataset").records(io.BytesIO(nothing), "x")
        assert [row.columns for row, _ in zip(rows, range(2_500), strict=False)] == [{"text": ""}] * 2_500  # type: ignore[union-attr]
        with pytest.raises(InputError, match="no columns"):
            read("hf_dataset", data_set(stream(pa.table({}))))

    def test_without_rows_it_is_still_known_for_what_it_is(self, tmp_path: Path) -> None:
        content = saved(Dataset.from_dict({"text": []}), tmp_path / "d")
        assert not any(name.endswith(".arrow") for name in zipfile.ZipFile(io.BytesIO(content)).namelist())
        assert detect_in(io.BytesIO(content), "x.zip", IMPORTERS.values()) == "hf_dataset"
        with pytest.raises(InputError, match="The data set has no rows"):
            read("hf_dataset", content)

    def test_a_text_that_the_file_has_once_does_not_fill_the_memory(self) -> None:
        codes = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 100_000]))
        inner = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 100_000]))
        lists = pa.ListArray.from_arrays(pa.array([0, 1000], pa.int32()), inner)
        before = pa.total_allocated_bytes()
        for number, row in enumerate(
            registry.get("hf_dataset").records(io.BytesIO(data_set(stream(pa.table({"text": codes})))), "x")
        ):
            assert isinstance(row, Row)
            assert pa.total_allocated_bytes() - before < 200 * 1024**2
            if number == 400:
                break
        (row,) = read("hf_dataset", data_set(stream(pa.table({"text": lists}))))
        assert isinstance(row, Problem)
        assert "too long" in row.message

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"dataset_info.json": b"[" * 100_000}, "cannot be read: dataset_info.json"),
            ({"state.json": b"{}"}, "no rows"),
            ({"state.json": b'{"_data_files": [{"filename": "../../etc/passwd"}]}'}, "is missing"),
            ({"state.json": b'{"_indices_files": [{"filename": "i"}]}'}, "flatten_indices"),
            ({"other/state.json": b"{}"}, "several data sets"),
            ({"data.arrow": b"ARROW1\0\0 a file and no stream"}, "no Arrow stream"),
            ({"data.arrow": b""}, "damaged"),
        ],
    )
    def test_folders_that_hold_no_data_set(self, files: dict[str, bytes], message: str) -> None:
        content = data_set(stream(pa.table({"text": ["a"]})), **files)
        with pytest.raises(InputError, match=message):
            count_of(registry.get("hf_dataset"), io.BytesIO(content), "x")

    def test_a_class_that_there_is_not_leaves_out_its_row(self) -> None:
        info = b'{"features": {"label": {"names": ["a"], "_type": "ClassLabel"}}}'
        content = data_set(
            stream(pa.table({"text": ["a", "b"], "label": [0, 5]})), **{"dataset_info.json": info}
        )
        good, bad = read("hf_dataset", content)
        assert isinstance(good, Row)
        assert isinstance(bad, Problem)
        assert "there is no class 5" in bad.message

    def test_long_rows_are_left_out(self, settings: Any) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 10
        table = pa.table({"text": ["a", "b", "c"], "l": [["x"], ["y" * 200_000], ["z"]]})
        found = read("hf_dataset", data_set(stream(table)))
        assert [type(row) for row in found] == [Row, Problem, Row]


def test_batches_of_a_stream_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hugging_face, "MOST_BATCH", 2_000)
    table = pa.table({"text": ["x" * 100] * 100})
    assert len(read("hf_dataset", data_set(stream_in_batches(table, 5)))) == 100
    with pytest.raises(InputError, match="takes more than"):
        read("hf_dataset", data_set(stream_in_batches(table, 50)))


def test_what_takes_little_in_the_archive_has_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of text that is packed to a hundredth little is unpacked at once; images take as much there."""
    monkeypatch.setattr(hugging_face, "MOST_PACKED_BATCH", 20_000)
    texts = pa.table({"text": ["x" * 1_000] * 100})
    assert len(read("hf_dataset", data_set(stream_in_batches(texts, 10)))) == 100
    packed = io.BytesIO()
    plain = zipfile.ZipFile(io.BytesIO(data_set(stream(texts))))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in plain.namelist():
            archive.writestr(name, plain.read(name))
    with pytest.raises(InputError, match="takes more than 20,000 bytes"):
        read("hf_dataset", packed.getvalue())
    chance = random.Random(5)
    others = pa.table({"text": [chance.randbytes(500).hex() for _ in range(100)]})
    assert len(read("hf_dataset", data_set(stream(others)))) == 100


def stream_in_batches(table: pa.Table, rows: int) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return buffer.getvalue()
