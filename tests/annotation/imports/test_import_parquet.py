"""Parquet tables, and texts that come compressed: as rows, with their places, and what is refused."""

import datetime
import gzip
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import arrow, parquet, parquet_pages, registry
from annotation.imports.formats.base import Problem, Row
from annotation.imports.formats.detect import detect
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.upload import preview
from annotation.models import Project
from testbed.factories import make_image, make_project
from tests.annotation.imports.test_importers import count_of, make_zip, read
from tests.annotation.imports.test_imports import BY_TEXT, CSV, counts, import_file, result, storage, store

pytestmark = pytest.mark.costly

__all__ = ["storage"]


def table(columns: dict[str, Any], **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


def _varint(number: int) -> bytes:
    """Of four bytes."""
    return bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14 & 127 | 128, number >> 21])


def texts(content: bytes, **options: int) -> list[dict[str, str]]:
    return [row.columns for row in read("parquet", content, **options) if isinstance(row, Row)]


class TestParquet:
    def test_groups_without_rows_are_passed_over(self) -> None:
        rows = pa.table({"text": ["a", "b"]})
        buffer = io.BytesIO()
        with pq.ParquetWriter(buffer, rows.schema) as writer:
            for part in (rows.slice(0, 0), rows, rows.slice(0, 0), rows):
                writer.write_table(part)
        assert [row["text"] for row in texts(buffer.getvalue())] == ["a", "b", "a", "b"]
        assert [row["text"] for row in texts(buffer.getvalue(), skip=3)] == ["b"]
        assert count_of(registry.get("parquet"), buffer, "rows.parquet") == 4

    def test_values_become_text_as_they_are_written(self) -> None:
        moment = datetime.datetime(2020, 1, 2, 3, 4, 5)
        content = table({
            "id": [1, 2],
            "text": ["=1+1", None],
            "kind": pa.array(["x", "é\n"]).dictionary_encode(),
            "large": pa.array(["q", ""], pa.large_string()),
            "f": [0.1, None],
            "small": pa.array([0.1, 1e22], pa.float32()),
            "truth": [True, False],
            "price": pa.array([Decimal("1.50"), None]),
            "day": [datetime.date(2020, 1, 2), None],
            "moment": [moment, None],
            "none": pa.nulls(2),
        })  # fmt: skip
        first, second = read("parquet", content)
        assert first == Row("row 1", "data.x:1", {
            "id": "1", "text": "=1+1", "kind": "x", "large": "q", "f": "0.1", "small": "0.1", "truth": "true",
            "price": "1.50", "day": "2020-01-02", "moment": "2020-01-02 03:04:05.000000", "none": "",
        }, typed={"id": 1, "f": 0.1, "small": 0.1, "truth": True, "none": None})  # fmt: skip
        assert isinstance(second, Row)
        assert (second.columns["text"], second.columns["kind"], second.columns["f"]) == ("", "é\n", "")

    def test_what_json_has_no_number_for_is_the_same_word_in_columns_and_in_lists(self) -> None:
        odd = [float("nan"), float("inf"), float("-inf")]
        content = table({
            "text": ["a", "b", "c"],
            "f": odd,
            "small": pa.array(odd, pa.float32()),
            "list": [[number, 0.5] for number in odd],
        })  # fmt: skip
        for row, word in zip(read("parquet", content), ["NaN", "Infinity", "-Infinity"], strict=True):
            assert isinstance(row, Row)
            assert (row.columns["f"], row.columns["small"]) == (word, word)
            assert row.typed == {"list": [word, 0.5]}

    @pytest.mark.parametrize("skip", [0, 1, 6, 7, 13, 19, 20])
    def test_skipping_passes_over_groups_of_rows(self, monkeypatch, skip: int) -> None:
        monkeypatch.setattr(parquet, "BATCH", 3)
        content = table({"n": [str(n) for n in range(20)]}, row_group_size=7)
        whole = read("parquet", content)
        assert [row.name for row in whole] == [f"data.x:{n}" for n in range(1, 21)]
        assert read("parquet", content, skip=skip) == whole[skip:]
        assert count_of(registry.get("parquet"), io.BytesIO(content), "x") == 20

    def test_what_is_no_table_of_texts_is_refused(self) -> None:
        for columns, message in (
            ({"a": [b"\xff"]}, "'a' holds values of the type binary"),
            ({"a": pa.array([], pa.string())}, "no rows"),
            ({" ": ["x"]}, "Column 1 has no name"),
        ):
            with pytest.raises(InputError, match=message):
                read("parquet", table(columns))

    def test_lists_and_structures_are_json_beside_their_text(self) -> None:
        content = table({
            "a": [["x", None], None],
            "s": [{"b": 1, "c": ["é"]}, {"b": None, "c": []}],
            "m": pa.array([[("k", 1.5)], []], pa.map_(pa.string(), pa.float64())),
            "f": pa.array([[0.1, float("nan")], []], pa.list_(pa.float32())),
            "model.label": ["cat", "dog"],
        })  # fmt: skip
        first, second = read("parquet", content)
        assert isinstance(first, Row)
        assert first.typed == {
            "a": ["x", None],
            "s": {"b": 1, "c": ["é"]},
            "m": {"k": 1.5},
            "f": [0.1, "NaN"],
        }
        assert first.columns["s"] == '{"b": 1, "c": ["é"]}'
        assert isinstance(second, Row)
        assert second.typed == {"a": None, "s": {"b": None, "c": []}, "m": {}, "f": []}
        assert (second.columns["a"], second.columns["model.label"]) == ("", "dog")

    def test_a_text_that_lists_have_once_does_not_fill_the_memory(self) -> None:
        """A row of 1,000 times the same 10 kB."""
        column = [["x" * 10_000] * 1_000, ["y"]]
        content = table({"a": column}, compression="zstd")
        assert len(content) < 200_000
        before = pa.total_allocated_bytes()
        del column
        records = registry.get("parquet").records(io.BytesIO(content), "x")
        long = next(records)
        assert isinstance(long, Problem)
        assert pa.total_allocated_bytes() - before < 5 * 1024**2
        assert isinstance(next(records), Row)

    def test_values_in_lists_count_in_all_columns_together(self) -> None:
        """Of two columns that are each small enough; together half a gigabyte of memory."""
        zeros = pa.array([0] * 1_000).take(pa.array(np.zeros(12_000_000, np.int32)))
        lists = pa.ListArray.from_arrays(pa.array([0, 6_000_000, 12_000_000], pa.int32()), zeros)
        one = table({"text": ["a", "b"], "one": lists}, compression="zstd")
        both = table({"two.list.element": ["a", "b"], "one": lists, "two": lists}, compression="zstd")
        assert len(both) < 10_000
        assert [type(record) for record in read("parquet", one)] == [Problem, Problem]
        before = pa.default_memory_pool().max_memory()
        del zeros, lists
        with pytest.raises(InputError, match=r"lists in the column 'two\.list\.element' are too large"):
            read("parquet", both)
        assert pa.default_memory_pool().max_memory() == before

    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    @pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "none"}])
    def test_the_pages_of_lists_are_counted(self, version: str, options: dict[str, Any]) -> None:
        rows = 5_000
        lists = [[f"{n} {k} é" for k in range(n % 7)] if n % 11 else None for n in range(rows)]
        numbers = [[n + 0.5] * (n % 3) for n in range(rows)]
        deep = [{"a": [{"b": [n, None]}]} for n in range(rows)]
        content = table(
            {"text": list(map(str, range(rows))), "l": lists, "f": numbers, "d": deep},
            data_page_version=version,
            data_page_size=500,
            write_page_checksum=True,
            row_group_size=3_000,
            **options,
        )
        found = pq.ParquetFile(io.BytesIO(content)).metadata
        columns = [found.row_group(group).column(number) for group in (0, 1) for number in range(4)]
        counted = [parquet_pages.pages_of(io.BytesIO(content), column).values for column in columns]
        assert counted == [column.num_values for column in columns]
        (first, *_, last) = texts(content)
        assert (first["f"], last["l"], last["d"]) == ("[]", '["4999 0 é"]', '{"a": [{"b": [4999, null]}]}')

    def test_numbers_of_values_that_are_forged(self) -> None:
        """What is said at the end of the file is not what the head of the only page says."""
        rows, said = 3_000_000, 1_500_000
        ends = pa.array([0, rows, rows], pa.int32())
        lists = pa.ListArray.from_arrays(ends, pa.array(np.zeros(rows, np.int64)))
        content = table({"l": lists}, compression="zstd", write_statistics=False)
        true, forged = (_varint(2 * number) for number in (rows + 1, said))
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        wrong = content[:end] + content[end:].replace(true, forged, 1)
        assert pq.ParquetFile(io.BytesIO(wrong)).metadata.row_group(0).column(0).num_values == said
        with pytest.raises(InputError, match="pages hold more than it says"):
            read("parquet", wrong)

    def test_heads_of_pages_that_are_forged(self) -> None:
        content = table({"l": [["a", "b"], ["c"]] * 50}, compression="none")
        end = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).total_byte_size + 4
        for place in range(4, end):
            for flip in (0xFF, 0x01, 0x80):
                wrong = bytearray(content)
                wrong[place] ^= flip
                try:
                    found = read("parquet", bytes(wrong))
                except InputError:
                    continue
                assert len(found) <= 100

    def test_many_rows_with_a_value_or_two_are_read(self, monkeypatch) -> None:
        monkeypatch.setattr(parquet, "MOST_LISTED", 1_500)
        rows = {"l": [["x"], ["y", "z"], [], None] * 250, "s": [{"a": 1, "b": 2}] * 1_000}
        assert len(read("parquet", table(rows))) == 1_000
        with pytest.raises(InputError, match="too large"):
            read("parquet", table({"l": [["x"], ["y", "z"]] * 501}))

    def test_lists_that_take_their_room_in_the_file_may_be_long(self, monkeypatch) -> None:
        monkeypatch.setattr(parquet, "MOST_LISTED", 1_000)
        monkeypatch.setattr(parquet, "MOST_LISTED_OF_LARGE", 6_000)
        numbers = np.random.default_rng(7).standard_normal(7_000).astype(np.float32)

        def lists(values: Any, rows: int) -> dict[str, Any]:
            ends = pa.array(range(0, 100 * rows + 1, 100), pa.int32())
            return {"l": pa.ListArray.from_arrays(ends, pa.array(values[: 100 * rows]))}

        assert len(read("parquet", table(lists(numbers, 60)))) == 60
        same = np.zeros(7_000, np.float32)
        for values, rows in ((numbers, 61), (same, 60)):
            with pytest.raises(InputError, match=r"smaller groups of rows \(row_group_size\)"):
                read("parquet", table(lists(values, rows)))
            assert len(read("parquet", table(lists(values, rows), row_group_size=10))) == rows

    def test_a_damaged_file_says_where(self) -> None:
        good = table({"a": [f"text {n}" for n in range(5_000)]}, row_group_size=1_000, compression="zstd")
        for cut in (good[:-20], b"PAR1 and then nothing"):
            with pytest.raises(InputError, match=r"cut off.*Export or upload it again, whole") as raised:
                read("parquet", cut)
            assert "magic" not in str(raised.value)
        broken = bytearray(good)
        middle = len(broken) // 2
        broken[middle : middle + 200] = b"\xff" * 200
        with pytest.raises(InputError, match="damaged") as raised:
            count_of(registry.get("parquet"), io.BytesIO(bytes(broken)), "x")
        assert raised.value.where in ("row 1001", "row 2001", "row 3001")

    def test_texts_that_are_no_text_are_refused(self) -> None:
        bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
        with pytest.raises(InputError, match="damaged"):
            read("parquet", table({"a": bad}))
        (nul,) = read("parquet", table({"a": ["x\0"]}))
        assert isinstance(nul, Problem)
        assert "NUL" in nul.message

    def test_caps(self, settings) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 10
        assert [type(row) for row in read("parquet", table({"a": ["x" * 10, "x" * 11]}))] == [Row, Problem]
        before, long, after = read("parquet", table({"a": ["x", "y" * 100_000, "z"]}))
        assert isinstance(long, Problem)
        assert (long.where, "too long" in long.message) == ("row 2", True)
        assert isinstance(before, Row)
        assert after == Row("row 3", "data.x:3", {"a": "z"})
        settings.HYPAC_MAX_IMPORT_ROWS = 2
        with pytest.raises(InputError, match="more than 2 rows"):
            read("parquet", table({"a": ["1", "2", "3"]}))
        with pytest.raises(InputError, match="501 columns"):
            read("parquet", table({f"c{n}": ["x"] for n in range(501)}))

    def test_a_text_that_the_file_has_once_does_not_fill_the_memory(self, monkeypatch) -> None:
        """100 kB of file, 100,000 rows of 100 kB each: unpacked at once, a batch would be 100 MB."""
        column = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000), pa.array(["x" * 100_000]))
        content = table({"a": column}, compression="zstd", store_schema=False)
        assert len(content) < 200_000
        monkeypatch.setattr(parquet, "MOST_BYTES", 1024**2)
        monkeypatch.setattr(arrow, "MOST_BYTES", 1024**2)
        pa.default_memory_pool().release_unused()
        before = pa.total_allocated_bytes()
        most = 0
        for number, row in enumerate(registry.get("parquet").records(io.BytesIO(content), "x")):
            assert isinstance(row, Row)
            assert len(row.columns["a"]) == 100_000
            most = max(most, pa.total_allocated_bytes() - before)
            if number == 50:
                break
        assert most < 10 * 1024**2

    def test_one_that_unpacks_to_too_much_is_not_read(self) -> None:
        content = table({"a": ["x" * 20_000_000]}, compression="zstd", use_dictionary=False)
        with pytest.raises(InputError, match="times its size"):
            read("parquet", content)


