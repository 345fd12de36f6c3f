"""Each page shows what it is for; forms keep what was typed; hostile text stays text; images stay images."""

import io
import json

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation import jobs, queue
from annotation.models import Job, JobProblem, Project, Skip, StoredFile, User
from annotation.services.files import store_file
from annotation.views.markdown import render
from routing.models import Delivery, DeliveryFile, ItemScore
from tests.annotation.test_importers import make_zip
from tests.factories import add_member, make_image, make_image_items, make_items, make_project, make_user
from tests.routing.worlds import make_world

pytestmark = pytest.mark.django_db
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7|add:7 }}"


def text(answer) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


class TestProjects:
    def test_without_one_it_says_what_to_do(self, client_of) -> None:
        page = text(client_of(make_user()).get("/"))
        assert "No project yet" in page
        assert reverse("project_new") in page

    def test_only_ones_own_are_listed(self, owner, project) -> None:
        other = make_project(name="Somebody else's")
        page = text(owner.get("/"))
        assert project.name in page
        assert other.slug not in page

    def test_a_new_one_leads_to_the_import(self, client_of) -> None:
        client = client_of(make_user())
        data = {"name": "Birds", "labels": "owl\n\n hen \n", "human_cost": "0.5", "currency": "EUR"}
        answer = client.post(reverse("project_new"), data)
        project = Project.objects.get(name="Birds")
        assert answer.url == reverse("import_upload", args=[project.slug])
        assert list(project.choices.values_list("name", flat=True)) == ["owl", "hen"]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"name": ""}, "required"),
            ({"labels": "only one"}, "at least two"),
            ({"labels": "a\nA"}, "there twice"),
            ({"human_cost": "-1"}, "A price cannot be negative."),
            ({"human_cost": "much"}, "Enter a number"),
        ],
    )
    def test_what_was_typed_stays_when_something_is_wrong(self, client_of, change, words: str) -> None:
        client = client_of(make_user())
        data = {"name": "Birds & co", "labels": "owl\nhen", "guidelines": "Look **well**", "human_cost": "1",
                "currency": "EUR", **change}  # fmt: skip
        page = text(client.post(reverse("project_new"), data))
        assert words in page
        assert "Look **well**" in page
        assert "EUR" in page
        assert not Project.objects.exists()

    def test_settings_change_names_keys_and_colours(self, owner, project) -> None:
        url = reverse("project_settings", args=[project.slug])
        rows = list(project.choices.values("key", "name", "hotkey", "color"))
        data = {"form": "choices", "choices-TOTAL_FORMS": "3", "choices-INITIAL_FORMS": "2"}
        for index, row in enumerate([*rows, {"key": "", "name": "emu", "hotkey": "e", "color": "#112233"}]):
            data |= {f"choices-{index}-{name}": value for name, value in row.items()}
        data["choices-0-name"] = "kitten"
        assert owner.post(url, data).status_code == 302
        assert list(project.choices.values_list("key", "name", "hotkey")) == [
            ("cat", "kitten", "1"), ("dog", "dog", "2"), ("emu", "emu", "e"),
        ]  # fmt: skip

    def test_settings_say_what_is_wrong_with_a_key(self, owner, project) -> None:
        data = {"form": "choices", "choices-TOTAL_FORMS": "2", "choices-INITIAL_FORMS": "2",
                "choices-0-key": "cat", "choices-0-name": "cat", "choices-0-hotkey": "u",
                "choices-1-key": "dog", "choices-1-name": "dog", "choices-1-hotkey": "d"}  # fmt: skip
        assert "has a meaning on the annotation page" in text(
            owner.post(reverse("project_settings", args=[project.slug]), data)
        )


