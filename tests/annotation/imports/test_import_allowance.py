"""What one file may produce, whatever its format: files that were made to fill a database or a memory."""

import gzip
import io
import json
import re
import struct
import zipfile
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.errors import InputError
from annotation.imports import job as import_job, limits
from annotation.imports.allowance import Allowance, Deadline
from annotation.imports.check import check_import
from annotation.imports.columns import ColumnMapping
from annotation.imports.format_choice import format_for
from annotation.imports.formats import detect, registry
from annotation.imports.formats.base import Problem, Row
from annotation.imports.limits import ImportLimitError
from annotation.imports.undo import undo_objection
from annotation.imports.upload import preview, start_import
from annotation.jobs import jobs
from annotation.models import Item, Job, Project
from testbed.factories import make_project
from tests.annotation.imports.test_import_excel import changed, workbook
from tests.annotation.imports.test_import_hugging_face import data_set, stream
from tests.annotation.imports.test_import_parquet import table
from tests.annotation.imports.test_importers import make_zip
from tests.annotation.imports.test_imports import import_file, storage, store

pytestmark = pytest.mark.costly

__all__ = ["storage"]

TEXT = ColumnMapping(text_column="text")


@pytest.fixture
def project() -> Project:
    return make_project()


def repeated(text: str, rows: int, **columns: Any) -> pa.Table:
    """A table that has one text, and says of each row that it is that one."""
    codes = pa.array([0] * rows, pa.int32())
    return pa.table({"text": pa.DictionaryArray.from_arrays(codes, pa.array([text])), **columns})


def parquet_bomb(text: str = "x" * 700, rows: int = 1_000_000) -> bytes:
    out = io.BytesIO()
    pq.write_table(repeated(text, rows), out, compression="zstd", row_group_size=rows, store_schema=False)
    return out.getvalue()


def workbook_bomb(text: str, rows: int) -> bytes:
    """Each row is the one string that all cells share."""
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>{n > 1:d}</v></c></row>' for n in range(1, rows + 2))
    start, end = b"<sheetData>", b"</sheetData>"

    def many(sheet: bytes) -> bytes:
        return sheet[: sheet.index(start)] + start + cells.encode() + sheet[sheet.index(end) :]

    shared = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>text</t></si>'
    strings = f"{shared}<si><t>{text}</t></si></sst>".encode()
    book = io.BytesIO(changed(workbook([["text"]]), "xl/worksheets/sheet1.xml", many))
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", strings)
    return book.getvalue()


@pytest.mark.django_db
class TestSmallFilesThatBecomeLarge:
    def bombs(self) -> dict[str, bytes]:
        """Each would be some hundred million characters in the database."""
        wide = ",".join(f"{'c' * 990}{n}" for n in range(500))
        return {
            "rle.parquet": parquet_bomb(),
            "nothing.parquet": table(
                {"text": ["x"] * 300_000, **{f"c{n}": pa.nulls(300_000) for n in range(50)}}
            ),
            "names.csv": (
                "text," + wide[: wide.rindex(",")] + "\n" + ("x" + "," * 499 + "\n") * 900
            ).encode(),
            "shared.xlsx": workbook_bomb("y" * 20_000, 5_000),
            "repeated.zip": data_set(stream(repeated("z" * 10_000, 100_000))),
        }

    @pytest.mark.parametrize(
        "name", ["rle.parquet", "nothing.parquet", "names.csv", "shared.xlsx", "repeated.zip"]
    )
    def test_an_import_of_one_ends_before_anything_is_stored(self, project, name) -> None:
        content = self.bombs()[name]
        assert len(content) < 1_100_000
        job = import_file(project, store(project, content, name), TEXT)
        assert job.state == Job.State.FAILED
        assert "HYPAC_MAX_INPUT_RATIO" in job.error
        assert f"{len(content):,} bytes" in job.error
        assert not Item.objects.exists()
        assert job.attempts == 1

    def test_one_that_grows_behind_its_beginning_stops_there_for_good(self, project, monkeypatch) -> None:
        """Numbers and lists of JSON are stored beside their text, which nothing counts beforehand."""
        monkeypatch.setattr(limits, "ALWAYS_STORED", 50_000)
        monkeypatch.setattr(import_job, "CHUNK_ROWS", 10)
        lines = "".join(json.dumps({"text": f"row {n}"}) + "\n" for n in range(300))
        lines += (json.dumps({"text": "x", "l": ["word"] * 200}) + "\n") * 300
        content = gzip.compress(lines.encode())
        assert limits.most_stored(len(content)) < 500_000
        job = import_file(project, store(project, content, "x.jsonl.gz"), TEXT)
        assert job.state == Job.State.FAILED
        assert job.error.startswith("line ")
        stored = Item.objects.count()
        assert 300 <= stored < 600
        jobs.retry(job=job)
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.FAILED
        assert Item.objects.count() == stored
        assert undo_objection(job) == ""

    def test_the_page_before_an_import_says_so(self, project) -> None:
        stored = store(project, parquet_bomb("x" * 70_000, 5_000), "x.parquet")
        with pytest.raises(ImportLimitError, match="HYPAC_MAX_INPUT_RATIO") as raised:
            check_import(stored_file=stored, mapping=TEXT, format_name="parquet")
        assert raised.value.where.startswith("row ")

    def test_data_that_repeat_themselves_as_data_do_are_imported(self) -> None:
        """Categories and templates, in the smallest form that programs write."""
        rows = [
            {"text": f"Order {n} was late", "state": "open" if n % 3 else "closed"} for n in range(20_000)
        ]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), out, compression="zstd")
        for name, content in {
            "x.parquet": out.getvalue(),
            "x.jsonl.gz": gzip.compress("\n".join(map(json.dumps, rows)).encode()),
        }.items():
            project = make_project()
            job = import_file(project, store(project, content, name), TEXT)
            assert job.result["added"] == 20_000, job.error


