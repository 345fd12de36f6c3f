"""Files that were sent: which there are, and removing one, without what is made of them."""

import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from annotation.common.files import MODEL_OUTPUT, store_file
from annotation.errors import InputError
from annotation.imports.sent_files import keep_for_import, sent_as_answers
from annotation.jobs import jobs
from annotation.models import AuditEvent, Job, Project, StoredFile
from routing.models import Delivery, DeliveryFile
from routing.sources import sent_answers
from routing.sources.sent_answers import send_answers
from testbed.factories import add_member, make_image_items, make_items, make_project
from testbed.worlds import make_world
from tests.annotation.apis import Api, problem
from tests.routing.sources.sending import uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def owner(project) -> Api:
    return Api(project, project.created_by)


def kept(project: Project, content: bytes, media_type: str = "text/csv") -> StoredFile:
    return store_file(
        project=project, content=io.BytesIO(content), original_name="rows.csv", media_type=media_type
    )


def send(owner: Api, content: bytes = b"text\nhello\n", name: str = "rows.csv") -> dict:
    made = owner.raw(f"files/?name={name}", content, "text/csv")
    assert made.status_code == 201, made.content
    assert owner.client.get(made["Location"]).json() == made.json()
    return made.json()


def test_what_was_sent_is_listed_without_what_is_made_of_files(project, owner) -> None:
    make_image_items(project, 2)
    kept(project, b"answers", MODEL_OUTPUT)
    kept(make_project(), b"text\nelsewhere\n")
    first, second = send(owner), send(owner, b"text\nmore\n", "more.csv")
    assert owner.get("files/").json()["results"] == [second, first]
    for stored in StoredFile.objects.exclude(pk__in=[first["id"], second["id"]]):
        problem(owner.get(f"files/{stored.pk}/"), 404)


def test_a_removed_file_is_gone_and_what_was_imported_stays(project, owner) -> None:
    sent = send(owner)
    owner.post("imports/", file=sent["id"], text_column="text")
    job = Job.objects.get()
    assert problem(owner.delete(f"files/{sent['id']}/"), 409)["detail"].startswith("This file is being read")
    jobs.run(job.pk)
    assert owner.delete(f"files/{sent['id']}/").status_code == 204
    problem(owner.get(f"files/{sent['id']}/"), 404)
    problem(owner.delete(f"files/{sent['id']}/"), 404)
    assert owner.get("files/").json()["results"] == []
    assert [item["text"] for item in owner.get("items/").json()["results"]] == ["hello"]
    event = AuditEvent.objects.get(action="file.deleted")
    assert event.actor == project.created_by
    assert event.data == {"file": "rows.csv", "sha256": sent["sha256"], "size": sent["size"]}
    again = send(owner)
    assert (again["sha256"], again["id"] != sent["id"]) == (sent["sha256"], True)
    assert owner.get(f"files/{again['id']}/preview/").json()["rows"] == [{"text": "hello"}]


def test_an_import_whose_file_was_removed_meanwhile_says_so(project, owner) -> None:
    sent = send(owner)
    owner.post("imports/", file=sent["id"], text_column="text")
    job = Job.objects.get()
    StoredFile.objects.get().delete()
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, "Upload it again" in job.error) == ("failed", True)


def test_a_file_of_an_item_or_a_delivery_stays() -> None:
    world = make_world(60)
    owner = Api(world.project, world.manager)
    stored = kept(world.project, b"text\ndelivered\n")
    image = make_image_items(world.project, 1)[0].image
    assert owner.get(f"files/{stored.pk}/").status_code == 200
    delivery = Delivery.objects.create(run=world.start(m=40), number=1, rows=1, blanks=0)
    DeliveryFile.objects.create(delivery=delivery, name="labels.csv", file=stored)
    for found in (stored, image):
        problem(owner.get(f"files/{found.pk}/"), 404)
        refused = problem(owner.delete(f"files/{found.pk}/"), 409)
        assert "made of this file" in refused["detail"]
        assert StoredFile.objects.filter(pk=found.pk).exists()
    assert not AuditEvent.objects.filter(action="file.deleted").exists(), "nothing is told that was not done"


def test_only_who_brings_data_in_sees_and_removes_files(project, owner) -> None:
    sent = send(owner)
    for role in ("annotator", "viewer", "reviewer"):
        api = Api(project, add_member(project, role))
        problem(api.get("files/"), 403)
        problem(api.delete(f"files/{sent['id']}/"), 403)
    hidden = kept(project, b"answers", MODEL_OUTPUT)
    problem(owner.delete(f"files/{hidden.pk}/"), 404)


def test_answers_that_are_being_sent_close_a_file_that_came_as_data_since(project) -> None:
    """Between keeping a file of answers and its job somebody may send the same bytes as data."""
    make_items(project, 2)
    source = uploaded(project)
    content = b"external_id,label\nitem,cat\n"
    answers = kept(project, content, MODEL_OUTPUT)
    as_data = {"project": project, "original_name": "a.csv", "media_type": "text/csv"}
    assert keep_for_import(content=io.BytesIO(content), **as_data).media_type == "text/csv"
    job = send_answers(source=source, user=project.created_by, stored_file=answers)
    answers.refresh_from_db()
    assert answers.media_type == MODEL_OUTPUT
    assert keep_for_import(content=io.BytesIO(content), **as_data).media_type == MODEL_OUTPUT
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED)  # of which nothing was taken
    assert keep_for_import(content=io.BytesIO(content), **as_data).media_type == "text/csv"
    assert answers in sent_as_answers(project), "it can still be read again"
    send_answers(source=source, user=project.created_by, stored_file=answers)
    answers.refresh_from_db()
    assert answers.media_type == MODEL_OUTPUT


def test_answers_of_a_file_that_was_removed_meanwhile_are_sent_again(project) -> None:
    source, answers = uploaded(project), kept(project, b"external_id,label\nitem,cat\n", MODEL_OUTPUT)
    with pytest.MonkeyPatch.context() as patched:
        read = sent_answers.how_to_read
        patched.setattr(
            sent_answers, "how_to_read", lambda *args, **kw: (read(*args, **kw), answers.delete())[0]
        )
        number = answers.pk
        with pytest.raises(InputError, match="removed meanwhile"):
            send_answers(source=source, user=project.created_by, stored_file=answers)
    assert not StoredFile.objects.filter(pk=number).exists()
    assert not project.jobs.exists()


@pytest.mark.django_db(transaction=True)
def test_a_file_is_looked_at_as_data_once_its_answers_are_being_sent(monkeypatch) -> None:
    """Whoever sends the same bytes as data waits for the job, and finds it."""
    if connection.vendor != "postgresql":
        pytest.skip("one writer at a time")
    project = make_project(choices=("cat", "dog"))
    source, content = uploaded(project), b"external_id,label\nitem,cat\n"
    answers = kept(project, content, MODEL_OUTPUT)
    locked, begun = threading.Event(), threading.Event()

    def send_as_data() -> str:
        try:
            locked.wait(20)
            begun.set()
            return keep_for_import(
                project=project, content=io.BytesIO(content), original_name="a", media_type="text/csv"
            ).media_type
        finally:
            connection.close()

    enqueue = jobs.enqueue

    def slowly(**named):
        locked.set()
        begun.wait(20)
        time.sleep(1)
        return enqueue(**named)

    monkeypatch.setattr(sent_answers.jobs, "enqueue", slowly)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(send_as_data)
        send_answers(source=source, user=project.created_by, stored_file=answers)
        assert other.result() == MODEL_OUTPUT