class TestImport:
    def upload(self, client: Client, project: Project, content: bytes, name: str = "rows.csv"):
        file = SimpleUploadedFile(name, content)
        return client.post(reverse("import_upload", args=[project.slug]), {"file": file})

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
        ("content", "words"), [(b"", "empty"), (b"\xff\xfe\x00\x01bin,\x00", "UTF-8"), (b"text\n", "no rows")]
    )
    def test_a_file_that_cannot_be_read_says_why(self, owner, project, content: bytes, words: str) -> None:
        assert words in text(self.upload(owner, project, content))

    def test_a_line_that_is_no_utf_8_is_named(self, owner, project) -> None:
        page = text(self.upload(owner, project, b"id,text\na,one\nb,caf\xe9\n"))
        assert "line 3: This is not UTF-8" in page

    def test_the_format_is_told_in_words(self, owner, project) -> None:
        files = [
            (b"id,text\na,one\n", "CSV table"),
            (b"id\ttext\na\tone\n", "TSV table"),
            (b'{"text": "one"}\n', "JSON Lines"),
            (make_zip({"a.png": make_image()}), "Images in a zip archive"),
        ]
        for content, words in files:
            assert f"· {words}</p>" in text(owner.get(self.upload(owner, project, content, "rows").url))

    def test_an_archive_without_images_is_refused(self, owner, project) -> None:
        page = text(self.upload(owner, project, make_zip({"a.txt": b"one", "b.csv": b"x"}), "texts.zip"))
        assert "There is no image in this zip archive that can be read. a.txt:" in page
        mixed = make_zip({**{f"{n}.txt": b"about" for n in range(9)}, "z.png": make_image()})
        assert self.upload(owner, project, mixed, "mixed.zip").status_code == 302

    def test_nothing_chosen(self, owner, project) -> None:
        page = text(owner.post(reverse("import_upload", args=[project.slug]), {"text": "  "}))
        assert "Choose a file or paste some rows." in page

    def test_problems_are_listed_and_can_be_downloaded(self, owner, project) -> None:
        job = Job.objects.create(project=project, kind="import", state="done", result={"problems": 2})
        JobProblem.objects.create(job=job, where="line 3", message="=cmd()")
        JobProblem.objects.create(job=job, where="line 7", message=HOSTILE)
        page = text(owner.get(reverse("job", args=[project.slug, job.pk])))
        assert "2 problems" in page
        assert "<script>alert" not in page
        answer = owner.get(reverse("job_problems", args=[project.slug, job.pk]))
        lines = b"".join(answer.streaming_content).decode().splitlines()
        assert lines[:2] == ["where,problem", "line 3,'=cmd()"]


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
        assert Client().post(upload, CONTENT_LENGTH="6000000").status_code == 413
        assert owner.post(reverse("project_new"), CONTENT_LENGTH="6000000").status_code == 413
        api = reverse("api_queue_claim", args=[project.slug])
        answer = owner.post(api, content_type="application/json", CONTENT_LENGTH="6000000")
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == "application/problem+json"


class TestJobs:
    def test_the_part_stops_asking_once_the_job_has_ended(self, owner, project) -> None:
        job = Job.objects.create(project=project, kind="import", state="running", done=5, total=10)
        url = reverse("job", args=[project.slug, job.pk])
        part = owner.get(url, headers={"HX-Request": "true"})
        assert part.status_code == 200
        assert "5 of 10" in part.content.decode()
        Job.objects.update(state="failed", error="No room on the disk. Make some.")
        part = owner.get(url, headers={"HX-Request": "true"})
        assert part.status_code == 286
        assert "No room on the disk" in part.content.decode()

    def test_a_failed_job_is_told_on_the_overview_and_started_again(self, owner, project) -> None:
        job = Job.objects.create(project=project, kind="import", state="failed", error="No room on the disk.")
        page = text(owner.get(reverse("overview", args=[project.slug])))
        assert "No room on the disk." in page
        owner.post(reverse("job_retry", args=[project.slug, job.pk]))
        job.refresh_from_db()
        assert job.state == "queued"

    def test_the_overview_stops_asking_when_nothing_moves(self, owner, project) -> None:
        part = owner.get(reverse("overview", args=[project.slug]), headers={"HX-Request": "true"})
        assert part.status_code == 286


class TestMembers:
    def test_a_password_is_shown_once(self, owner, project) -> None:
        url = reverse("member_create", args=[project.slug])
        answer = owner.post(url, {"new-username": "bea", "new-role": "annotator"})
        page = text(answer)
        password = page.split('id="password">')[1].split("<")[0]
        assert User.objects.get(username="bea").check_password(password)
        assert "no-store" in answer.headers["Cache-Control"]
        assert password not in text(owner.get(reverse("members", args=[project.slug])))
        assert password not in json.dumps(list(project.audit_events.values("action", "target", "data")))

    def test_a_name_that_nobody_has_is_kept_and_explained(self, owner, project) -> None:
        url = reverse("member_add", args=[project.slug])
        page = text(owner.post(url, {"add-username": "nobody-here", "add-role": "viewer"}))
        assert "There is no account" in page
        assert 'value="nobody-here"' in page

    def test_the_last_owner_stays(self, owner, project) -> None:
        args = [project.slug, project.created_by_id]
        answer = owner.post(reverse("member_remove", args=args), follow=True)
        assert project.memberships.filter(user=project.created_by).exists()
        assert [url for url, _ in answer.redirect_chain] == [reverse("members", args=[project.slug])]
        assert "only owner" in text(answer)
        assert "role:" not in text(answer)

    def test_an_owner_who_steps_back_goes_where_the_new_role_may(self, owner, project) -> None:
        add_member(project, "owner")
        args = [project.slug, project.created_by_id]
        changed = owner.post(reverse("member_role", args=args), {"role": "viewer"})
        assert changed.headers["Location"] == reverse("members", args=[project.slug])


