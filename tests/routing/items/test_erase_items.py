"""Erasing what items are: it is gone from everywhere, certificates go on verifying, no draw is touched."""

from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.labelling.known_answers import with_known_answers
from annotation.models import Comment, Draft, HeldOutItem, Item, Job, KeyedRequest, Skip, WorkItem
from annotation.permissions import access_to
from routing.delivery.deliver import deliver
from routing.items.erase import erase_items
from routing.models import (
    REMOVED,
    Delivery,
    ItemScore,
    MeasuredItem,
    Measurement,
    Prediction,
    Run,
    SentAnswer,
    SourceRevision,
    SourceTry,
)
from routing.rounds.start import start_round
from routing.runs.pool import nothing_to_plan_for, pool_of
from routing.sources.sent_answers import store_answers_file
from testbed.factories import add_member, make_image, make_image_items, make_items, make_project
from testbed.worlds import World, files_of, make_world
from tests.conftest import Stored
from tests.everywhere import told_anywhere
from tests.verify.reports import found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

SECRET = "born-in-1871"


def erase(world: World, *names: str) -> Any:
    return erase_items(project=world.project, actor=world.manager, external_ids=names)


def delivered(world: World, run: Run) -> dict[str, bytes]:
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    return files_of(Delivery.objects.filter(run=run).order_by("-number")[0])


@pytest.fixture(scope="module")
def _complete(stored: Stored) -> tuple[World, Run]:
    def make() -> tuple[World, Run]:
        def change(index: int, row: dict[str, str]) -> None:
            row["text"] += f" {SECRET}" if index in (3, 4) else ""

        world = make_world(100, change=change)
        return world, world.complete(m=40)

    return stored(make)


@pytest.fixture
def complete(_complete: tuple[World, Run], db: None) -> tuple[World, Run]:
    """A world with a complete run, in which two items tell a secret."""
    return deepcopy(_complete)


def say_everywhere(world: World, item: Item) -> None:
    """What models and people may have quoted of it."""
    work = item.work_items.first() or world.project.work_batches.first().work_items.create(item=item, order=1)
    source = world.project.sources.first()
    row = Prediction.objects.create(
        item=item, source=source, fingerprint="other", raw={"text": SECRET}, reason=f"not a label: {SECRET}",
        reason_quotes=SECRET, cost=0,
    )  # fmt: skip
    ItemScore.objects.create(prediction=row, name="x", value=1, reason=SECRET, reason_quotes=SECRET)
    revision = SourceRevision.objects.create(source=source, model="m", revision="1")
    SentAnswer.objects.create(revision=revision, item=item, answer={"text": SECRET})
    job = Job.objects.create(project=world.project, kind="try_source", state="done")
    others = [one.pk for one in world.project.items.exclude(pk=item.pk)[:1]]
    rows = [{"item": pk, "text": SECRET if pk == item.pk else ""} for pk in (item.pk, *others)]
    SourceTry.objects.create(job=job, source=source, rows=rows, reasons=[[["", ""]] * 2] * 2)
    job.problems.create(where=item.external_id, message=SECRET)
    Draft.objects.create(work_item=work, user=world.manager, value=SECRET)
    where = {"address": f"POST /api/v1/projects/{world.project.slug}/queue/", "created_at": item.created_at}
    KeyedRequest.objects.create(user=world.manager, key="1", body=f'"{SECRET}"'.encode(), **where)
    Skip.objects.create(work_item=work, user=world.manager, reason="unclear", comment=SECRET)
    Comment.objects.create(item=item, author=world.manager, text=SECRET)


