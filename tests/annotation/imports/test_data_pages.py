"""Pages of the data: imports, sources, items, images."""

import io
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.common import audit
from annotation.common.files import store_file
from annotation.jobs import jobs
from annotation.models import Item, Job, JobProblem, Project, StoredFile
from routing.models import ItemScore
from testbed.factories import make_image, make_image_items, make_items
from testbed.worlds import make_world
from tests.annotation.imports.test_importers import make_zip

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7|add:7 }}"


def text(answer) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


class TestImport:
    def upload(self, client: Client, project: Project, content: bytes, name: str = "rows.csv"):
        file = SimpleUploadedFile(name, content)
        return client.post(reverse("import_upload", args=[project.slug]), {"file": file})

    def test_a_heading_of_one_column_that_reads_like_an_item_is_asked_about(self, owner, project) -> None:
        rows = "Where is my parcel\nIt came broken\nThanks\n"
        doubt = "The first line is taken as the name of the column: “Where is my parcel”"
        assert doubt in text(owner.get(self.upload(owner, project, rows.encode()).url))
        for heading in ("said", "body of mail,id"):
            page = text(owner.get(self.upload(owner, project, f"{heading}\n{rows}".encode()).url))
            assert "The first line is taken" not in page

    def test_a_file_is_shown_mapped_and_imported(self, owner, project) -> None:
        answer = self.upload(owner, project, b"id,text,more\na,hello,1\nb,world,2\n")
        page = text(owner.get(answer.url))
        assert "hello" in page
        assert '<option value="text" selected>' in page
        answer = owner.post(answer.url, {"text_column": "text", "id_column": "id"})
        job = Job.objects.get(kind="import")
        assert answer.url == reverse("job", args=[project.slug, job.pk])
        jobs.run(job.pk)
        assert list(project.items.values_list("external_id", "text")) == [("a", "hello"), ("b", "world")]
        assert "Added" in text(owner.get(answer.url))

    def test_pasted_rows_count_as_a_file(self, owner, project) -> None:
        url = reverse("import_upload", args=[project.slug])
        answer = owner.post(url, {"text": '{"text": "one"}\r\n{"text": "two"}'})
        assert "one" in text(owner.get(answer.url))

    @pytest.mark.parametrize(
        ("content", "words"), [(b"", "empty"), (b"\xff\xfe\x00\xd8bin,\x00", "UTF-8"), (b"text\n", "no rows")]
    )
    def test_a_file_that_cannot_be_read_says_why(self, owner, project, content: bytes, words: str) -> None:
        assert words in text(self.upload(owner, project, content))

    def test_a_text_in_no_known_encoding_is_refused(self, owner, project) -> None:
        utf16 = "café".encode("utf-16-le") + b"\xd8\xd8\xd8\xd8" + "abcdef".encode("utf-16-le")
        answer = owner.get(self.upload(owner, project, utf16).url, follow=True)
        assert "This text is in no encoding that is known here." in text(answer)

    def test_the_format_is_told_in_words(self, owner, project) -> None:
        files = [
            (b"id,text\na,one\n", "CSV table, commas between cells"),
            (b"id\ttext\na\tone\n", "TSV table, tabs between cells"),
            (b'{"text": "one"}\n', "JSON Lines"),
            (make_zip({"a.png": make_image()}), "Images in a zip archive"),
        ]
        for content, words in files:
            assert f"· {words}" in text(owner.get(self.upload(owner, project, content, "rows").url))

    def test_an_archive_without_images_is_refused(self, owner, project) -> None:
        page = text(self.upload(owner, project, make_zip({"a.txt": b"one", "b.csv": b"x"}), "texts.zip"))
        assert "There is no image in this zip archive that can be read. a.txt:" in page
        mixed = make_zip({**{f"{n}.txt": b"about" for n in range(9)}, "z.png": make_image()})
        assert self.upload(owner, project, mixed, "mixed.zip").status_code == 302

    def test_an_archive_in_an_archive_is_to_be_unpacked_first(self, owner, project) -> None:
        inner = make_zip({"a.png": make_image()})
        page = text(self.upload(owner, project, make_zip({"in.zip": inner, "README.md": b"x"}), "out.zip"))
        assert "This zip archive holds another archive (in.zip), which is not opened. Unpack it" in page
        assert "no image" not in page
        beside = make_zip({"in.zip": inner, "a.png": make_image()})
        look = text(owner.get(self.upload(owner, project, beside, "out.zip").url))
        assert "in.zip: This is another archive, which is not opened. Unpack it first." in look

    def test_nothing_chosen(self, owner, project) -> None:
        page = text(owner.post(reverse("import_upload", args=[project.slug]), {"text": "  "}))
        assert "Choose a file or paste some rows." in page

    def test_problems_are_listed_and_can_be_downloaded(self, owner, project) -> None:
        job = Job.objects.create(project=project, kind="import", state="done", result={"problems": 2})
        JobProblem.objects.create(job=job, where="line 3", line=3, message="=cmd()")
        JobProblem.objects.create(job=job, where="line 7, column “=a”", line=7, column="=a", message=HOSTILE)
        page = text(owner.get(reverse("job", args=[project.slug, job.pk])))
        assert "2 remarks on lines or labels of the file." in page
        assert "<script>alert" not in page
        answer = owner.get(reverse("job_problems", args=[project.slug, job.pk]))
        lines = b"".join(answer.streaming_content).decode().splitlines()
        assert lines[:2] == ["line,column,where,problem", "3,,line 3,'=cmd()"]
        assert lines[2].startswith('7,\'=a,"line 7, column “=a”",')


