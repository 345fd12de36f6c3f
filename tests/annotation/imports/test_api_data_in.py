"""Data in through the API: files, a look at them, imports and lines that come as a body."""

import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.common.api import uploads
from annotation.jobs import jobs
from annotation.models import Job, Project, StoredFile
from annotation.ports import routing_port
from routing.models import Source
from testbed.factories import add_member, make_items, make_project
from tests.annotation.apis import Api, problem
from tests.annotation.imports.test_import_excel import changed, workbook

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

TABLE = b"id,text,verdict\na,good,cat\nb,bad,dog\n"
LINES = b'{"id": "a", "text": "good", "n": 1.5}\n{"id": "b", "text": "bad", "n": null}\n'


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def api(project) -> Api:
    return Api(project, add_member(project, "manager"))


def done(response: Any) -> Job:
    """The job of an answer, once a worker has done it."""
    assert response.status_code == 202, response.content
    job = Job.objects.get(pk=response.json()["id"])
    assert response["Location"] == f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/"
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


class TestFiles:
    def test_as_a_form_and_as_the_body_it_is_the_same_file(self, project, api) -> None:
        sent = api.client.post(f"{api.base}files/", {"file": SimpleUploadedFile("t.csv", TABLE, "text/csv")})
        assert sent.status_code == 201
        body = sent.json()
        assert (body["name"], body["size"]) == ("t.csv", len(TABLE))
        again = api.raw("files/?name=../again.csv", TABLE, "text/csv").json()
        assert again == body
        other = api.raw("files/?name=../other.csv", TABLE + b"c,x,y\n", "application/octet-stream").json()
        assert (other["name"], other["id"]) == ("other.csv", StoredFile.objects.latest("pk").pk)

    def test_refusals(self, project, api) -> None:
        assert problem(api.raw("files/", TABLE, "text/csv"), 400)["field"] == "name"
        problem(api.raw("files/?name=t.csv", b"", "text/csv"), 400)
        problem(api.client.post(f"{api.base}files/", {"fil": "x"}), 400)
        form = {"file": SimpleUploadedFile("t.csv", TABLE)}
        assert problem(api.client.post(f"{api.base}files/?name=x", form), 400)["field"] == "name"
        problem(Api(project, add_member(project, "reviewer")).raw("files/?name=t.csv", TABLE), 403)
        assert StoredFile.objects.count() == 0

    def test_too_much_is_refused_while_it_comes(self, settings, api) -> None:
        settings.HYPAC_MAX_UPLOAD_BYTES = 20
        problem(api.raw("files/?name=t.csv", TABLE, "text/csv"), 413)
        problem(api.raw("items/", LINES), 413)
        assert StoredFile.objects.count() == 0

    def test_a_body_that_breaks_off_is_no_file(self, api, monkeypatch) -> None:
        monkeypatch.setattr(uploads, "_body_of", lambda request: iter_file(TABLE[:10]))
        assert "broke off" in problem(api.raw("files/?name=t.csv", TABLE, "text/csv"), 400)["detail"]
        assert StoredFile.objects.count() == 0

    def test_a_look_at_it_says_what_is_what(self, project, api) -> None:
        sent = api.raw("files/?name=t.csv", TABLE, "text/csv").json()
        look = api.get(f"files/{sent['id']}/preview/").json()
        assert (look["format"], look["holds_images"]) == ("csv_comma", False)
        assert look["suggestion"] == {"id_column": "id", "text_column": "text", "field_columns": []}
        assert [(column["name"], column["suspicious"]) for column in look["columns"]] == [
            ("id", False),
            ("text", False),
            ("verdict", True),
        ]
        assert look["rows"][0] == {"id": "a", "text": "good", "verdict": "cat"}
        as_lines = api.get(f"files/{sent['id']}/preview/", format="lines", rows=2).json()
        assert len(as_lines["rows"]) == 2
        assert problem(api.get(f"files/{sent['id']}/preview/", format="docx"), 400)["field"] == "format"
        assert problem(api.get(f"files/{sent['id']}/preview/", rows=0), 400)["field"] == "rows"

    def test_of_a_workbook_it_names_the_sheets(self, api) -> None:
        long = "A sheet whose name is longer than fits into forty characters"
        content = workbook([["a"], ["x"]], [["text"], ["y"]])
        named = changed(content, "xl/workbook.xml", lambda part: part.replace(b"Sheet 2", long.encode()))
        sent = api.raw("files/?name=t.xlsx", named, "application/octet-stream").json()
        look = api.get(f"files/{sent['id']}/preview/").json()
        assert (look["format"], look["sheets"]) == ("excel:Sheet 1", ["Sheet 1", long])
        other = api.get(f"files/{sent['id']}/preview/", format=f"excel:{long}").json()
        assert other["rows"] == [{"text": "y"}]
        told = problem(api.post("imports/", file=sent["id"], format="excel:Two", text_column="text"), 400)
        assert (told["field"], "Sheet 1" in told["detail"]) == ("format", True)
        done(api.post("imports/", file=sent["id"], format=f"excel:{long}", text_column="text"))

    def test_what_a_model_said_is_not_in_it_while_it_is_hidden(self, project, api, monkeypatch) -> None:
        monkeypatch.setattr(routing_port(), "hidden_columns", lambda **_: {"verdict"})
        sent = api.raw("files/?name=t.csv", TABLE, "text/csv").json()
        rows = api.get(f"files/{sent['id']}/preview/").json()["rows"]
        assert [row["verdict"] for row in rows] == [None, None]

    def test_files_of_other_projects_are_not_there(self, api) -> None:
        other = make_project()
        theirs = Api(other, other.created_by).raw("files/?name=t.csv", TABLE, "text/csv").json()["id"]
        problem(api.get(f"files/{theirs}/preview/"), 404)
        assert problem(api.post("imports/", file=theirs, text_column="text"), 400)["field"] == "file"