class TestPlan:
    def test_every_field_says_what_is_wrong_and_keeps_what_was_typed(self, client_of) -> None:
        world = make_world(60)
        client = client_of(world.manager)
        url = reverse("plan", args=[world.project.slug])
        good = {"epsilon": "0.1", "alpha": "0.1", "target": "dataset", "m": "40", "p": "0.9"}
        for name, value, words in [
            ("epsilon", "5", "must lie between 0 and 1"),
            ("alpha", "0", "must lie between 0 and 1"),
            ("m", "61", "cannot be drawn from a pool of 60"),
            ("p", "1.5", "at most 1"),
            ("epsilon", "five", "Write a number such as 0.05."),
        ]:
            page = text(client.post(url, {**good, name: value}))
            assert words in page, name
            assert f'value="{value}"' in page
            part = text(client.get(reverse("plan_outlook", args=[world.project.slug]), {**good, name: value}))
            assert words in part, name
        assert not world.project.runs.exists()
        assert client.post(url, good).url == reverse("run", args=[world.project.slug, 1])
        assert "is under way" in text(client.post(url, good))
        assert world.project.runs.count() == 1

    def test_a_plan_that_cannot_certify_anything_starts_only_when_confirmed(self, client_of) -> None:
        world = make_world(60)
        client = client_of(world.manager)
        url = reverse("plan", args=[world.project.slug])
        hopeless = {"epsilon": "0.01", "alpha": "0.01", "target": "dataset", "m": "20", "p": "0.9"}
        words = "Start anyway: people will label everything"
        assert words not in text(client.get(url))
        page = text(client.post(url, hopeless))
        assert words in page
        assert "Nothing was started" in page
        assert "Too few labels to certify anything" in page
        assert 'name="m" value="20"' in page
        assert not world.project.runs.exists()
        part = text(client.get(reverse("plan_outlook", args=[world.project.slug]), hopeless))
        assert "Too few labels to certify anything" in part
        answer = client.post(url, {**hopeless, "anyway": "on"})
        assert answer.url == reverse("run", args=[world.project.slug, 1])
        assert world.project.runs.get().m == 20


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


class TestDeliveries:
    def test_a_file_that_the_storage_has_lost_is_said_to_be_gone(self, client_of) -> None:
        world = make_world(60)
        delivery = Delivery.objects.create(run=world.routed(m=40), number=1, rows=1, blanks=0)
        stored = store_file(
            project=world.project, content=io.BytesIO(b"x"), original_name="x.csv", media_type="text/csv"
        )
        DeliveryFile.objects.create(delivery=delivery, name="labels.csv", file=stored)
        default_storage.delete(stored.storage_name)
        path = reverse("delivery_file", args=[world.project.slug, delivery.pk, "labels.csv"])
        page = text(client_of(world.manager).get(path, follow=True))
        assert "no longer in the storage. Make a new delivery." in page


