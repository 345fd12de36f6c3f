"""Workbooks as they are written by openpyxl and pandas: rows, types, sheets, and what is refused."""

import datetime
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.errors import InputError
from annotation.imports import allowance, job as import_job
from annotation.imports.check import check_import
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import excel, excel_reader, registry
from annotation.imports.formats.base import Problem, Row
from annotation.imports.formats.detect import NO_TEXTS, detect
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.rows import candidate_of
from annotation.imports.upload import preview, start_import
from annotation.models import Project
from testbed.factories import make_project
from tests.annotation.imports.test_importers import count_of, read
from tests.annotation.imports.test_imports import counts, import_file, result, storage, store

pytestmark = pytest.mark.costly

__all__ = ["storage"]

ROOT = Path(__file__).parents[3]
HARD = ["héllo\n😀 עברית", " spaces  ", "-1+1", 'a,"b"', "x" * 32_000, "tab\there"]


def workbook(*sheets: list[list[Any]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, 1):
        sheet = book.create_sheet(f"Sheet {number}")
        for row, cells in enumerate(rows, 1):
            for column, value in enumerate(cells, 1):
                cell = sheet.cell(row, column, value)
                if isinstance(value, str):
                    cell.data_type = "e" if value.startswith("#") else "s"
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def changed(content: bytes, path: str, change: Callable[[bytes], bytes]) -> bytes:
    """The workbook with one part of it changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, change(part) if name == path else part)
    return buffer.getvalue()


def with_formulas() -> bytes:
    """As programs write them that compute nothing: in B2 and C3."""
    book = openpyxl.Workbook()
    for row in (["id", "text", "note"], ["a", "=1+1", "x"], ["b", "second", '=A3&"<"'], ["c", "third", ""]):
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


@pytest.mark.django_db
class TestFormulas:
    def test_one_that_was_never_computed_is_called_so(self, storage) -> None:
        project = make_project()
        mapping = ColumnMapping(id_column="id", text_column="text")
        stored = store(project, with_formulas(), "x.xlsx")
        check = check_import(stored_file=stored, mapping=mapping, format_name="excel")
        job = import_file(project, stored, mapping)
        assert (job.result["added"], job.result["problems"]) == (2, 1)
        problem, note = job.problems.all()
        assert problem.where == "row 2, column “text”"
        assert "holds a formula that was never computed" in problem.message
        assert "spreadsheet program" in problem.message
        # One beside the text is stored as an empty cell, and told, too.
        assert (note.where, "empty in the item" in note.message) == ("row 3, column “note”", True)
        assert job.result["uncomputed"] == check.uncomputed == {"note": 1}

    def test_of_each_column_the_first_is_told_and_all_are_counted(
        self, storage, monkeypatch: pytest.MonkeyPatch, client: Client
    ) -> None:
        monkeypatch.setattr(import_job, "CHUNK_ROWS", 2)
        project = make_project()  # with a column that has the name of what dictionaries can
        book = openpyxl.Workbook()
        book.active.append(["id", "text", "items", "m"])
        for n in range(6):
            book.active.append([n, f"text {n}", "=1+1", "=A2" if n > 3 else 1])
        book.save(buffer := io.BytesIO())
        stored = store(project, buffer.getvalue(), "x.xlsx")
        look = reverse("import_mapping", args=[project.slug, stored.pk])
        client.force_login(project.created_by)
        assert "<bdi>items</bdi>: 6 cells" in client.get(look).content.decode()
        job = import_file(project, stored, ColumnMapping(id_column="id", text_column="text"))
        assert job.result["uncomputed"] == {"items": 6, "m": 2}
        assert [one.where for one in job.problems.all()] == ["row 2, column “items”", "row 6, column “m”"]
        page = client.get(reverse("job", args=[project.slug, job.pk])).content.decode()
        assert "Empty in <bdi>items</bdi>, as a formula was never computed</dt><dd>6</dd>" in page

    def test_the_command_counts_them_by_column(self, storage, tmp_path: Path, capsys) -> None:
        project = make_project()
        (tmp_path / "x.xlsx").write_bytes(with_formulas())
        who = ["--user", project.created_by.username, "--here", "--text-column", "text"]
        call_command("import_items", project.slug, str(tmp_path / "x.xlsx"), *who)
        out, err = capsys.readouterr()
        assert "empty as their formula was never computed: note 1." in out
        assert "row 3, column “note”: This cell is empty" in err

    def test_an_id_and_several_fields_are_looked_at_too(self) -> None:
        (first, second, _third) = read("excel", with_formulas())
        assert (first.uncomputed, second.uncomputed) == ({"text"}, {"note"})
        for mapping in (ColumnMapping(id_column="text"), ColumnMapping(field_columns=("text",))):
            assert "never computed" in candidate_of(1, first, mapping).message

    @pytest.mark.parametrize(
        "cell",
        [
            b'<c r="B2"><f>1+1</f></c>',
            b'<c r="B2"><f>1+1</f><v/></c>',
            b'<c r="B2" s="3"><f t="shared" si="0"/><v></v></c>',
        ],
    )
    def test_however_it_is_written(self, cell: bytes) -> None:
        content = _with_cell(cell)
        assert read("excel", content)[0].uncomputed == {"text"}

    @pytest.mark.parametrize(
        "cell",
        [b'<c r="B2" t="str"><f>""</f><v></v></c>', b'<c r="B2"/>', b'<c r="B2"><f>1+1</f><v>2</v></c>'],
    )
    def test_what_was_computed_or_is_empty_is_no_such_cell(self, cell: bytes) -> None:
        assert not read("excel", _with_cell(cell))[0].uncomputed


def _with_cell(cell: bytes) -> bytes:
    pattern = re.compile(rb'<c r="B2".*?</c>')
    return changed(with_formulas(), "xl/worksheets/sheet1.xml", lambda part: pattern.sub(cell, part, count=1))


@pytest.mark.django_db
class TestNames:
    @pytest.mark.parametrize("ending", [*NO_TEXTS, ".XLS"])
    def test_a_text_that_is_called_a_workbook_is_not_read_as_lines(self, storage, ending: str) -> None:
        project = make_project()
        stored = store(project, b"Dear all,\nnothing here is a table.\n", f"notes{ending}")
        with pytest.raises(InputError, match="but it is a text"):
            preview(stored_file=stored)
        for text, read_as in (("id,text\n1,a\n2,b\n", "csv_comma"), ('{"id": 1}\n', "jsonl")):
            assert preview(stored_file=store(project, text, f"table{ending}")).format == read_as
        _, told, said = (
            (ROOT / "docs/importing.md").read_text().partition("A text that is no CSV, TSV or JSON is")
        )
        assert told
        assert f"`{ending.lower()}`" in said.partition(";")[0]


class TestRows:
    def test_types_are_kept_and_times_are_iso(self) -> None:
        header = ["id", "text", "x"]
        moment = datetime.datetime(2020, 1, 2, 3, 4, 5)
        content = workbook([
            header,
            [1, "é", 1.5],
            [2, True, datetime.date(2020, 1, 2)],
            [3, moment, datetime.time(3, 4)],
            [4, None, datetime.timedelta(hours=30)],
            [5, "#N/A", 1e20],
        ])  # fmt: skip
        rows = [row for row in read("excel", content) if isinstance(row, Row)]
        assert [row.columns for row in rows] == [
            {"id": "1", "text": "é", "x": "1.5"},
            {"id": "2", "text": "true", "x": "2020-01-02"},
            {"id": "3", "text": "2020-01-02T03:04:05", "x": "03:04:00"},
            {"id": "4", "text": "", "x": "30:00:00"},
            {"id": "5", "text": "#N/A", "x": "1e+20"},
        ]
        typed = [{"id": 1, "x": 1.5}, {"id": 2, "text": True}, {"id": 3}, {"id": 4}, {"id": 5, "x": 1e20}]
        assert [row.typed for row in rows] == typed
        assert rows[0][:2] == ("row 2", "data.x:2")

    def test_what_pandas_writes_comes_back(self) -> None:
        frame = pd.DataFrame({"id": range(len(HARD)), "text": HARD, "n": [1.5, None, 3, 4, 5, 6]})
        buffer = io.BytesIO()
        frame.to_excel(buffer, index=False)
        rows = [row for row in read("excel", buffer.getvalue()) if isinstance(row, Row)]
        assert [row.columns["text"] for row in rows] == HARD
        assert [row.typed for row in rows][:3] == [{"id": 0, "n": 1.5}, {"id": 1}, {"id": 2, "n": 3}]

    def test_places_are_rows_of_the_sheet_and_empty_ones_are_passed_over(self) -> None:
        content = workbook([[], [None, "id", "text", None], [], [None, "a", "x"], [], [None, "b", "y", None]])
        rows = read("excel", content)
        assert [(row.where, row.columns) for row in rows if isinstance(row, Row)] == [
            ("row 4", {"id": "a", "text": "x"}),
            ("row 6", {"id": "b", "text": "y"}),
        ]
        assert read("excel", content, skip=1) == rows[1:]
        assert count_of(registry.get("excel"), io.BytesIO(content), "x") == 2

    def test_merged_cells_hold_their_value_once(self) -> None:
        book = openpyxl.Workbook()
        for row in (["id", "text"], ["a", "x"], ["b", None]):
            book.active.append(row)
        book.active.merge_cells("B2:B3")
        buffer = io.BytesIO()
        book.save(buffer)
        assert [row.columns["text"] for row in read("excel", buffer.getvalue())] == ["x", ""]

    def test_a_cell_that_is_too_long_leaves_out_its_row(self, settings) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 1000
        content = workbook([["text"], ["x" * 1001], ["ok"]])
        assert [type(row) for row in read("excel", content)] == [Problem, Row]


class TestSheets:
    def test_one_is_chosen_by_its_name(self) -> None:
        content = workbook([["text"], ["first"]], [["words"], ["second"]])
        assert registry.get("excel").sheets(io.BytesIO(content), "x") == ["Sheet 1", "Sheet 2"]
        (row,) = read("excel:Sheet 2", content)
        assert row.columns == {"words": "second"}
        with pytest.raises(InputError, match="there are: Sheet 1, Sheet 2"):
            read("excel:Sheet 3", content)

    def test_hidden_ones_are_not_read(self) -> None:
        book = openpyxl.load_workbook(io.BytesIO(workbook([["secret"], ["x"]], [["text"], ["y"]])))
        book["Sheet 1"].sheet_state = "hidden"
        buffer = io.BytesIO()
        book.save(buffer)
        assert read("excel", buffer.getvalue())[0].columns == {"text": "y"}

    @pytest.mark.django_db
    def test_the_preview_names_the_sheet_and_the_import_reads_it(self) -> None:
        project = make_project()
        content = workbook([["text"], ["first"]], [["id", "text"], [7, "second"]])
        stored = store(project, content, "x.xlsx")
        seen = preview(stored_file=stored)
        assert (seen.format, seen.sheets) == ("excel:Sheet 1", ("Sheet 1", "Sheet 2"))
        seen = preview(stored_file=stored, format_name="excel:Sheet 2")
        assert (seen.format, seen.columns) == ("excel:Sheet 2", ["id", "text"])

    @pytest.mark.django_db
    def test_an_empty_sheet_in_front_is_passed_over_unless_it_is_asked_for(self) -> None:
        project = make_project()
        stored = store(project, workbook([], [["only a header"]], [["text"], ["x"]]), "x.xlsx")
        assert preview(stored_file=stored).format == "excel:Sheet 3"
        with pytest.raises(InputError, match="Sheet 1: The sheet is empty"):
            preview(stored_file=stored, format_name="excel:Sheet 1")
        with pytest.raises(InputError, match="Sheet 1: The sheet is empty"):
            preview(stored_file=store(project, workbook([], []), "y.xlsx"))

    @pytest.mark.django_db
    def test_a_column_that_another_sheet_may_have_is_refused_with_the_sheets_there_are(self) -> None:
        project = make_project()
        stored = store(project, workbook([["a"], ["x"]], [["text"], ["y"]]), "x.xlsx")

        def start(**fields: Any) -> str:
            with pytest.raises(InputError) as caught:
                start_import(
                    project=project,
                    user=project.created_by,
                    stored_file=stored,
                    mapping=ColumnMapping(text_column="text"),
                    **fields,
                )
            return str(caught.value)

        told = start()
        assert "no column “text”; it has a. Read as the format “excel:Sheet 1”" in told
        assert "the other sheets of the workbook are “excel:Sheet 2”" in told
        assert "there are: Sheet 1, Sheet 2" in start(format_name="excel:Sheet")


class TestRefusals:
    @pytest.mark.parametrize(
        ("rows", "where", "message"),
        [
            ([], "Sheet 1", "empty"),
            ([["text"]], "Sheet 1", "no rows"),
            ([["a", "a"], [1, 2]], "Sheet 1, row 1", "twice"),
            ([["a", None], [1, 2]], "Sheet 1, row 1", "Column 2 has no name"),
        ],
    )
    def test_a_sheet_that_is_no_table(self, rows: list[list[Any]], where: str, message: str) -> None:
        with pytest.raises(InputError, match=message) as raised:
            read("excel", workbook(rows))
        assert raised.value.where == where

    def test_a_cell_in_the_last_corner_does_not_fill_the_memory(self) -> None:
        corner = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
        content = changed(
            workbook([["text"], ["x"]]),
            "xl/worksheets/sheet1.xml",
            lambda part: part.replace(b"</sheetData>", corner),
        )
        with pytest.raises(InputError, match="MB of memory"):
            read("excel", content)

    def test_entities_are_not_unfolded(self) -> None:
        bomb = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
            b'<!ENTITY %c "%s">' % (name, b"&%c;" % (name - 1) * 10) for name in b"bcdefghij"
        )

        def with_bomb(part: bytes) -> bytes:
            head, body = re.match(rb"(<\?xml[^>]*>)?(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
            return (head or b"") + bomb + b"]>" + body.replace(b"<t>x</t>", b"<t>x&j;</t>")

        for path in ("xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml"):
            content = changed(workbook([["text"], ["x"]]), path, with_bomb)
            try:
                rows = read("excel", content)
            except InputError:
                continue
            assert all(len(str(row)) < 1000 for row in rows)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_a_document_type_is_refused_before_it_is_parsed(self, monkeypatch, encoding) -> None:
        monkeypatch.setattr(excel_reader, "ElementTree", None)
        named = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "b">]><a/>'.encode(encoding)
        content = changed(workbook([["text"], ["x"]]), "xl/workbook.xml", lambda part: named)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert excel_reader._part(archive, "Sheet") == ""

    def test_a_comment_of_cells_that_never_end_is_passed_over(self, monkeypatch) -> None:
        monkeypatch.setattr(allowance, "REQUEST_SECONDS", 30)
        for part in (b"<c ", b'<c t="e">', b'<c t="e" '):
            comment = b"<!-- " + part * (3_000_000 // len(part)) + b" --></worksheet>"
            content = changed(
                workbook([["text"], ["x"]]),
                "xl/worksheets/sheet1.xml",
                lambda sheet, end=comment: sheet.replace(b"</worksheet>", end),
            )
            (row,) = excel.Excel().in_a_request().records(io.BytesIO(content), "x.xlsx")
            assert isinstance(row, Row)
            assert row.columns == {"text": "x"}

    @pytest.mark.django_db
    def test_nobody_waits_for_a_look_longer_than_a_request_lasts(self, monkeypatch) -> None:
        monkeypatch.setattr(allowance, "REQUEST_SECONDS", 0)
        content = workbook([["text"], ["x"]])
        with pytest.raises(InputError, match="takes more than 0 seconds"):
            preview(stored_file=store(make_project(), content, "x.xlsx"))
        assert len(read("excel", content)) == 1

    @pytest.mark.parametrize("header", [["a", "x" * 11], ["x" * 30_000, "y" * 30_000, "z" * 30_000]])
    def test_a_header_is_held_to_the_longest_cell_and_row(self, settings, header: list[str]) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 10
        with pytest.raises(InputError, match="names of the columns are too long") as raised:
            read("excel", workbook([[], header, ["1"] * len(header)]))
        assert raised.value.where.endswith("row 2")

    def test_bombs_and_what_is_damaged(self) -> None:
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/workbook.xml", b"\0" * 50_000_000)
        with pytest.raises(InputError, match="times its size"):
            read("excel", bomb.getvalue())
        whole = workbook([["text"], ["x"]])
        with pytest.raises(InputError, match="damaged"):
            read("excel", whole[: len(whole) // 2])
        with pytest.raises(InputError, match="damaged"):
            read("excel", changed(whole, "xl/worksheets/sheet1.xml", lambda part: b"<worksheet"))


@pytest.mark.django_db
class TestImport:
    def project(self) -> Project:
        return make_project()

    def test_a_workbook_becomes_items_with_their_types(self) -> None:
        project = self.project()
        stored = store(project, workbook([["id", "text", "n"], ["a", "first", 1], ["b", 2, None]]), "x.xlsx")
        assert detect(stored, IMPORTERS.values()) == "excel"
        job = import_file(project, stored, ColumnMapping(id_column="id", text_column="text"))
        assert counts(job) == result(added=2)
        first, second = project.items.order_by("position")
        assert (first.text, first.typed) == ("first", {"n": 1})
        assert (second.text, second.typed) == ("2", {"text": 2})

    def test_other_office_documents_are_refused(self) -> None:
        document = io.BytesIO()
        with zipfile.ZipFile(document, "w") as archive:
            archive.writestr("word/document.xml", "<w/>")
        with pytest.raises(InputError, match="office document"):
            preview(stored_file=store(self.project(), document.getvalue(), "x.docx"))
        with pytest.raises(InputError, match="cannot be read"):
            preview(
                stored_file=store(self.project(), b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "x.doc")
            )
