"""What nobody who labels may see of a file is hidden in whatever format somebody asks to look at it."""

import json
from typing import Any

import pytest
from django.urls import reverse

from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping, answer_columns
from annotation.imports.format_choice import SAMPLE
from annotation.imports.upload import preview, start_import
from annotation.jobs import jobs
from annotation.models import Job, Project, StoredFile
from testbed.factories import add_member, make_project
from tests.annotation.apis import Api
from tests.annotation.imports.test_import_undo import undo
from tests.annotation.imports.test_importers import make_zip
from tests.annotation.imports.test_imports import import_file, storage, store
from tests.routing.sources.test_shown_columns import recorded

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]
TABLE = "id,text,fast,conf\n" + "".join(f"a{n},hello {n},cat,0.9{n}\n" for n in range(3))
TASKS = [
    {
        "id": n,
        "data": {"text": f"T{n}"},
        "annotations": [{"result": [{"type": "choices", "value": {"choices": ["cat"]}}]}],
        "predictions": [],
    }
    for n in range(3)
]
DOCCANO = "".join(json.dumps({"id": n, "text": f"d {n}", "label": ["cat"]}) + "\n" for n in range(3))


@pytest.fixture
def project() -> Project:
    return make_project(choices=("cat", "dog"))


def bring(project: Project, stored: StoredFile, mapping: ColumnMapping, format_name: str = "") -> Job:
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=stored,
        mapping=mapping,
        format_name=format_name,
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    project.refresh_from_db()
    return job


def with_source(project: Project, stored: StoredFile, format_name: str = "") -> None:
    bring(project, stored, ColumnMapping("id", "text"), format_name)
    recorded(project, label_column="fast", confidence_column="conf")


def looked_at(project: Project, stored: StoredFile, **asked: Any) -> Any:
    manager = add_member(project, "manager")
    return Api(project, manager).get(f"files/{stored.pk}/preview/", **asked)


class TestAnswersOfASource:
    @pytest.mark.parametrize("name", ["lines", "csv_semicolon", "tsv", "jsonl"])
    def test_in_another_format_the_file_is_neither_shown_nor_imported(self, project, name) -> None:
        stored = store(project, TABLE)
        with_source(project, stored)
        answer = looked_at(project, stored, format=name)
        assert (answer.status_code, answer.json()["field"]) == (400, "format")
        assert "0.91" not in answer.content.decode()
        with pytest.raises(InputError, match="has the column “conf”"):
            bring(project, stored, ColumnMapping(text_column="text"), name)

    @pytest.mark.parametrize("asked", [{}, {"format": "csv"}, {"format": "csv_comma"}])
    def test_as_a_table_its_other_columns_are_shown(self, project, asked) -> None:
        stored = store(project, TABLE)
        with_source(project, stored)
        row = looked_at(project, stored, **asked).json()["rows"][1]
        assert row == {"id": "a1", "text": "hello 1", "fast": None, "conf": None}

    def test_a_file_that_was_not_imported_yet_counts_too(self, project) -> None:
        with_source(project, store(project, TABLE))
        more = store(project, TABLE + "b,new,dog,0.1\n", "more.csv")
        assert looked_at(project, more, format="lines").status_code == 400

    def test_one_that_was_imported_as_what_it_does_not_seem_to_be(self, project) -> None:
        odd = store(project, "id;text;fast;a,b,c,d\nx;one;cat;1,2,3,4\n", "odd.csv")
        assert preview(stored_file=odd).format == "csv_comma"
        bring(project, odd, ColumnMapping("id", "text"), "csv_semicolon")
        recorded(project, label_column="fast")
        assert looked_at(project, odd).json()["rows"][0]["fast"] is None
        assert looked_at(project, odd, format="csv_comma").status_code == 400

    def test_what_a_source_reads_is_no_name_of_an_item_either(self, project) -> None:
        with_source(project, store(project, TABLE))
        with pytest.raises(InputError, match="reads its answers") as raised:
            bring(project, store(project, TABLE, "more.csv"), ColumnMapping("conf", "text"))
        assert raised.value.where == "id_column"

    def test_the_page_says_why_and_shows_the_table(self, project, client) -> None:
        stored = store(project, TABLE)
        with_source(project, stored)
        client.force_login(add_member(project, "manager"))
        path = reverse("import_mapping", args=[project.slug, stored.pk])
        form = {"text_column": ["text"], "id_column": "id", "text_format": "plain"}
        for more in ({"do": "look"}, {}):
            page = client.post(path, {**form, "format": "lines", **more}).content.decode()
            assert "It cannot be read like that. format: Read as the format “csv_comma” this file has" in page
            assert "hello 1" in page
            assert "0.91" not in page
        assert project.jobs.count() == 1

    def test_where_nothing_is_hidden_any_format_may_be_tried(self, project) -> None:
        stored = store(project, TABLE)
        bring(project, stored, ColumnMapping("id", "text"))
        assert looked_at(project, stored, format="lines").json()["rows"][1] == {"text": TABLE.split("\n")[1]}