@pytest.mark.database
def test_it_is_gone_from_everywhere_and_the_certificate_holds(complete, tmp_path: Path) -> None:
    world, run = complete
    items = list(world.project.items.filter(external_id__in=["t3", "t4"]))
    before = delivered(world, run)
    say_everywhere(world, items[0])
    kept = ("content_hash", "external_id", "position")
    hashes = list(world.project.items.order_by("pk").values_list(*kept))
    labels = list(Prediction.objects.exclude(fingerprint="other").order_by("pk").values_list("value", "cost"))
    assert {"Item.text", "Item.data", "Prediction.raw", "Comment.text"} < told_anywhere(SECRET)
    done = erase(world, "t3", "t4", "t3")
    assert (done.items, done.already, done.deliveries) == (2, 0, 1)
    assert told_anywhere(SECRET) == set()
    assert list(world.project.items.order_by("pk").values_list(*kept)) == hashes
    assert [len(one.rows) for one in SourceTry.objects.all()] == [1]
    now = Prediction.objects.exclude(fingerprint="other").order_by("pk").values_list("value", "cost")
    assert list(now) == labels
    again = erase(world, "t3")
    assert (again.items, again.already) == (0, 1)
    assert world.project.audit_events.filter(action="item.erased").count() == 2
    run.refresh_from_db()
    assert not run.invalid_reasons
    files = delivered(world, run)
    assert SECRET.encode() in before["labels.csv"]
    assert not any(SECRET.encode() in content for content in files.values())
    same = ("certificate.json", "draw.jsonl", "committed.jsonl")
    assert all(files[name] == before[name] for name in same)
    assert b"Content erased on request, of these: 2." in files["README.md"]
    assert b"Content erased" not in before["README.md"]
    found = found_in(tmp_path / "files", files)
    assert (found.faults, found.code) == ("", 0)


def test_pages_and_programs_are_told_of_the_gap(complete) -> None:
    world, run = complete
    slug, client = world.project.slug, Client()
    item = world.project.items.get(external_id="t3")
    client.force_login(world.manager)
    page = reverse("item", args=[slug, item.pk])
    assert reverse("item_erase", args=[slug, item.pk]) in client.get(page).content.decode()
    answer = client.post(reverse("item_erase", args=[slug, item.pk]), follow=True).content.decode()
    assert "The content of this item was erased" in answer
    assert reverse("item_erase", args=[slug, item.pk]) not in answer
    assert "Content erased" in client.get(reverse("items", args=[slug])).content.decode()
    certificate = client.get(reverse("run_certificate_page", args=[slug, run.number])).content.decode()
    assert "The content of 1 item that it covers was erased since." in certificate
    told = client.get(f"/api/v1/projects/{slug}/items/{item.pk}/").json()
    assert (told["erased"], told["text"], told["external_id"]) == (True, "", "t3")


def test_by_the_api_and_the_command_and_for_managers_alone(complete, capsys) -> None:
    world, _run = complete
    client, address = Client(), f"/api/v1/projects/{world.project.slug}/items/erase/"
    body = {"external_ids": ["t5"]}
    for who, status in ((add_member(world.project, "reviewer"), 403), (world.manager, 200)):
        client.force_login(who)
        answer = client.post(address, body, content_type="application/json")
        assert answer.status_code == status
    assert answer.json() == {"items": 1, "already": 0, "deliveries": 0, "sent": 0}
    command = ("erase_items", world.project.slug, "t6", "--user", world.manager.username)
    with pytest.raises(CommandError, match="--yes"):
        call_command(*command)
    call_command(*command, "--yes", "--json")
    assert '"items": 1' in capsys.readouterr().out
    with pytest.raises(InputError, match="no items t999, t998"):
        erase(world, "t7", "t999", "t998")
    assert world.project.items.get(external_id="t7").text


def test_nothing_leaves_what_is_under_way(db) -> None:
    world = make_world(100)
    run = world.calibrating(m=40)
    answer = {"external_ids": ["t1"]}
    client = Client()
    client.force_login(world.manager)
    told = client.post(
        f"/api/v1/projects/{world.project.slug}/items/erase/", answer, content_type="application/json"
    )
    assert (told.status_code, told.json()["code"]) == (409, "item_in_use")
    assert not world.project.items.filter(erased_at__isnull=False).exists()
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLED)
    assert erase(world, "t1").items == 1