class TestRun:
    def test_the_report_and_its_downloads(self, client_of) -> None:
        world = make_world(200)
        run = world.complete(m=120)
        client = client_of(world.manager)
        page = text(client.get(reverse("run", args=[world.project.slug, run.number])))
        for words in ("What is certified", "Net saving", "does not hold its stated level", "<title id=",
                      "The same as a table", "Ledger", "Every item has its label."):  # fmt: skip
            assert words in page, words
        downloaded = client.get(reverse("run_certificate", args=[world.project.slug, run.number]))
        assert downloaded.content.decode() == run.certificate.document
        draw = client.get(reverse("run_draw", args=[world.project.slug, run.number]))
        assert draw.content.decode() == run.certificate.draw_lines
        run.invalid_reason = "A calibration label was changed."
        run.save(update_fields=["invalid_reason"])
        page = text(client.get(reverse("run", args=[world.project.slug, run.number])))
        assert "This run is no longer valid." in page
        assert "A calibration label was changed." in page

    def test_the_next_step_after_a_delivery_is_the_same_as_on_the_overview(self, client_of) -> None:
        world = make_world(60)
        run = world.complete(m=40)
        client = client_of(world.manager)
        pages = [reverse("run", args=[world.project.slug, 1]), reverse("overview", args=[world.project.slug])]
        for page in map(client.get, pages):
            assert "<button>Deliver</button>" in text(page)
        Delivery.objects.create(run=run, number=1, rows=60, blanks=0)
        target = reverse("deliveries", args=[world.project.slug])
        for page in map(client.get, pages):
            assert f'<a role="button" href="{target}">Download</a>' in text(page)
            assert "<button>Deliver</button>" not in text(page)

    def test_a_new_state_reloads_the_whole_page(self, client_of) -> None:
        world = make_world(60)
        run = world.calibrated(m=40)
        client = client_of(world.manager)
        url = reverse("run", args=[world.project.slug, run.number])
        part = client.get(url, {"state": "calibrating"}, headers={"HX-Request": "true"})
        assert part.status_code == 200
        part = client.get(url, {"state": "preparing"}, headers={"HX-Request": "true"})
        assert part.headers["HX-Refresh"] == "true"

    def test_items_that_everybody_skipped_are_decided_on_the_overview(self, client_of, waiting) -> None:
        annotator, owner = add_member(waiting, "annotator"), waiting.created_by
        for user in (annotator, owner):
            while task := queue.claim(project=waiting, user=user):
                queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
        client = client_of(owner)
        page = text(client.get(reverse("overview", args=[waiting.slug])))
        assert "3 items were skipped by everybody" in page
        first, second, _ = waiting.work_batches.get().work_items.order_by("pk")
        client.post(reverse("work_decide", args=[waiting.slug, first.pk]), {"decision": "give_up"})
        client.post(reverse("work_decide", args=[waiting.slug, second.pk]), {"decision": "ask_again"})
        first.refresh_from_db()
        assert first.state == "unlabelable"
        assert not Skip.objects.filter(work_item=second, cleared_at__isnull=True).exists()


class TestItem:
    def test_an_answer_without_a_confidence_shows_no_number_for_it(self, client_of) -> None:
        world = make_world(60, change=lambda index, row: row.update(confidence2=""))
        world.analysed(m=40)
        scores = ItemScore.objects.filter(prediction__source__position=2)
        item = scores.exclude(reason="")[0].prediction.item
        page = text(client_of(world.manager).get(reverse("item", args=[world.project.slug, item.pk])))
        assert page.count("no score") == 1
        assert "1.0000" not in page


class TestHostileText:
    def test_nothing_breaks_out(self, client_of) -> None:
        project = make_project(name=HOSTILE, choices=(HOSTILE, "dog"), guidelines=HOSTILE)
        items = make_items(project, [HOSTILE], data={HOSTILE: HOSTILE})
        queue.create_batch(project=project, item_ids=[items[0].pk], blind=False, priority=1, entropy=1)
        stored = store_file(
            project=project, content=io.BytesIO(json.dumps({HOSTILE: HOSTILE}).encode()),
            original_name=f"{HOSTILE}.jsonl", media_type="text/plain",
        )  # fmt: skip
        client = client_of(project.created_by)
        slug = project.slug
        pages = [
            reverse(name, args=[slug])
            for name in ("overview", "annotate", "items", "members", "project_settings", "audit", "jobs")
        ]
        pages += ["/", reverse("item", args=[slug, items[0].pk])]
        pages += [reverse("import_mapping", args=[slug, stored.pk])]
        for address in pages:
            page = text(client.get(address))
            assert "<script>alert" not in page, address
            assert "<img src=x" not in page, address
            assert "14}" not in page, address

    @pytest.mark.parametrize(
        "source",
        [
            "<b hx-get='/logout/'>x</b>",
            "[x](javascript:alert(1))",
            "![x](https://elsewhere.example/pixel.png)",
            "<style>*{display:none}</style>",
            "[x](data:text/html,<script>alert(1)</script>)",
            '<a href="x" onclick="alert(1)">x</a>',
        ],
    )
    def test_guidelines_are_text_with_a_little_structure(self, source: str) -> None:
        html = render(source)
        for word in ("<b", "<style", "<img", "<script", "<a"):
            assert word not in html


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


def test_pages_of_a_person_are_kept_by_no_shared_cache(owner, project) -> None:
    answer = owner.get(reverse("overview", args=[project.slug]))
    assert "private" in answer.headers["Cache-Control"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_no_page_has_inline_script_or_style(owner, project) -> None:
    for name in (
        "overview",
        "annotate",
        "items",
        "members",
        "project_settings",
        "plan",
        "sources",
        "source_new",
    ):
        page = text(owner.get(reverse(name, args=[project.slug])))
        assert " style=" not in page, name
        assert "<style" not in page, name
        assert " onclick=" not in page, name
        assert page.count("<script") == page.count("<script src="), name