class TestTooLarge:
    """Refused by what the request says of itself; of its content nothing is there to be read."""

    def test_an_upload_over_the_limit(self, owner, project, settings) -> None:
        settings.HYPAC_MAX_UPLOAD_BYTES = 10_000_000
        path = reverse("import_upload", args=[project.slug])
        answer = owner.post(path, CONTENT_LENGTH="20000000")
        assert answer.status_code == 413
        assert "at most 10.5" in answer.content.decode()
        file = SimpleUploadedFile("lines.csv", b"text\n" + b"hello\n" * 1_000_000)
        assert owner.post(path, {"file": file}).status_code == 302

    def test_nobody_else_sends_more_than_a_form(self, owner, project) -> None:
        upload = reverse("import_upload", args=[project.slug])
        assert Client().post("/login/", CONTENT_LENGTH="6000000").status_code == 413
        assert Client().post("/login/", CONTENT_LENGTH="9" * 5_000).status_code == 413
        assert Client().post(upload, CONTENT_LENGTH="6000000").status_code == 413
        assert owner.post(reverse("project_new"), CONTENT_LENGTH="6000000").status_code == 413
        api = reverse("api_queue_claim", args=[project.slug])
        answer = owner.post(api, content_type="application/json", CONTENT_LENGTH="6000000")
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == "application/problem+json"


class TestNamesThatTemplatesKnow:
    """A dictionary with a key "items" must not be taken for its own method."""

    def test_in_the_audit_trail(self, owner, project) -> None:
        audit.record(project=project, actor=None, action="source.tried", target="", data={"items": 5})
        assert "items: 5" in text(owner.get(reverse("audit", args=[project.slug])))

    def test_as_an_imported_column(self, owner, project) -> None:
        (item,) = make_items(project, 1)
        Item.objects.filter(pk=item.pk).update(data={"items": "7 pieces"})
        project.columns = ["items"]
        project.save()
        page = text(owner.get(reverse("item", args=[project.slug, item.pk])))
        assert "7 pieces" in page


