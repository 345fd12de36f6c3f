"""The pages of an import: what is chosen, what it would do, what it did, and the way back."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Job, Project
from testbed.factories import add_member, make_image, make_image_items, make_items, make_project
from tests.annotation.imports.test_data_pages import HOSTILE
from tests.annotation.imports.test_import_archives import argilla
from tests.annotation.imports.test_import_excel import workbook
from tests.annotation.imports.test_import_parquet import table
from tests.annotation.imports.test_importers import make_zip

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
ROWS = "id,subject,body,label\n" + "".join(
    f"t{n},Subject {n},*Body* {n},{label}\n" for n, label in enumerate(["cat", "dog"] * 4)
)


def text(answer) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


def upload(client: Client, project: Project, content: bytes | str, name: str = "rows.csv") -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    path = reverse("import_upload", args=[project.slug])
    return client.post(path, {"file": SimpleUploadedFile(name, raw)}).url


def shown(page: str) -> list[str]:
    """The columns chosen in the selects of `text_column`, in their order."""
    selects = re.findall(r'<select name="text_column".*?</select>', page, re.DOTALL)
    return [found[1] if (found := re.search(r'value="([^"]*)" selected', one)) else "" for one in selects]


class TestMapping:
    def test_columns_are_proposed_with_the_reason(self, owner, project) -> None:
        page = text(owner.get(upload(owner, project, ROWS)))
        assert shown(page) == ["body"]
        assert "“body” is proposed for its name." in page
        assert "“id” is proposed: it tells the first rows apart." in page
        assert "<strong>label</strong></bdi>: its values are labels of this project" in page
        assert "category, 2 values" in page

    def test_an_id_that_is_empty_or_there_twice_is_warned_of_with_its_lines(self, owner, project) -> None:
        path = upload(owner, project, "id,x\n1,a\n2,b\n1,c\n")
        twice = text(owner.get(path))
        assert '<p class="note warning" role="alert">“id” is not proposed' in twice
        assert "line 2 and line 4 have the same" in twice
        chosen = text(owner.post(path, {"text_column": ["x"], "id_column": "id", "do": "look"}))
        assert "“id” is not proposed" not in chosen
        assert "line 4, column “id”: “1” is the id of line 2 of this file, too, which has" in chosen
        empty = text(owner.get(upload(owner, project, "id,x\n1,a\n,b\n")))
        assert "it is empty in line 3" in empty

    def test_a_column_of_different_codes_is_proposed_as_the_name(self, owner, project) -> None:
        rows = "".join(f"a text of some length {n % 3},{n / 4},T-{n}\n" for n in range(12))
        path = upload(owner, project, f"said,seconds,ticket\n{rows}")
        page = text(owner.get(path))
        assert "“ticket” is proposed: none of the first 12 rows has the same value as another." in page
        assert '<option value="ticket" selected' in page
        few = text(owner.get(upload(owner, project, f"said,seconds,ticket\n{rows[:80]}\n")))
        assert "is proposed: none" not in few
        # Rows that came under their lines' names would come again under others.
        owner.post(path, {"text_column": ["said"], "id_column": ""})
        again = text(owner.get(upload(owner, project, f"said,seconds,ticket\n{rows}x,1,T-99\n")))
        assert "is proposed: none" not in again

    @pytest.mark.parametrize("name", ["jsonl", "doccano", "label_studio"])
    def test_a_table_that_is_read_as_json_says_that_no_line_is_any(self, owner, project, name) -> None:
        page = text(owner.post(upload(owner, project, ROWS), {"format": name, "do": "look"}))
        assert "It cannot be read like that. None of the first rows is of the format" in page
        assert "line 1: This " in page
        assert "it is no JSON" in page
        assert "all columns seem to hold answers" not in page
        assert shown(page) == ["body"]

    @pytest.mark.parametrize("depth", [150, 200_000])
    def test_where_no_row_can_be_used_it_says_why(self, owner, project, depth) -> None:
        deep = '{"body": ' + "[" * depth + "]" * depth + "}"
        page = text(owner.get(upload(owner, project, deep, "deep.jsonl")))
        assert "nested" in page
        assert not any(words in page for words in ("Choose the column", 'id="import-now"'))

    def test_without_scripts_its_buttons_change_what_is_shown(self, owner, project) -> None:
        path = upload(owner, project, ROWS)
        form = {"text_column": ["body"], "id_column": "id", "format": "csv_comma", "text_format": "plain"}
        page = text(owner.post(path, {**form, "do": "add"}))
        assert shown(page) == ["body", ""]
        form["text_column"] = ["body", "subject", "id"]
        assert shown(text(owner.post(path, {**form, "do": "up:1"}))) == ["subject", "body", "id"]
        assert shown(text(owner.post(path, {**form, "do": "down:0"}))) == ["subject", "body", "id"]
        assert shown(text(owner.post(path, {**form, "do": "remove:1"}))) == ["body", "id"]
        for odd in ("remove:" + "9" * 5000, "up:0", "down:2", "up:99", "remove:-1", "up:x", "other"):
            assert shown(text(owner.post(path, {**form, "do": odd}))) == ["body", "subject", "id"]
        assert not Job.objects.exists()

    def test_the_first_item_is_shown_as_people_will_see_it(self, owner, project) -> None:
        path = upload(owner, project, ROWS)
        form = {"text_column": ["subject", "body"], "text_format": "markdown", "do": "look"}
        page = text(owner.post(path, form))
        assert '<dt dir="auto">subject</dt>' in page
        assert "<em>Body</em> 0" in page
        page = text(owner.post(path, {"text_column": ["body"], "text_format": "plain", "do": "look"}))
        assert '<div class="item-text" id="item-text" dir="auto" tabindex="0">*Body* 0</div>' in page
        project.refresh_from_db()
        assert project.text_format == "plain"

    def test_a_parquet_table_has_no_other_way_to_be_read(self, owner, project) -> None:
        path = upload(owner, project, table({"id": ["a"], "text": ["one"]}), "x.parquet")
        page = text(owner.get(path))
        assert "Parquet table" in page
        assert 'name="format"' not in page
        owner.post(path, {"text_column": ["text"], "id_column": "id", "text_format": "plain"})
        jobs.run(Job.objects.get().pk)
        assert project.items.get().text == "one"

    def test_several_columns_are_imported_as_fields(self, owner, project) -> None:
        path = upload(owner, project, ROWS)
        answer = owner.post(
            path,
            {"text_column": ["subject", "", "body"], "id_column": "id", "text_format": "markdown"},
        )
        jobs.run(Job.objects.get().pk)
        assert answer.url == reverse("job", args=[project.slug, Job.objects.get().pk])
        assert project.items.first().fields == [["subject", "Subject 0"], ["body", "*Body* 0"]]
        project.refresh_from_db()
        assert project.text_format == "markdown"

    def test_a_column_of_answers_is_warned_about_when_it_is_chosen(self, owner, project) -> None:
        path = upload(owner, project, ROWS)
        page = text(owner.post(path, {"text_column": ["body", "label"], "do": "look"}))
        assert "The column “label” seems to hold answers." in page
        assert "seems to hold answers. Whoever" not in text(owner.get(path))

    def test_nothing_chosen_is_said_beside_the_field(self, owner, project) -> None:
        path = upload(owner, project, ROWS)
        page = text(owner.post(path, {"text_column": [""], "id_column": ""}))
        assert page.count("Choose the column that people read.") == 2  # at the field, and what it would do
        assert not Job.objects.exists()

    def test_the_file_can_be_read_in_another_way(self, owner, project) -> None:
        path = upload(owner, project, "One, two; three\nFour; five\n", "words.csv")
        page = text(owner.post(path, {"format": "lines", "text_column": ["x"], "do": "look"}))
        assert "Plain lines, one item each" in page
        assert shown(page) == ["text"]
        page = text(owner.post(path, {"format": "json", "do": "look"}))
        assert "It cannot be read like that. line 1: A JSON list begins with [." in page
        owner.post(path, {"format": "lines", "text_column": ["text"], "id_column": ""})
        jobs.run(Job.objects.get().pk)
        assert list(project.items.values_list("text", flat=True)) == ["One, two; three", "Four; five"]

    def test_a_sheet_of_a_workbook_is_chosen(self, owner, project) -> None:
        content = workbook([["text"], ["first"]], [["id", "words"], [7, "second"]])
        page = upload(owner, project, content, "x.xlsx")
        seen = text(owner.get(page))
        assert '<option value="excel:Sheet 1" selected>Sheet 1</option>' in seen
        assert "The workbook has 2 sheets, of which an import reads one." in seen
        assert seen.index('name="format"') < seen.index('name="text_column"')
        chosen = {
            "format": "excel:Sheet 2",
            "id_column": "id",
            "text_column": ["words"],
            "text_format": "plain",
        }
        assert "second" in text(owner.post(page, {**chosen, "do": "look"}))
        owner.post(page, chosen)
        job = project.jobs.get(kind="import")
        assert job.params["format"] == "excel:Sheet 2"

    def test_an_unknown_format_or_one_of_images_is_not_taken_up(self, owner, project) -> None:
        path = upload(owner, project, ROWS)
        for name in ("zip_images", "../x", "csv"):
            assert "CSV table, commas" in text(owner.post(path, {"format": name, "do": "look"}))

    def test_what_it_would_do_is_counted(self, owner, project) -> None:
        path = upload(owner, project, ROWS + "t0,other,content,\nt9,,*Body* 1,\n,x,y,\n")
        page = text(owner.get(path))
        figures = dict(re.findall(r"<dt>([^<]+)</dt><dd>([\d,]+)</dd>", page))
        assert figures["Rows"] == "11"
        page = text(owner.post(path, {"text_column": ["body"], "id_column": "id", "do": "look"}))
        figures = dict(re.findall(r"<dt>([^<]+)</dt><dd>([\d,]+)</dd>", page))
        assert figures == {
            "Rows": "11",
            "New items": "9",
            "There already": "0",
            "Of the new, same content as another": "1",
            "Cannot be used": "2",
        }
        assert "line 10, column “id”: “t0” is the id of line 2 of this file, too, which has" in page

    def test_what_was_kept_of_labels_and_what_was_none_is_counted_in_the_end(self, owner, project) -> None:
        record = {
            "id": "r1",
            "fields": {"text": "one"},
            "responses": {
                "topic": [
                    {"value": value, "user_id": f"u{place}", "status": status}
                    for place, (value, status) in enumerate(
                        [
                            ("cat", "submitted"),
                            ("Shipping", "submitted"),
                            ("dog", "draft"),
                            (None, "discarded"),
                        ]
                    )
                ]
            },
        }
        path = upload(owner, project, make_zip(argilla(record)), "set.zip")
        form = {"text_column": ["text"], "id_column": "id", "text_format": "plain", "keep_labels": "on"}
        assert owner.post(path, form).status_code == 302
        job = Job.objects.get()
        jobs.run(job.pk)
        page = text(owner.get(reverse("job", args=[project.slug, job.pk])))
        figures = dict(re.findall(r"<dt>([^<]+)</dt><dd>([\d,]+)</dd>", page))
        assert figures["Labels kept"] == "1"
        assert figures["Labels that could not be read"] == "1"
        assert figures["Responses that are no labels (drafts, discarded, skipped)"] == "2"
        assert figures["Lines that could not be used"] == "0"
        assert "1 remark on lines or labels of the file." in page
        assert "The rest of the file" not in page

    def test_hostile_names_and_cells_stay_text(self, owner, project) -> None:
        cell = HOSTILE.replace('"', '""')
        path = upload(owner, project, f'"{cell}","b{cell}"\n"x {cell}","y"\n')
        page = text(owner.post(path, {"text_column": [HOSTILE, f"b{HOSTILE}"], "do": "look"}))
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert page.count("&lt;script&gt;") > 5
        assert "14" not in re.findall(r"\{\{.*?\}\}|<dt[^>]*>(14)</dt>", page)

    def test_images_ask_for_no_column(self, owner, project) -> None:
        path = upload(owner, project, make_zip({"a.png": make_image(), "b.png": make_image(2)}), "x.zip")
        page = text(owner.get(path))
        assert "What people read" not in page
        assert 'name="format"' not in page
        assert page.count('<img class="thumbnail" src="data:image/webp;base64,') == 2
        assert "as people will see it" not in page  # nothing is stored yet that could be shown
        assert owner.post(path, {"id_column": ""}).status_code == 302

    def test_images_for_a_text_project_and_texts_for_an_image_project_are_warned_of(
        self, owner, project
    ) -> None:
        images, texts = make_zip({"a.png": make_image(1)}), "text\nhello\n"
        of_texts, of_images = "This is a text project", "This is an image project"
        for content, name in ((images, "pictures.zip"), (texts, "rows.csv")):
            page = text(owner.get(upload(owner, project, content, name)))
            assert of_texts not in page
            assert of_images not in page
        make_items(project, 2)
        page = text(owner.get(upload(owner, project, images, "pictures.zip")))
        assert of_texts in page
        assert f'href="{reverse("project_new")}"' in page
        assert of_texts not in text(owner.get(upload(owner, project, texts)))
        make_image_items(project, 1)
        assert of_texts not in text(owner.get(upload(owner, project, images, "pictures.zip")))
        project.items.filter(image=None).delete()
        assert of_images in text(owner.get(upload(owner, project, texts)))

    def test_how_texts_are_shown_stays_once_people_label(self, owner, waiting) -> None:
        path = upload(owner, waiting, ROWS)
        assert 'name="text_format"' not in text(owner.get(path))
        owner.post(path, {"text_column": ["body"], "id_column": "id", "text_format": "markdown"})
        waiting.refresh_from_db()
        assert waiting.text_format == "plain"

    def test_many_columns_with_long_names(self, owner, project) -> None:
        names = [f"{'name ' * 63}{number:05d}" for number in range(500)]
        path = upload(owner, project, ",".join(names) + "\n" + ",".join("x" for _ in names) + "\n")
        page = text(owner.get(path))
        assert page.count(names[499]) == 5  # twice in each of two selects, and in the table
        form = {"text_column": names[:3], "id_column": ""}
        assert owner.post(path, form).status_code == 302
        jobs.run(Job.objects.get().pk)
        assert project.items.get().fields == [[name, "x"] for name in names[:3]]


class TestUpload:
    def test_by_htmx_the_next_page_is_told_in_a_header(self, owner, project) -> None:
        path = reverse("import_upload", args=[project.slug])
        file = SimpleUploadedFile("rows.csv", ROWS.encode())
        answer = owner.post(path, {"file": file}, headers={"HX-Request": "true"})
        assert answer.status_code == 200
        assert re.fullmatch(rf"{path}\d+/", answer.headers["HX-Redirect"])
        bad = owner.post(path, {"text": " "}, headers={"HX-Request": "true"})
        assert "Choose a file or paste some rows." in text(bad)

    @pytest.mark.parametrize(
        ("pasted", "words"),
        [
            ("a\tb\r\n1\t2\r\n", "TSV table"),
            ("a,b\n1,2\n3,4", "CSV table, commas"),
            ("It rains, today.\nIt pours.\nOld man, old man, snores.", "Plain lines"),
            ('[{"a": 1},\n {"a": 2}]', "JSON list"),
            ('{"a": 1}\n{"a": 2}', "JSON Lines"),
        ],
    )
    def test_pasted_text_is_told_apart(self, owner, project, pasted, words) -> None:
        answer = owner.post(reverse("import_upload", args=[project.slug]), {"text": pasted})
        assert words in text(owner.get(answer.url))

    def test_two_pasted_texts_do_not_get_in_each_others_way(self, owner, project) -> None:
        for words in ("one line\nmore", "another line\nless"):
            page = owner.post(reverse("import_upload", args=[project.slug]), {"text": words}).url
            owner.post(page, {"text_column": ["text"], "id_column": "", "format": "lines"})
            jobs.run(Job.objects.order_by("-pk")[0].pk)
        assert project.items.count() == 4


class TestWayBack:
    @pytest.fixture
    def imported(self, owner, project) -> Job:
        owner.post(upload(owner, project, ROWS), {"text_column": ["body"], "id_column": "id"})
        job = Job.objects.get()
        jobs.run(job.pk)
        return job

    def test_it_asks_and_removes(self, owner, project, imported) -> None:
        page = text(owner.get(reverse("job", args=[project.slug, imported.pk])))
        assert "Take this import back</button>" in page
        assert 'data-ask="Remove the items that this import brought?' in page
        answer = owner.post(reverse("import_undo", args=[project.slug, imported.pk]))
        undo = Job.objects.get(kind="import_undo")
        assert answer.url == reverse("job", args=[project.slug, undo.pk])
        jobs.run(undo.pk)
        assert not project.items.exists()
        page = text(owner.get(reverse("job", args=[project.slug, imported.pk])))
        assert "This import was taken back" in page
        assert "Take this import back" not in page

    def test_in_use_it_says_why_it_stays(self, owner, project, imported) -> None:
        items = [item.pk for item in project.items.all()[:1]]
        queue.create_batch(project=project, item_ids=items, blind=True, priority=1, entropy=1)
        page = text(owner.get(reverse("job", args=[project.slug, imported.pk])))
        assert (
            "It cannot be taken back: A run, an answer, a label or a comment rests on some of these items"
            in page
        )
        assert "Take this import back</button>" not in page
        answer = owner.post(reverse("import_undo", args=[project.slug, imported.pk]), follow=True)
        assert "rests on some of these items" in text(answer)
        assert project.items.count() == 8

    def test_other_jobs_and_other_projects(self, owner, project, imported) -> None:
        other = make_project(project.created_by)
        path = reverse("import_undo", args=[other.slug, imported.pk])
        assert owner.post(path).status_code == 404
        job = Job.objects.create(project=project, kind="deliver_run", state="done", result={"added": 1})
        answer = owner.post(reverse("import_undo", args=[project.slug, job.pk]), follow=True)
        assert "Only an import that has ended can be taken back." in text(answer)

    def test_a_viewer_sees_no_button(self, project, imported, client_of) -> None:
        page = text(
            client_of(add_member(project, "viewer")).get(reverse("job", args=[project.slug, imported.pk]))
        )
        assert "Take this import back" not in page
        assert "cannot be taken back" not in page


def test_where_not_all_problems_are_kept_it_says_so(owner, project, monkeypatch) -> None:
    path = upload(owner, project, "id,text\nx,good\na,\nb,\n")
    owner.post(path, {"text_column": ["text"], "id_column": "id", "text_format": "plain"})
    job = Job.objects.get()
    jobs.run(job.pk)
    addresses = [reverse(name, args=[project.slug, job.pk]) for name in ("job", "job_problems")]
    for most, said in ((3, False), (2, True)):
        monkeypatch.setattr("annotation.projects.jobs_views.MAX_PROBLEMS", most)
        page = text(owner.get(addresses[0]))
        lines = b"".join(owner.get(addresses[1]).streaming_content).decode().splitlines()
        assert ("no more are kept" in page, "no more are kept" in lines[-1]) == (said, said)


class TestTwice:
    def test_the_page_asks_before_rows_are_added_once_more(self, owner, project) -> None:
        rows = "text\n" + "".join(f"text {number}\n" for number in range(5))
        form = {"text_column": ["text"], "id_column": ""}
        first = upload(owner, project, rows, "may.csv")
        assert "add_duplicates" not in text(owner.get(first))
        owner.post(first, form)
        jobs.run(Job.objects.get().pk)
        again = upload(owner, project, rows + "a new one\n", "june.csv")
        assert "Of 6 rows that were looked at 5 are in the project already" in text(owner.get(again))
        refused = text(owner.post(again, form))
        assert 'role="alert">Of 6 rows' in refused
        assert 'name="add_duplicates"' in refused
        assert Job.objects.count() == 1
        assert owner.post(again, {**form, "add_duplicates": "on"}).status_code == 302
        jobs.run(Job.objects.latest("pk").pk)
        assert project.items.count() == 11

    def test_it_says_of_which_files_labels_are_kept(self, owner, project) -> None:
        assert "do not say which column has them" in text(owner.get(upload(owner, project, ROWS)))