class TestArchivesInArchives:
    def read(self, name: str, content: bytes) -> list[Any]:
        file = io.BytesIO(content)
        return list(
            registry.get(detect.detect_in(file, name, registry.IMPORTERS.values())).records(file, name)
        )

    def test_text_that_is_compressed_in_an_archive_is_refused(self) -> None:
        inner = gzip.compress(b"text\n" + b"x\n" * 10)
        for names in ({"data.csv": inner}, {"images/metadata.csv": inner, "images/a.png": b"no"}):
            with pytest.raises(InputError, match="compressed twice"):
                self.read("x.zip", make_zip(names))
        settings = {"a/.argilla/settings.json": b"{}", "a/records.json": gzip.compress(b"[]")}
        with pytest.raises(InputError, match="compressed twice"):
            self.read("x.zip", make_zip(settings))

    def test_an_archive_in_an_archive_is_no_data(self) -> None:
        inner = make_zip({"data.csv": b"text\nx\n"})
        with pytest.raises(InputError, match="holds another archive"):
            self.read("x.zip", make_zip({"inner.zip": inner}))
        with pytest.raises(InputError, match="compressed twice"):
            self.read("x.zip", make_zip({"data.csv": inner}))

    def test_what_lies_in_an_archive_has_the_limits_of_the_archive(self, settings) -> None:
        """A table of zeros in a workbook's or Parquet's own compression, and once more in that of zip."""
        settings.HYPAC_MAX_INPUT_RATIO = 20
        monkey = table({"text": [f"{n}" + "x" * 4_000 for n in range(4_000)]}, compression="snappy")
        assert len(registry_read("parquet", monkey)) == 4_000
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.parquet", monkey)
        assert len(out.getvalue()) < len(monkey) / 4
        with pytest.raises(ImportLimitError, match="unpacks to"):
            self.read("x.zip", out.getvalue())

    def test_text_unpacks_to_no_more_than_the_server_allows_at_all(self, settings) -> None:
        settings.HYPAC_MAX_UNPACKED_BYTES = 100_000
        with pytest.raises(ImportLimitError, match="HYPAC_MAX_UNPACKED_BYTES"):
            self.read("x.csv.gz", gzip.compress(b"text\n" + b"words\n" * 20_000))


def registry_read(name: str, content: bytes) -> list[Any]:
    return list(registry.get(name).records(io.BytesIO(content), "x"))