class TestImports:
    def test_rows_become_items(self, project, api) -> None:
        sent = api.raw("files/?name=t.csv", TABLE, "text/csv").json()
        job = done(api.post("imports/", file=sent["id"], id_column="id", text_column="text"))
        assert (job.state, job.result["added"]) == ("done", 2)
        assert list(project.items.values_list("external_id", "text")) == [("a", "good"), ("b", "bad")]
        shown = api.get("items/", job=job.pk).json()["results"]
        assert [item["external_id"] for item in shown] == ["a", "b"]

    def test_several_columns_are_fields(self, project, api) -> None:
        sent = api.raw("files/?name=t.csv", TABLE, "text/csv").json()
        done(api.post("imports/", file=sent["id"], id_column="id", field_columns=["text", "id"]))
        assert project.items.get(external_id="a").fields == [["text", "good"], ["id", "a"]]

    def test_refusals_name_the_field(self, project, api) -> None:
        sent = api.raw("files/?name=t.csv", TABLE, "text/csv").json()["id"]
        for body, field in (
            ({}, "file"),
            ({"file": sent}, "text_column"),
            ({"file": sent, "text_column": "txt"}, "text_column"),
            ({"file": sent, "text_column": "text", "id_column": "nr"}, "id_column"),
            ({"file": sent, "text_column": "text", "field_columns": ["id"]}, "field_columns"),
            ({"file": sent, "text_column": "text", "format": "docx"}, "format"),
            ({"file": sent, "text_column": "text", "text_format": "html"}, "text_format"),
            ({"file": sent, "text_colum": "text"}, "text_colum"),
        ):
            assert problem(api.post("imports/", **body), 400)["field"] == field
        assert api.post("imports/", file=sent, text_column="text").status_code == 202
        problem(api.post("imports/", file=sent, text_column="text"), 409)
        problem(Api(project, add_member(project, "viewer")).post("imports/", file=sent), 403)


class TestLines:
    QUERY = "items/?id_column=id&text_column=text"

    def test_lines_become_items_once(self, project, api) -> None:
        job = done(api.raw(self.QUERY, LINES))
        assert job.result["added"] == 2
        assert done(api.raw(self.QUERY, LINES)).result["already_there"] == 2
        assert done(api.raw(self.QUERY, LINES + b'{"id": "c", "text": "new"}\n')).result["added"] == 1
        item = project.items.get(external_id="a")
        assert (item.text, item.data["n"], item.typed) == ("good", "1.5", {"n": 1.5})

    def test_columns_in_their_order_and_names_by_line(self, project, api) -> None:
        done(api.raw("items/?field_columns=text&field_columns=id&text_format=markdown", LINES))
        first = project.items.first()
        assert first.fields == [["text", "good"], ["id", "a"]]
        # Another body without ids brings other items.
        done(api.raw("items/?text_column=text", LINES + b"\n"))
        project.refresh_from_db()
        assert (project.items.count(), project.text_format) == (4, "markdown")

    def test_what_cannot_be_read_is_told(self, project, api) -> None:
        assert done(api.raw(self.QUERY, b"not json\n")).state == "failed"
        problem(api.raw(self.QUERY, b""), 400)
        problem(api.raw(self.QUERY, LINES, "application/json"), 415)
        assert problem(api.raw("items/?text_column=txt", LINES), 400)["field"] == "text_column"
        assert problem(api.raw("items/?text_colum=text", LINES), 400)["field"] == "text_colum"
        problem(Api(project, add_member(project, "reviewer")).raw(self.QUERY, LINES), 403)
        broken = done(api.raw(self.QUERY, LINES + b'{"id": "", "text": "x"}\n'))
        (told,) = api.get(f"jobs/{broken.pk}/problems/").json()["results"]
        assert told["where"].startswith("line 3")

    def test_it_is_never_in_memory_as_a_whole(self, project, api, monkeypatch) -> None:
        monkeypatch.setattr(uploads, "BLOCK", 64)
        asked: list[int] = []
        real = uploads._body_of

        class Counted:
            def __init__(self, body: Any) -> None:
                self.body = body

            def read(self, size: int) -> bytes:
                asked.append(size)
                return self.body.read(size)

        monkeypatch.setattr(uploads, "_body_of", lambda request: Counted(real(request)))
        lines = b"".join(json.dumps({"id": n, "text": f"text {n}"}).encode() + b"\n" for n in range(50))
        assert done(api.raw(self.QUERY, lines)).result["added"] == 50
        assert set(asked) == {64}
        assert len(asked) > len(lines) // 64

    def test_a_body_in_pieces_without_a_length(self, project, api) -> None:
        """As a server gives it that passes on a chunked body."""
        extra = {
            "CONTENT_TYPE": "application/x-ndjson",
            "CONTENT_LENGTH": "",
            "wsgi.input": iter_file(LINES),
            "wsgi.input_terminated": True,
        }
        response = api.client.generic("POST", api.base + self.QUERY, b"", **extra)
        assert done(response).result["added"] == 2