class TestLabelStudio:
    @pytest.mark.parametrize("name", ["json", "lines"])
    def test_its_lists_are_not_shown_in_another_format(self, project, name) -> None:
        stored = store(project, json.dumps(TASKS), "tasks.json")
        assert looked_at(project, stored, format=name).status_code == 400
        assert looked_at(project, stored).json()["rows"][0] == {"text": "T0", "label_studio": None}

    @pytest.mark.parametrize("name", ["annotations", "predictions", "completions"])
    def test_they_are_hidden_wherever_they_stand(self, project, name) -> None:
        rows = [{"text": "a", name: [{"result": ["cat"]}]}]
        stored = store(project, json.dumps(rows), "rows.json")
        assert looked_at(project, stored).json()["rows"] == [{"text": "a", name: None}]
        with pytest.raises(InputError, match="of another program said"):
            bring(project, stored, ColumnMapping(text_column=name))


class TestDoccano:
    def content(self, packed: bool) -> tuple[bytes, str]:
        return (make_zip({"all.jsonl": DOCCANO}), "d.zip") if packed else (DOCCANO.encode(), "d.jsonl")

    @pytest.mark.parametrize("packed", [False, True])
    def test_labels_of_people_are_hidden_and_never_shown(self, project, packed) -> None:
        stored = store(project, *self.content(packed))
        for mapping in (ColumnMapping(text_column="label"), ColumnMapping("", "", ("text", "label"))):
            with pytest.raises(InputError, match="of another program said"):
                bring(project, stored, mapping)
        assert looked_at(project, stored).json()["rows"][0]["label"] is None
        bring(project, stored, ColumnMapping(text_column="text"))
        assert answer_columns(project) == {"label"}
        for role in ("reviewer", "manager"):
            found = Api(project, add_member(project, role)).get("items/", columns="true").json()
            assert found["results"][0]["data"] == {"id": 0, "text": "d 0"}
        assert project.items.first().typed == {"id": 0, "label": ["cat"]}

    def test_the_name_stays_hidden_in_files_of_any_format(self, project) -> None:
        job = bring(project, store(project, *self.content(True)), ColumnMapping(text_column="text"))
        table = store(project, "text,label\nx,cat\n", "t.csv")
        with pytest.raises(InputError, match="of another program said"):
            bring(project, table, ColumnMapping(text_column="label"))
        assert looked_at(project, table, format="lines").status_code == 400
        undo(job)
        assert not answer_columns(project)
        assert bring(project, table, ColumnMapping(text_column="label")).state == "done"

    def test_as_json_lines_it_is_read_as_what_it_is(self, project) -> None:
        """So that lines may be sent to the API that look like those of doccano."""
        stored = store(project, DOCCANO, "lines.jsonl")
        job = bring(project, stored, ColumnMapping("id", "text"), "jsonl")
        assert (job.params["format"], job.result["answers"]) == ("doccano", ["label"])
        assert import_file(project, stored, ColumnMapping("id", "text")).result["already_there"] == 3


@pytest.mark.parametrize("as_list", [False, True])
def test_a_name_that_only_a_late_row_has_counts_too(project, as_list) -> None:
    with_source(project, store(project, TABLE))

    def file(rows: list[dict[str, str]], name: str) -> StoredFile:
        lines = [json.dumps(row) for row in rows]
        return store(project, f"[{','.join(lines)}]" if as_list else "\n".join(lines), name)

    rows = [{"id": f"b{n}", "text": f"late {n}"} for n in range(SAMPLE + 1)]
    open_to_all = file(rows, "open.json")
    assert looked_at(project, open_to_all, format="lines").status_code == 200
    late = file([*rows, {"id": "last", "text": "late", "conf": "0.1"}], "late.json")
    assert looked_at(project, late, format="lines").status_code == 400
    with pytest.raises(InputError, match="has the column “conf”"):
        bring(project, late, ColumnMapping(text_column="text"), "lines")
    assert looked_at(project, late).status_code == 200