class TestSources:
    def test_they_are_moved_by_buttons(self, client_of) -> None:
        world = make_world(60)
        client = client_of(world.manager)
        page = text(client.get(reverse("sources", args=[world.project.slug])))
        assert 'aria-label="Move Model 1 down"' in page
        first = world.project.sources.get(position=1)
        path = reverse("source_move", args=[world.project.slug, first.pk])
        page = text(client.post(path, {"direction": "down"}, follow=True))
        assert page.index("<bdi>Model 2") < page.index("<bdi>Model 1")
        world.start(m=40)
        page = text(client.post(path, {"direction": "up"}, follow=True))
        assert "Run 1 is under way with the models in this order." in page
        assert page.index("<bdi>Model 2") < page.index("<bdi>Model 1")

    def test_a_price_list_is_asked_for_beside_its_fields(self, client_of) -> None:
        world = make_world(10, change=lambda index, row: row.update(read="50", written=str(index)))
        client = client_of(world.manager)
        source = world.project.sources.get(position=1)
        path = reverse("source_edit", args=[world.project.slug, source.pk])
        page = text(client.get(path))
        for words in (
            "One price per label",
            "Generated tokens",
            "Price list of an API",
            "Time of a GPU, by the hour",
        ):
            assert f"<strong>{words}</strong>" in page
        assert "Left empty: 1000000." in page
        form = {
            "name": source.name,
            "backend": "recorded",
            **source.params,
            "cost_per_label": "2",
            "cost_function": "api_price",
            "input": "0.15",
        }
        page = text(client.post(path, form))
        assert "do not tell" not in page
        assert page.index('id="id_output_error"') > page.index('name="output"')
        assert "The price of the output tokens is needed" in page
        page = text(client.post(path, form | {"output": "0.6"}))
        assert page.index('id="id_cost_function_error"') > page.index('name="cost_function"')
        assert "do not tell how many tokens were read and how many tokens were generated" in page
        assert re.search(r'<details class="part"[^>]* open>', page)  # the columns that it asks for
        page = text(client.post(path, form | {"output": "0,6"}))
        assert "The price of the output tokens must be a number such as 0.002, not &#x27;0,6&#x27;" in page
        whole = form | {"output": "0.6", "tokens_in_column": "read", "tokens_out_column": "written"}
        page = text(client.post(path, whole, follow=True))
        assert (
            "on average; Price list of an API: price of the input tokens 0.15, "
            "price of the output tokens 0.6, number of tokens that the prices are for 1,000,000" in page
        )
        page = text(client.get(path))
        assert 'name="output" value="0.6"' in page
        assert re.search(r'<details class="part"[^>]* open>', page)

    def test_a_first_model_without_a_score_is_saved_with_a_warning(self, client_of) -> None:
        world = make_world(10)
        client = client_of(world.manager)
        first, second = world.project.sources.order_by("position")
        for source, warned in ((second, False), (first, True)):
            form = {
                "name": source.name,
                "backend": "recorded",
                "cost_per_label": "2",
                "cost_function": "flat",
            }
            form |= {"label_column": source.params["label_column"]}
            path = reverse("source_edit", args=[world.project.slug, source.pk])
            page = text(client.post(path, form, follow=True))
            assert f"{source.name} is saved." in page
            assert ("comes first and names no column of confidences" in page) is warned

    def test_prices_of_another_way_of_counting_are_left_out(self, client_of) -> None:
        world = make_world(10)
        source = world.project.sources.get(position=1)
        path = reverse("source_edit", args=[world.project.slug, source.pk])
        form = {"name": source.name, "backend": "recorded", **source.params, "cost_per_label": "2"}
        client_of(world.manager).post(path, form | {"cost_function": "flat", "per_hour": "9"})
        source.refresh_from_db()
        assert (source.cost_per_label, source.cost_function, source.prices) == (2, "flat", {})


class TestItem:
    def test_a_cost_that_was_not_measured_says_so(self, client_of) -> None:
        world = make_world(60, change=lambda index, row: row.update(written=""))
        source = world.project.sources.get(position=1)
        form = {"name": source.name, "backend": "recorded", **source.params, "tokens_out_column": "written"}
        client = client_of(world.manager)
        path = reverse("source_edit", args=[world.project.slug, source.pk])
        client.post(path, form | {"cost_per_label": "3", "cost_function": "tokens"})
        world.analysed(m=40)
        item = world.project.items.first()
        page = text(client.get(reverse("item", args=[world.project.slug, item.pk])))
        assert "the number of tokens generated is not known; the price per label was charged" in page
        assert "Recorded confidence" in page

    def test_an_answer_without_a_confidence_shows_no_number_for_it(self, client_of) -> None:
        world = make_world(60, change=lambda index, row: row.update(confidence2=""))
        world.analysed(m=40)
        scores = ItemScore.objects.filter(prediction__source__position=2)
        item = scores.exclude(reason="")[0].prediction.item
        page = text(client_of(world.manager).get(reverse("item", args=[world.project.slug, item.pk])))
        assert page.count("no score") == 1
        assert "1.0000" not in page


class TestImages:
    def test_an_image_is_served_as_nothing_else(self, owner, project) -> None:
        item = make_image_items(project, 1)[0]
        url = reverse("image", args=[project.slug, item.image.sha256])
        answer = owner.get(url)
        assert b"".join(answer.streaming_content) == make_image(0)
        assert answer.headers["Content-Type"] == "image/png"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert answer.headers["Cache-Control"] == "private, max-age=31536000, immutable"
        again = owner.get(url, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304

    def test_other_files_are_not_served(self, owner, project) -> None:
        stored = store_file(
            project=project, content=io.BytesIO(b"text\nx\n"), original_name="a.csv", media_type="text/csv"
        )
        assert owner.get(reverse("image", args=[project.slug, stored.sha256])).status_code == 404
        StoredFile.objects.update(media_type="image/png")  # whatever it claims to be: no item has it
        assert owner.get(reverse("image", args=[project.slug, stored.sha256])).status_code == 404
