"""Zip archives of one data file, of texts and of an Argilla data set; files of doccano."""

import io
import json
import struct
import zipfile
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.errors import InputError
from annotation.imports.formats import archives, registry
from annotation.imports.formats.base import GivenLabel, Problem, Row
from annotation.imports.formats.detect import detect_in
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.formats.reserved import model_output
from testbed.factories import make_image
from tests.annotation.imports.test_importers import count_of, make_zip, read

pytestmark = pytest.mark.costly


def kind(entries: dict[str, bytes | str]) -> str:
    return detect_in(io.BytesIO(make_zip(entries)), "x.zip", IMPORTERS.values())


def columns(name: str, content: str | bytes, **options: int) -> list[dict[str, str]]:
    return [row.columns for row in read(name, content, **options) if isinstance(row, Row)]


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": ["a", "b"]}), buffer)
    return buffer.getvalue()


def workbook() -> bytes:
    book = openpyxl.Workbook()
    for row in (["text"], ["a"], ["b"]):
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


class TestOneFile:
    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("d/x.csv", "text\na\nb\n"),
            ("x.jsonl", '{"text": "a"}\n{"text": "b"}\n'),
            ("x.json", '[{"text": "a"}, {"text": "b"}]'),
            ("x.csv", "text\na\nb\n".encode("utf-16")),
            ("x.parquet", parquet()),
            ("x.xlsx", workbook()),
        ],
    )
    def test_it_is_read_as_if_it_were_alone(self, path: str, content: bytes | str) -> None:
        entries = {"README.md": "about it", "__MACOSX/._x.csv": b"\0", path: content}
        assert kind(entries) == "zip_file"
        archive = make_zip(entries)
        assert columns("zip_file", archive) == [{"text": "a"}, {"text": "b"}]
        assert columns("zip_file", archive, skip=1) == [{"text": "b"}]
        assert count_of(registry.get("zip_file"), io.BytesIO(archive), "x.zip") == 2
        assert read("zip_file", archive)[0].name.startswith(f"{path}:")  # type: ignore[union-attr]

    def test_several_are_named_and_packed_ones_refused(self) -> None:
        with pytest.raises(InputError, match=r"2 data files .*\(a.csv, b.csv\)"):
            kind({"a.csv": "text\na\n", "b.csv": "text\nb\n"})
        for content in (b"\x1f\x8b and more", make_zip({"a.png": make_image()})):
            with pytest.raises(InputError, match="compressed twice"):
                read("zip_file", make_zip({"x.csv": content}))

    def test_a_table_beside_images_is_about_them(self) -> None:
        assert kind({"a.png": make_image(), "metadata.csv": "file_name\na.png\n"}) == "zip_images"

    def test_damaged_content_is_refused(self) -> None:
        content = bytearray(make_zip({"x.csv": "text\n" + "a\n" * 100}))
        content[content.index(b"a\na\n") + 3] ^= 0xFF
        with pytest.raises(InputError):
            read("zip_file", bytes(content))


class TestTexts:
    def test_each_file_is_an_item_and_its_folder_a_column(self) -> None:
        entries = {
            "d/pos/1.txt": "\ufeffgood\nfilm",
            "d/neg/2.txt": "schlecht é".encode("utf-16"),
            "d/neg/3.txt": b"\xff",
        }
        assert kind(entries) == "zip_texts"
        first, second, third = read("zip_texts", make_zip(entries))
        cells = {"file_name": "d/pos/1.txt", "text": "good\nfilm", "folder": "pos"}
        assert first == Row("d/pos/1.txt", "d/pos/1.txt", cells)
        assert isinstance(second, Row)
        assert (second.columns["text"], second.columns["folder"]) == ("schlecht é", "neg")
        assert third == Problem(
            "d/neg/3.txt", "This is not UTF-8. Import the archive again and say its encoding."
        )

    def test_names_that_lead_out_of_the_archive_are_only_names(self, settings: Any) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 10
        rows = read("zip_texts", make_zip({"../../etc/x.txt": "a", "long.txt": "x" * 1000}))
        assert rows[0].where == "../../etc/x.txt"
        assert isinstance(rows[1], Problem)


RECORD = {
    "id": "r1",
    "fields": {"text": "héllo\n😀"},
    "metadata": {"n": 1, "text": "clash"},
    "suggestions": {"label": {"value": "pos", "score": 0.9, "agent": "model-1"}},
    "responses": {
        "label": [
            {"value": "neg", "user_id": "u1", "status": "submitted"},
            {"value": "pos", "user_id": "u2", "status": "submitted"},
        ]
    },
    "vectors": {},
    "status": "completed",
    "_server_id": "s",
}


def argilla(*records: Any) -> dict[str, bytes | str]:
    return {
        "d/.argilla/settings.json": "{}",
        "d/.argilla/dataset.json": "{}",
        "d/records.json": json.dumps(records),
    }