class TestParquetPages:
    def forged(self, content: bytes, number: int) -> bytes:
        """As if it unpacked to one byte, as its end says, where numbers are varints."""
        zigzag, raw = number << 1, bytearray()
        while zigzag > 127:
            raw.append(zigzag & 127 | 128)
            zigzag >>= 7
        raw.append(zigzag)
        (length,) = struct.unpack("<I", content[-8:-4])
        start = len(content) - 8 - length
        small = bytes([0x82, *[0x80] * (len(raw) - 2), 0x00])
        assert raw in content[start:]
        return content[:start] + content[start:].replace(bytes(raw), small)

    def test_a_file_that_denies_what_it_unpacks_to_is_not_read(self) -> None:
        for options in ({}, {"column_encoding": "DELTA_BYTE_ARRAY"}):
            content = table({"a": ["x" * 20_000_000]}, compression="zstd", use_dictionary=False, **options)
            said = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).total_byte_size
            lying = self.forged(content, said)
            assert pq.ParquetFile(io.BytesIO(lying)).metadata.row_group(0).total_byte_size == 1
            with pytest.raises(ImportLimitError, match="unpacks to"):
                registry_read("parquet", lying)

    def test_texts_that_share_their_beginnings_come_a_few_at_a_time(self, monkeypatch) -> None:
        """300 kB of file: each text is the one before and a letter more, so that 5,000 are 1.5 GB."""
        texts = ["x" * 300_000 + "y" * n for n in range(200)]
        content = table(
            {"text": texts}, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY", compression="none"
        )
        assert len(content) < 400_000
        pa.default_memory_pool().release_unused()
        before, most = pa.total_allocated_bytes(), 0
        for row in registry.get("parquet").records(io.BytesIO(content), "x"):
            assert isinstance(row, Row)
            most = max(most, pa.total_allocated_bytes() - before)
        assert most < 40 * 1024**2

    def test_a_column_that_may_hold_too_long_a_text_is_refused(self, monkeypatch) -> None:
        from annotation.imports.formats import parquet

        monkeypatch.setattr(parquet, "MOST_SHARING_BYTES", 1_000)
        content = table({"text": ["x" * 2_000]}, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
        with pytest.raises(InputError, match="row_group_size"):
            registry_read("parquet", content)


class TestShapes:
    def passed(self, name: str, content: bytes) -> list[Any]:
        return list(Allowance(len(content)).passed(registry.get(name).records(io.BytesIO(content), "x")))

    def test_a_header_of_a_million_columns_is_refused(self) -> None:
        content = (",".join(f"c{n}" for n in range(1_000_000)) + "\n").encode()
        with pytest.raises(InputError, match="1,000,000 columns"):
            self.passed("csv_comma", content)

    def test_rows_of_thousands_of_columns_are_problems(self) -> None:
        line = json.dumps({f"c{n}": 1 for n in range(5_000)}).encode() + b"\n"
        said = [{"type": "choices", "from_name": "a", "value": {"choices": ["b"]}}]
        predictions = [{"model_version": f"m{n}", "result": said} for n in range(400)]
        task = {"data": {"text": "x"}, "predictions": predictions}
        for name, content in (("jsonl", line * 3), ("label_studio", json.dumps([task]).encode())):
            assert all(isinstance(record, Problem) for record in self.passed(name, content))

    def test_a_name_of_a_column_is_no_text(self) -> None:
        long = "c" * 1_001
        (problem,) = self.passed("jsonl", json.dumps({long: "x"}).encode())
        assert isinstance(problem, Problem)
        assert "more than 1,000 characters" in problem.message
        for name, content in (("csv_comma", f"{long},b\n1,2\n".encode()), ("parquet", table({long: ["x"]}))):
            with pytest.raises(InputError, match="more than 1,000 characters"):
                self.passed(name, content)

    @pytest.mark.parametrize("depth", [101, 100_000])
    def test_deep_nesting_is_a_problem_of_its_line(self, depth) -> None:
        line = b'{"a": ' + b"[" * depth + b"]" * depth + b"}\n"
        bad, good = self.passed("jsonl", line + b'{"a": "x"}\n')
        assert (type(bad), type(good)) == (Problem, Row)

    def test_reading_that_takes_too_long_ends(self) -> None:
        endless = (Row(f"row {n}", str(n), {"a": "x"}) for n in iter(int, 1))
        budget = Allowance(10**9, deadline=Deadline(0, 0))
        with pytest.raises(ImportLimitError, match="more than 0 seconds") as raised:
            list(budget.passed(endless))
        assert raised.value.where == "row 0"
        with pytest.raises(ImportLimitError, match="seconds"):
            budget.counted((1, 0) for _ in iter(int, 1))

    @pytest.mark.django_db
    def test_rows_with_ever_new_columns_cannot_fill_a_look(self, project, monkeypatch) -> None:
        monkeypatch.setattr("annotation.imports.format_choice.MOST_NAMES", 1_000)
        lines = "".join(json.dumps({f"{n}.{m}": "x" for m in range(40)}) + "\n" for n in range(50))
        stored = store(project, lines, "x.jsonl")
        assert len(preview(stored_file=stored).columns) == limits.MAX_COLUMNS
        with pytest.raises(ImportLimitError, match="different columns"):
            format_for(stored, "lines")


@pytest.mark.django_db
def test_all_looks_at_a_file_that_one_answer_takes_have_one_budget_of_time(project, monkeypatch) -> None:
    """Each alone would be done in time."""
    import_file(project, store(project, "text\na\n"), ColumnMapping("", "text"))
    stored = store(project, "text\n" + "b\n" * 30, "other.csv")
    clock = count()
    monkeypatch.setattr("annotation.imports.allowance.time", SimpleNamespace(monotonic=lambda: next(clock)))
    mapping = ColumnMapping("", "text")
    preview(stored_file=stored)
    check_import(stored_file=stored, mapping=mapping, format_name="csv")
    with pytest.raises(ImportLimitError, match="more than 60 seconds"):
        start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping)


def test_rows_come_through_their_budget_alone() -> None:
    """No service asks an importer for its rows but the one that counts them."""
    asking = {
        path.name
        for path in Path(import_job.__file__).parent.glob("*.py")
        if re.search(r"(?<!opened)\.(records|measure)\(", path.read_text())
    }
    assert asking == {"reading.py"}
