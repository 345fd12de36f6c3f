"""The page of the deliveries: what each holds, its files, and who may have them while a run is open."""

import csv
import io
import re
import subprocess
import sys
import zipfile

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from annotation.errors import NotAllowedError
from annotation.labelling import queue
from annotation.models import Job
from annotation.permissions import ROLES_BY_ACTION, access_to
from routing.by_people.start import Wanted, start_people_run
from routing.delivery.deliver import deliver
from routing.delivery.views import file_words
from routing.models import Delivery, Run
from routing.ports import CORRECTED
from routing.runs.certify import mark_invalid
from routing.runs.due import undelivered_run
from testbed.factories import add_member, make_items
from testbed.worlds import World, make_world, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
SEERS = ("owner", "manager", "viewer")


def delivered(world: World, run: Run) -> Delivery:
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    return run.deliveries.order_by("-number")[0]


def page_of(world: World, client: Client) -> str:
    answer = client.get(reverse("deliveries", args=[world.project.slug]))
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_delivery_says_what_it_holds(client_of) -> None:
    world = make_world(100)
    run = world.routed(m=40)
    waiting = run.routed_batch.work_items.count()
    client = client_of(world.manager)
    delivery = delivered(world, run)
    page = page_of(world, client)
    assert ">partial</span>" in page
    assert f"<li>{waiting}: it waits for a person</li>" in page
    assert "100, all of the project" in page
    assert run.certificate.sha256 in page
    for file in delivery.files.select_related("file"):
        assert file.file.sha256 in page
        assert f'href="{reverse("delivery_file", args=[world.project.slug, delivery.pk, file.name])}"' in page
    world.finish()
    delivered(world, run)
    newest = page_of(world, client).split("Delivery 1 of run 1")[0]
    assert ">partial</span>" not in newest
    assert "README.md says why" not in newest


class TestOnceTheRestIsLabelled:
    """After a delivery of what was there, the data is not ready before another one has all labels."""

    WORDS = "does not have all labels"

    @pytest.mark.parametrize("by_people", [False, True])
    def test_pages_lead_to_another_delivery(self, client_of, by_people: bool) -> None:
        world = make_world(60)
        access = access_to(world.manager, world.project.slug)
        run = start_people_run(access=access, wanted=Wanted({})) if by_people else world.routed(m=30)
        delivered(world, run)
        client = client_of(world.manager)
        assert self.WORDS not in page_of(world, client)
        world.finish()
        overview = client.get(reverse("overview", args=[world.project.slug])).content.decode()
        of_run = client.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
        page = page_of(world, client)
        for shown in (overview, of_run, page):
            assert self.WORDS in shown
            assert "Make another delivery</button>" in shown
            assert "The labelled data is ready" not in shown
        assert "delivery 1, without all labels" in overview
        primary = re.findall(r'<a role="button" href="[^"]+" download>', page)
        assert not primary, "the partial files are not what is offered first"

        delivered(world, run)
        overview = client.get(reverse("overview", args=[world.project.slug])).content.decode()
        of_run = client.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
        for shown in (overview, of_run):
            assert "The labelled data is ready" in shown
            assert self.WORDS not in shown
        assert self.WORDS not in page_of(world, client)

    def test_one_that_was_begun_before_the_last_label_does_not_have_all(self, client_of) -> None:
        world = make_world(60)
        run = world.routed(m=30)
        delivery = delivered(world, run)
        world.finish()
        run.refresh_from_db()
        Delivery.objects.filter(pk=delivery.pk).update(created_at=run.completed_at)
        assert self.WORDS in page_of(world, client_of(world.manager))
        assert undelivered_run(project=world.project) == run

    def test_the_same_formats_are_written_again(self, client_of) -> None:
        world = make_world(60)
        run = world.routed(m=30)
        deliver(run=run, user=world.manager, formats=["jsonl"])
        world.do("deliver_run")
        world.finish()
        form = page_of(world, client_of(world.manager)).split('id="overtaken"')[1].split("</form>")[0]
        assert re.findall(r'name="format" value="(\w+)"', form) == ["jsonl"]