class TestArgilla:
    def test_records_become_rows_with_suggestions_beside_them_and_given_labels(self) -> None:
        assert kind(argilla(RECORD)) == "argilla"
        (row,) = read("argilla", make_zip(argilla(RECORD)))
        assert isinstance(row, Row)
        assert {name: row.columns[name] for name in ("id", "text", "n", "metadata.text")} == {
            "id": "r1", "text": "héllo\n😀", "n": "1", "metadata.text": "clash",
        }  # fmt: skip
        suggested = [row.columns[f"label.suggestion{part}"] for part in ("", ".score", ".agent")]
        assert suggested == ["pos", "0.9", "model-1"]
        assert row.labels == (
            GivenLabel("neg", annotator="u1", tool="Argilla"),
            GivenLabel("pos", annotator="u2", tool="Argilla"),
        )

    def test_nobody_who_labels_may_see_what_was_suggested_or_answered(self) -> None:
        (row,) = read("argilla", make_zip(argilla(RECORD)))
        assert isinstance(row, Row)
        assert model_output(row.columns) == {
            "label.suggestion", "label.suggestion.score", "label.suggestion.agent",
            "label.responses", "label.responses.users", "label.responses.status",
        }  # fmt: skip

    def test_answers_to_several_questions_are_no_label(self) -> None:
        responses = {"a": [{"value": "x", "user_id": "u"}], "b": [{"value": "y", "user_id": "u"}]}
        (row,) = read("argilla", make_zip(argilla({**RECORD, "responses": responses})))
        assert isinstance(row, Row)
        assert [label.problem for label in row.labels] == ["there are answers to several questions (a, b)"]

    @pytest.mark.parametrize("status", ["draft", "discarded", "pending"])
    def test_what_was_not_submitted_is_no_label(self, status: str) -> None:
        said = {"value": "x", "user_id": "u1", "status": status}
        sure = {"value": "y", "user_id": "u2", "status": "submitted"}
        for responses in ({"label": [said, sure]}, {"label": [sure], "other": [said]}):
            (row,) = read("argilla", make_zip(argilla({**RECORD, "responses": responses})))
            assert isinstance(row, Row)
            assert row.labels == (GivenLabel("y", annotator="u2", tool="Argilla"),)

    def test_where_the_file_does_not_say_that_it_was_submitted_it_is_none_in_words(self) -> None:
        for said in ({}, {"status": None}, {"status": ""}, {"status": "who knows"}):
            responses = {"label": [{"value": "x", "user_id": "u1"} | said]}
            (row,) = read("argilla", make_zip(argilla({**RECORD, "responses": responses})))
            assert isinstance(row, Row)
            assert [label.problem for label in row.labels] == ["the file does not say that it was submitted"]

    def test_what_is_no_record_is_a_problem_of_its_own(self) -> None:
        good, bad = read("argilla", make_zip(argilla(RECORD, {"id": "x"})))
        assert isinstance(good, Row)
        assert bad == Problem("record 2", "This record cannot be used: it has no fields.")


class TestDoccano:
    @pytest.mark.parametrize(
        ("line", "given"),
        [
            ({"id": 1, "text": "a", "label": ["pos"], "Comments": []}, (GivenLabel("pos", tool="doccano"),)),
            ({"text": "a", "labels": ["x", "y"]}, (GivenLabel(["x", "y"], tool="doccano"),)),
            ({"text": "a", "label": []}, ()),
        ],
    )
    def test_labels_are_given_labels(self, line: dict[str, Any], given: tuple[GivenLabel, ...]) -> None:
        content = (json.dumps(line) + "\n").encode()
        assert detect_in(io.BytesIO(content), "x.jsonl", IMPORTERS.values()) == "doccano"
        (row,) = read("doccano", content)
        assert isinstance(row, Row)
        assert row.labels == given
        assert (row.columns, row.typed) == (
            read("jsonl", content)[0].columns,
            read("jsonl", content)[0].typed,
        )  # type: ignore[union-attr]

    def test_spans_are_no_labels_of_the_whole_text(self) -> None:
        line = '{"text": "a b", "label": [[0, 1, "PER"]]}\n'
        assert detect_in(io.BytesIO(line.encode()), "x.jsonl", IMPORTERS.values()) == "jsonl"
        (row,) = read("doccano", line)
        assert isinstance(row, Row)
        assert "no list of labels of the whole text" in row.labels[0].problem

    def test_plain_lines_of_json_stay_what_they_are(self) -> None:
        for line in ('{"text": "a", "label": "pos"}', '{"text": "a"}', '{"label": ["x"]}', "[1]"):
            assert detect_in(io.BytesIO(line.encode()), "x.jsonl", IMPORTERS.values()) != "doccano"
        assert isinstance(read("doccano", "[1]\n")[0], Problem)


def listing(count: int, *, said: int | None = None, large: bool = False) -> bytes:
    """An archive whose list names one empty file again and again; `said` is what it tells of their number."""
    head = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 5, 0) + b"a.txt"
    entry = (
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0)
        + b"a.txt"
    )
    size, said = count * len(entry), count if said is None else said
    ends = b""
    if large:
        end = len(head) + size
        ends = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, said, said, size, len(head))
        ends += struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
        return (
            head
            + entry * count
            + ends
            + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *[2**16 - 1] * 2, *[2**32 - 1] * 2, 0)
        )
    return head + entry * count + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, said, said, size, len(head), 0)


class TestLists:
    @pytest.mark.parametrize("large", [False, True])
    def test_long_ones_are_refused_before_anything_is_made_of_them(self, monkeypatch, large: bool) -> None:
        monkeypatch.setattr(archives, "MOST_FILES", 50_000)
        monkeypatch.setattr(archives, "_BLOCK", 1_001)  # ends in the middle of many a mark
        assert len(archives.open_archive(io.BytesIO(listing(50_000, large=large))).infolist()) == 50_000
        monkeypatch.setattr(zipfile, "ZipFile", None)
        for said in (50_001, 1):
            with pytest.raises(InputError, match="larger than this server accepts"):
                archives.open_archive(io.BytesIO(listing(50_001, said=said, large=large)))