@pytest.mark.django_db
class TestImport:
    @pytest.fixture
    def project(self) -> Project:
        return make_project()

    def test_a_table_becomes_items_once(self, project) -> None:
        content = table({"id": ["a", "b"], "text": ["first", "second"], "conf": [0.25, None]})
        stored = store(project, content, "x.parquet")
        seen = preview(stored_file=stored)
        assert (seen.format, seen.columns, seen.suggestion) == ("parquet", ["id", "text", "conf"], BY_TEXT)
        assert counts(import_file(project, stored, BY_TEXT)) == result(2)
        assert project.items.get(external_id="b").data == {"id": "b", "text": "second", "conf": ""}
        assert counts(import_file(project, stored, BY_TEXT)) == result(0, already_there=2)

    @pytest.mark.parametrize(
        ("name", "content", "format_name"),
        [
            ("x.csv.gz", CSV, "csv_comma"),
            ("x.tsv.gz", "a\n1\n", "tsv"),
            ("x.gz", '{"id": "a", "text": "é"}\n' * 3, "jsonl"),
            ("x.gz", '[{"id": "a", "text": "x"}]', "json"),
        ],
    )
    def test_compressed_texts_are_read_as_they_are(self, project, name, content, format_name) -> None:
        stored = store(project, gzip.compress(content.encode()), name)
        assert detect(stored, IMPORTERS.values()) == format_name
        packed = read(format_name, gzip.compress(content.encode()))
        assert packed == read(format_name, content)
        assert count_of(registry.get(format_name), io.BytesIO(gzip.compress(content.encode())), "x") == len(
            packed
        )

    def test_a_compressed_import_twice_adds_nothing(self, project) -> None:
        stored = store(project, gzip.compress(CSV.encode()), "x.csv.gz")
        assert counts(import_file(project, stored, BY_TEXT)) == result(3)
        assert counts(import_file(project, store(project, CSV), BY_TEXT)) == result(0, already_there=3)

    def test_compressed_twice(self, project) -> None:
        for content in (make_zip({"a.png": make_image()}), table({"a": ["x"]})):
            with pytest.raises(InputError, match="compressed twice"):
                detect(store(project, gzip.compress(content), "x.gz"), IMPORTERS.values())

    def test_a_compressed_file_that_is_cut_off_adds_nothing(self, project) -> None:
        whole = gzip.compress(("id,text\n" + "".join(f"{n},text {n * n}\n" for n in range(50_000))).encode())
        job = import_file(
            project, store(project, whole[: len(whole) // 2], "x.csv.gz"), ColumnMapping("id", "text")
        )
        assert (job.state, project.items.count()) == ("failed", 0)
        assert "damaged or cut off" in job.error

    def test_one_that_unpacks_to_too_much_is_not_read_on(self, project) -> None:
        bomb = gzip.compress(b"text\n" + (b"a" * 1_000 + b"\n") * 20_000)
        with pytest.raises(InputError, match="200 times its size"):
            count_of(registry.get("lines"), io.BytesIO(bomb), "x")