def test_nor_what_waits_for_a_run_a_round_or_an_import(db) -> None:
    project = make_project(choices=["cat", "dog"])
    names = [item.external_id for item in make_items(project, 8)]
    first, second = project.items.all()[:2]
    measured = Measurement.objects.create(
        project=project, outside=False, pool_size=8, last=7, size=1, entropy="1"
    )
    MeasuredItem.objects.create(measurement=measured, item=first, order=0)
    for _ in range(2):
        add_member(project)
    access = access_to(project.created_by, project.slug)
    start_round(access=access, names=names[3:6])
    job = Job.objects.create(project=project, kind="import", unique_key="import")
    who = {"project": project, "actor": project.created_by}
    for name, words in ((names[1], "imported"), (names[0], "measured"), (names[3], "guideline round")):
        with pytest.raises(ConflictError, match=words):
            erase_items(**who, external_ids=[name])
        Job.objects.filter(pk=job.pk).update(state="done")
    assert erase_items(**who, external_ids=[second.external_id]).items == 1


@pytest.mark.parametrize("kind", ["deliver_run", "fetch", "predictions", "run_candidate", "try_source"])
def test_nor_what_a_job_reads_that_writes_it_elsewhere(db, kind: str) -> None:
    """It would come back with what the job stores at its end."""
    project = make_project()
    name = make_items(project, 1)[0].external_id
    who = {"project": project, "actor": project.created_by, "external_ids": [name]}
    other = Job.objects.create(project=make_project(), kind=kind)
    for state in ("queued", "running", "paused"):
        job = Job.objects.create(project=project, kind=kind, state=state)
        with pytest.raises(ConflictError, match="under way, which reads items"):
            erase_items(**who)
        Job.objects.filter(pk=job.pk).update(state="done")
    assert Job.objects.filter(pk=other.pk, state="queued").exists()
    assert erase_items(**who).items == 1


def test_files_of_answers_go_too(db, django_capture_on_commit_callbacks) -> None:
    """Nobody is shown them, so nobody else could remove them; what could be used of them was taken in."""
    project = make_project()
    items = make_items(project, 2)
    stored = store_answers_file(project=project, content=BytesIO(SECRET.encode()), name="answers.ndjson")
    who = {"project": project, "actor": project.created_by}
    with django_capture_on_commit_callbacks(execute=True):
        erase_items(**who, external_ids=[items[0].external_id])
    assert not project.files.exists()
    assert not default_storage.exists(stored.storage_name)


def test_it_leaves_queues_and_later_pools(db) -> None:
    project = make_project(choices=["cat", "dog"])
    items = make_items(project, 6)
    queue.create_batch(project=project, item_ids=[items[0].pk], blind=False, priority=1, entropy=1)
    held = HeldOutItem.objects.create(
        project=project, item=items[1], purpose="gold", at_random=True, answer="cat",
        explanation=SECRET, created_by=project.created_by,
    )  # fmt: skip
    who = {"project": project, "actor": project.created_by}
    erase_items(**who, external_ids=[items[1].external_id])
    assert not with_known_answers(project, held.purpose).exists()
    assert pool_of(project, "population").count() == 5  # it was in no pool before
    erase_items(**who, external_ids=[items[0].external_id])
    assert items[0].work_items.get().state == WorkItem.State.WITHDRAWN
    assert queue.claim(project=project, user=project.created_by) is None
    assert set(pool_of(project, "dataset")) == set(items[2:])
    # What somebody's choice leaves is no random sample of its source.
    assert not pool_of(project, "population").exists()
    assert "Items were erased that no run had looked at yet" in nothing_to_plan_for(project).message
    later = make_items(project, ["later"])
    assert list(pool_of(project, "population")) == later


def test_a_file_goes_with_the_last_item_that_shows_it(db, django_capture_on_commit_callbacks) -> None:
    project = make_project()
    one, two = make_image_items(project, [make_image(1), make_image(1)])
    name = project.files.get().storage_name
    for item, left in ((one, True), (two, False)):
        with django_capture_on_commit_callbacks(execute=True):
            erase_items(project=project, actor=None, external_ids=[item.external_id])
        assert project.files.exists() == default_storage.exists(name) == left


@pytest.mark.database
def test_the_database_lets_an_answer_lose_its_words_and_nothing_else(complete) -> None:
    rows = Prediction.objects.filter(value__isnull=False)
    for changes in ({"raw": {}}, {"raw": REMOVED, "value": "dog"}, {"reason": "other"}):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            rows.update(**changes)
    with pytest.raises(IntegrityError), transaction.atomic():
        Item.objects.filter(pk=Item.objects.first().pk).update(text="")
    rows.update(raw=REMOVED)