def test_after_a_run_by_people_pages_lead_to_the_one_with_labels_by_models(client_of) -> None:
    world = make_world(60, error=(lambda _: 0.0, lambda _: 0.0))
    first = world.complete(m=30)
    of_models = [row for row in rows_of(first) if row.source not in (None, "person")]
    assert of_models
    access = access_to(world.manager, world.project.slug)
    later = start_people_run(access=access, wanted=Wanted({}, sample=3))
    world.finish()
    given = [row for row in rows_of(later) if row.label is None]
    assert given, "labels by models of the first run"
    client, slug = client_of(world.manager), world.project.slug
    asks = reverse("deliveries", args=[slug])
    overview = client.get(reverse("overview", args=[slug])).content.decode()
    assert "deliver run 1 to have all of them" in overview
    assert f'href="{asks}">Deliver</a>' in overview  # the page there asks first
    of_run = client.get(reverse("run", args=[slug, later.number])).content.decode()
    assert f'href="{asks}?run={later.number}"' in of_run
    page = page_of(world, client)
    assert page.count(f"{len(given)} items stay blank in a delivery of run {later.number}") == 2
    assert '<a href="?run=1">Deliver run 1</a>' in page
    form = re.search(rf"<form[^>]*/runs/{later.number}/deliver/[^>]*>", page)
    assert form
    assert 'data-ask-more="left-to-models"' in form[0]
    assert "left-to-models" not in client.get(f"{asks}?run=1").content.decode()
    assert all(row.label is not None for row in rows_of(first))
    last = start_people_run(access=access, wanted=Wanted({}))
    world.finish()
    assert not [row for row in rows_of(last) if row.label is None]
    press = f'action="{reverse("run_deliver", args=[slug, last.number])}"'
    for name, args in (("overview", [slug]), ("run", [slug, last.number])):
        shown = client.get(reverse(name, args=args)).content.decode()
        assert press in shown, name  # there is nothing to ask about


def test_a_certificate_that_broke_is_marked_with_what_broke_it(client_of) -> None:
    world = make_world(60)
    run = world.complete(m=30)
    delivered(world, run)
    client = client_of(world.manager)
    before = page_of(world, client)
    assert "certificate no longer valid" not in before
    assert ("certificate valid" in before) is run.certificate.certified
    mark_invalid(run=run, why=CORRECTED, params={"item": "<b>7</b>"}, actor=world.manager)
    page = page_of(world, client)
    assert "certificate no longer valid" in page
    assert "<li>The calibration label of item &lt;b&gt;7&lt;/b&gt; was corrected" in page


def test_deliveries_of_an_earlier_version_are_shown_without_counts(client_of) -> None:
    world = make_world(60)
    delivered(world, world.routed(m=30))
    job = Job.objects.get(kind="deliver_run")
    Job.objects.update(result={"delivery": job.result["delivery"], "rows": 60, "blanks": 1})
    page = page_of(world, client_of(world.manager))
    assert "README.md says why" in page
    assert ">partial</span>" not in page


def test_progress_while_it_is_made_and_what_failed(client_of) -> None:
    world = make_world(60)
    run = world.complete(m=30)
    job = deliver(run=run, user=world.manager)
    client = client_of(world.manager)
    page = page_of(world, client)
    assert "<progress" in page
    assert 'hx-trigger="every 2s"' in page
    assert "Make a delivery</button>" not in page
    Job.objects.filter(pk=job.pk).update(state="failed", error="The disk is full.")
    page = page_of(world, client)
    assert "The disk is full." in page
    assert "every 2s" not in page
    assert "Make a delivery</button>" in page