class TestUndo:
    def test_taken_back_as_long_as_nothing_rests_on_it(self, project, api) -> None:
        job = done(api.raw(TestLines.QUERY, LINES))
        undo = done(api.post(f"jobs/{job.pk}/undo/"))
        assert (undo.kind, undo.result) == ("import_undo", {"removed": 2})
        assert project.items.count() == 0
        problem(api.post(f"jobs/{job.pk}/undo/"), 409)
        make_items(project, 1)
        problem(Api(project, add_member(project, "reviewer")).post(f"jobs/{job.pk}/undo/"), 403)
        elsewhere = make_project()
        problem(Api(elsewhere, elsewhere.created_by).post(f"jobs/{job.pk}/undo/"), 404)


def iter_file(content: bytes) -> io.BytesIO:

    return io.BytesIO(content)


class TestBySession:
    """A browser's script sends the token against forged requests as a header."""

    @pytest.fixture
    def browser(self, api) -> Api:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = api.client.cookies
        api.client = strict
        return api

    @pytest.mark.parametrize(
        ("path", "body", "content_type", "status"),
        [
            ("files/?name=t.csv", TABLE, "text/csv", 201),
            ("files/?name=t.csv", TABLE, "application/x-www-form-urlencoded", 201),
            ("items/?text_column=text", LINES, "application/x-ndjson", 202),
            (
                "sources/{source}/predictions/",
                b'{"item": "a", "answer": "cat"}\n',
                "application/x-ndjson",
                400,
            ),
        ],
    )
    def test_a_body_that_is_read_as_it_comes_needs_the_header(
        self, project, browser, path, body, content_type, status
    ) -> None:
        source = Source.objects.create(project=project, name="sent", backend="uploaded", position=1)
        path = path.format(source=source.pk)
        problem(browser.raw(path, body, content_type), 403)
        browser.client.cookies["csrftoken"] = secret = "s" * 32
        problem(browser.raw(path, body, content_type), 403)
        browser.client.defaults["HTTP_X_CSRFTOKEN"] = secret
        answer = browser.raw(path, body, content_type)
        assert answer.status_code == status, answer.content
        assert status < 400 or answer.json()["field"] == "model"  # that of a source which needs one


class TestTwice:
    def test_rows_without_a_name_are_added_once_more_only_if_it_is_said(self, project, api) -> None:
        lines = b"".join(b'{"text": "text %d"}\n' % number for number in range(5))
        assert done(api.raw("items/?text_column=text", lines)).result["added"] == 5
        more = lines + b'{"text": "new"}\n'
        body = problem(api.raw("items/?text_column=text", more), 409)
        assert body["field"] == "add_duplicates"
        assert "5 are in the project already" in body["detail"]
        assert done(api.raw("items/?text_column=text&add_duplicates=true", more)).result["added"] == 6

    def test_labels_that_no_column_tells_are_not_kept_in_silence(self, project, api) -> None:
        file = api.raw("files/?name=t.csv", TABLE, "text/csv").json()["id"]
        answer = api.post("imports/", file=file, text_column="text", id_column="id", keep_labels=True)
        assert problem(answer, 400)["field"] == "keep_labels"
        assert not Job.objects.exists()