def test_the_archive_holds_all_files_and_verifies_by_the_command_shown(client_of, tmp_path) -> None:
    world = make_world(200)
    run = world.complete(m=80)
    delivery = delivered(world, run)
    client = client_of(world.manager)
    path = reverse("delivery_zip", args=[world.project.slug, delivery.pk])
    answer = client.get(path)
    name = f"{world.project.slug}-run-1-delivery-1.zip"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.streaming
    content = b"".join(answer.streaming_content)
    assert b"".join(client.get(path).streaming_content) == content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {
            f"run-1-delivery-1/{name}"
            for name in (
                "committed.jsonl",
                "answered.jsonl",
                "labels.csv",
                "labels.jsonl",
                "certificate.json",
                "draw.jsonl",
                "README.md",
                "manifest.json",
            )
        }
        rows = csv.DictReader(io.TextIOWrapper(archive.open("run-1-delivery-1/labels.csv"), newline=""))
        assert len(list(rows)) == 200
        archive.extractall(tmp_path)
    page = page_of(world, client)
    shown = ".venv/bin/python -m routing.core.verify "
    arguments = page.split(shown)[1].split("</code>")[0].split()
    outcome = subprocess.run(
        [sys.executable, "-m", "routing.core.verify", *(tmp_path / name for name in arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_an_archive_whose_file_is_lost_is_not_begun(client_of) -> None:
    world = make_world(60)
    delivery = delivered(world, world.complete(m=30))
    default_storage.delete(delivery.files.get(name="draw.jsonl").file.storage_name)
    path = reverse("delivery_zip", args=[world.project.slug, delivery.pk])
    answer = client_of(world.manager).get(path, follow=True)
    assert "no longer in the storage" in answer.content.decode()


def test_a_part_is_asked_for_on_the_page_and_says_that_it_is_one(client_of) -> None:
    world = make_world(100)
    run = world.routed(m=40)
    client = client_of(world.manager)
    base = delivered(world, run)
    page = page_of(world, client)
    assert f'<option value="{base.pk}">Delivery 1 of run 1, ' in page
    for name in ("label", "by", "u_from"):
        assert re.search(rf'<(select|input)[^>]* name="{name}"', page)
    address = reverse("run_deliver", args=[world.project.slug, 1])
    empty = {"choose": "1", "format": "jsonl", "since": "", "label": "", "by": "", "q": " "}
    world.label(limit=3)

    def asked(**fields: str) -> str:
        answer = client.post(address, {**empty, **fields}, follow=True)
        return str(answer.content.decode())

    asked(since=str(base.pk))
    world.do("deliver_run")
    assert "3 of the 100 of the project" in page_of(world, client)
    asked(by="person", q="<b>text</b>")
    world.do("deliver_run")
    page = page_of(world, client)
    assert "0 of the 100 of the project" in page
    assert "<code>q</code>: <bdi>&lt;b&gt;text&lt;/b&gt;</bdi>" in page
    assert "A part: 3 of 100 items." in page
    assert "(filtered)" in page
    asked()
    world.do("deliver_run")
    whole, filtered, since, _first = Delivery.objects.order_by("-pk")
    assert (whole.is_part, filtered.filters["by"], since.since) == (False, "person", base)
    assert "not both" in asked(since=str(base.pk), by="person")
    assert "no such delivery" in asked(since="9" * 30)
    assert Job.objects.filter(kind="deliver_run").count() == 4


class TestWhileALaterRunIsOpen:
    """Files of an earlier run hold answers of models; whoever may have them labels nothing blind."""

    @pytest.fixture
    def second(self) -> tuple[World, Delivery]:
        world = make_world(200)
        first = world.complete(m=60)
        delivery = delivered(world, first)
        late = make_items(world.project, 80)
        rows = list(world.project.items.values_list("data", flat=True)[:80])
        for item, row in zip(late, rows, strict=True):
            item.data = row
            world.truth[item.external_id] = "cat"
        type(late[0]).objects.bulk_update(late, ["data"])
        run = world.start(m=40, target="population")
        world.do("prepare_run")
        run.refresh_from_db()
        assert run.state == Run.State.CALIBRATING
        return world, delivery

    def test_whoever_downloads_cannot_label_and_whoever_labels_cannot_download(self, second) -> None:
        world, delivery = second
        batch = world.project.runs.get(number=2).calibration_batch
        slug = world.project.slug
        paths = [reverse("deliveries", args=[slug]), reverse("delivery_zip", args=[slug, delivery.pk])]
        paths += [
            reverse("delivery_file", args=[slug, delivery.pk, name])
            for name in delivery.files.values_list("name", flat=True)
        ]
        paths.append(reverse("run_draw", args=[slug, 1]))
        for role in ("owner", "manager", "reviewer", "annotator", "viewer"):
            user = add_member(world.project, role)
            client = Client()
            client.force_login(user)
            sees = {client.get(path).status_code for path in paths}
            assert sees == ({200} if role in SEERS else {403}), role
            try:
                task = queue.claim(project=world.project, user=user)
            except NotAllowedError:
                task = None
            labels = task is not None and task.work_item.batch_id == batch.pk
            assert labels is (role not in SEERS), role

    def test_a_delivery_made_now_holds_no_label_of_the_open_calibration_set(self, second) -> None:
        world, _ = second
        assert world.label(limit=10) == 10
        again = delivered(world, world.project.runs.get(number=1))
        with default_storage.open(again.files.get(name="labels.csv").file.storage_name) as file:
            rows = list(csv.DictReader(io.StringIO(file.read().decode(), newline="")))
        open_now = world.project.runs.get(number=2).calibration_batch.work_items
        drawn = set(open_now.values_list("item__external_id", flat=True))
        assert {row["label"] for row in rows if row["external_id"] in drawn} == {""}
        assert not {row["run"] for row in rows} - {"", "1"}

    def test_the_page_offers_no_filters_now_but_what_is_new(self, second, client_of) -> None:
        world, delivery = second
        page = page_of(world, client_of(world.manager))
        assert f'<option value="{delivery.pk}">' in page
        assert 'name="label"' not in page

    def test_the_table_of_permissions_keeps_it_so(self) -> None:
        assert ROLES_BY_ACTION["deliveries.view"] <= ROLES_BY_ACTION["predictions.view"]
        assert ROLES_BY_ACTION["deliveries.make"] <= ROLES_BY_ACTION["predictions.view"]


def test_what_the_formats_cannot_carry_is_said_and_counted(client_of) -> None:
    world = make_world(60)
    run = world.complete(m=30)
    world.project.items.filter(external_id="t3").update(data={"text": "=1+1", "model1": "cat"})
    client = client_of(world.manager)
    deliver(run=run, user=world.manager, formats=["csv", "jsonl", "huggingface"])
    world.do("deliver_run")
    page = page_of(world, client)
    mine = page.split("What these files cannot carry")[1].split("</details>")[0]
    assert "the first it is as it was. <strong>Here: 1 of them.</strong>" in mine
    assert "written as JSON. <strong>Here: none.</strong>" in mine
    assert "<code>labels.jsonl</code></dt>\n<dd><ul><li>NaN and infinities are words" in mine
    assert "doccano" not in mine
    delivery = run.deliveries.get()
    card = delivery.files.get(name="README.md").file
    with default_storage.open(card.storage_name) as file:
        words = file.read().decode()
    assert "the first it is as it was. Here: 1 of them." in words
    folder = reverse("delivery_file", args=[world.project.slug, delivery.pk, "dataset/README.md"])
    answer = client.get(folder)
    assert (
        f'filename="{world.project.slug}-run-1-delivery-1-dataset-README.md"'
        in answer.headers["Content-Disposition"]
    )
    content = b"".join(answer.streaming_content).decode()
    assert content.startswith("---\npretty_name: ")
    assert content.endswith(words)
    archive = client.get(reverse("delivery_zip", args=[world.project.slug, delivery.pk]))
    with zipfile.ZipFile(io.BytesIO(b"".join(archive.streaming_content))) as found:
        assert "run-1-delivery-1/dataset/state.json" in found.namelist()
        assert found.testzip() is None


def test_each_file_is_described_once_whether_formats_can_be_chosen_or_not(client_of) -> None:
    world = make_world(100)
    delivered(world, world.routed(m=40))
    for role in ("manager", "viewer"):
        page = page_of(world, client_of(add_member(world.project, role)))
        assert ('name="format"' in page) is (role == "manager")
        for name, words in file_words().items():
            start = str(words).partition("`")[0]
            assert page.count(start) == 1, (role, name)


def test_the_newest_delivery_comes_first_with_its_promise_and_its_rows(client_of) -> None:
    world = make_world(60)
    run = world.complete(m=30)
    client = client_of(world.manager)
    for formats in (["csv", "jsonl"], ["jsonl"]):
        deliver(run=run, user=world.manager, formats=formats)
        world.do("deliver_run")
    page = page_of(world, client)
    newest, older = page.index("Delivery 2 of run 1"), page.index("Delivery 1 of run 1")
    assert newest < older < page.index("Make another delivery")
    first = page[newest:older]
    assert first.index('class="sentence"') < first.index("Download labels.jsonl") < first.index("Size")
    assert "Download labels.csv" in page[older:]
