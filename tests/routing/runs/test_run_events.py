"""What other programs are told along the way of a run: each stage once, and nothing of what is hidden."""

import io
import json
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.common import workers
from annotation.common.events import EVENTS
from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.mail.letters import as_message
from annotation.models import Label, Mail, Project, User, Webhook, WebhookDelivery
from annotation.outside.webhooks.manage import create_webhook, update_webhook
from annotation.projects.lifecycle import archive_project
from routing.delivery.deliver import deliver
from routing.ports import CORRECTED
from routing.runs.certify import analyse, mark_invalid
from routing.runs.events import run_completed
from routing.runs.route import route
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.costly]


@pytest.fixture(autouse=True)
def nobody_is_nudged(monkeypatch) -> None:
    monkeypatch.setattr(workers, "message_workers", lambda task, pk: None)


@pytest.fixture
def world(db: None) -> World:
    return make_world(60)


def watch(project: Project, events: Any = EVENTS) -> Webhook:
    return create_webhook(
        project=project, actor=project.created_by, url="https://example.org/", events=list(events)
    )[0]


def told(webhook: Webhook, event: str = "") -> list[dict[str, Any]]:
    """The messages of a type, or of all types, in the order of what happened."""
    rows = WebhookDelivery.objects.filter(webhook=webhook).order_by("pk")
    found = [json.loads(row.payload) for row in rows]
    return [message for message in found if not event or message["type"] == event]


def test_leaders_get_letters_where_no_program_is_told(world: World, settings) -> None:
    settings.HYPAC_MAIL_URL = "smtp://127.0.0.1:1"
    User.objects.filter(pk=world.manager.pk).update(
        email="boss@lab.example", email_confirmed_at=timezone.now()
    )
    run = world.start(m=40)
    world.do("prepare_run")
    world.finish()
    world.route(world.analyse(run))
    world.finish()
    run.refresh_from_db()
    letters = Mail.objects.order_by("pk")
    assert [letter.kind for letter in letters] == ["run.calibration_done", "run.completed"]
    assert "Nobody has anything left to label in run 1" in as_message(letters[1]).body
    with transaction.atomic():
        run_completed(run)
    assert Mail.objects.count() == 2, "later items may come every night"


def test_each_stage_of_a_run_is_told_once(world: World) -> None:
    webhook = watch(world.project, [name for name in EVENTS if not name.startswith("label.")])
    run = world.start(m=40)
    world.do("prepare_run")
    world.finish()
    assert [message["type"] for message in told(webhook)] == [
        "run.committed",
        "run.committed",
        "job.finished",
        "run.calibration_done",
    ]
    # Whoever keeps these two messages can hold the certificate against them.
    shown = [message["data"] for message in told(webhook, "run.committed")]
    assert [(data["commitment"], data["sha256"]) for data in shown] == list(
        run.commitments.values_list("number", "sha256")
    )
    assert [data["ledger"]["entries"] for data in shown] == [0, 1]
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    route(run=run, user=world.manager)
    world.do("route_run")
    world.finish()
    run.refresh_from_db()
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    archive_project(project=world.project, actor=world.manager)
    types = [message["type"] for message in told(webhook)]
    assert types == [
        "run.committed",
        "run.committed",
        "job.finished",
        "run.calibration_done",
        "run.analysed",
        "job.finished",
        "run.routed",
        "job.finished",
        "run.completed",
        "delivery.made",
        "job.finished",
        "project.archived",
    ]
    (analysed,) = told(webhook, "run.analysed")
    assert analysed["data"] == {
        "project": world.project.slug,
        "run": 1,
        "certified": run.certificate.certified,
        "url": f"/api/v1/projects/{world.project.slug}/runs/1/",
    }
    (made,) = told(webhook, "delivery.made")
    parts = {name: made["data"][name] for name in ("rows", "items", "since", "filters")}
    assert parts == {"rows": 60, "items": 60, "since": None, "filters": []}
    client = Client()
    client.force_login(world.manager)
    for message in told(webhook):
        assert client.get(message["data"]["url"]).status_code == 200, message


def test_a_certificate_that_breaks_is_told_once_without_the_item(world: World) -> None:
    run = world.analysed(m=40)
    webhook = watch(world.project, ["certificate.broken"])
    label = Label.objects.order_by("pk").first()
    other = "dog" if label.value == "cat" else "cat"

    def correct(value: str, key: str) -> None:
        queue.correct(user=label.annotator, label_id=label.pk, value=value, idempotency_key=key)

    with transaction.atomic():
        correct(other, "taken-back")
        assert len(told(webhook)) == 1
        transaction.set_rollback(True)
    assert told(webhook) == [], "of what was rolled back nothing is told"
    correct(other, "corrected")
    (broken,) = told(webhook)
    assert broken["data"] == {
        "project": world.project.slug,
        "run": 1,
        "certificate": run.certificate.sha256,
        "reason": "label_corrected",
        "url": f"/api/v1/projects/{world.project.slug}/runs/1/",
    }
    second = Label.objects.exclude(pk=label.pk).filter(version=1).order_by("pk").first()
    queue.correct(
        user=second.annotator,
        label_id=second.pk,
        value="dog" if second.value == "cat" else "cat",
        idempotency_key="another",
    )
    run.refresh_from_db()
    assert len(run.invalid_reasons) == 2
    assert told(webhook) == [broken], "what is broken cannot break again"


def test_what_breaks_before_there_is_a_certificate_is_told_by_the_analysis(world: World) -> None:
    run = world.start(m=40)
    world.do("prepare_run")
    world.finish()
    webhook = watch(world.project, ["certificate.broken", "run.analysed"])
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    mark_invalid(run=run, why=CORRECTED, params={"item": "7"}, actor=None)
    world.do("analyse_run")
    mark_invalid(run=run, why=CORRECTED, params={"item": "8"}, actor=None)
    assert [(message["type"], message["data"]["certified"]) for message in told(webhook)] == [
        ("run.analysed", False)
    ]


def test_labels_are_told_one_by_one_and_hidden_items_not_at_all(world: World) -> None:
    webhook = watch(world.project, ["label.created", "label.corrected"])
    run = world.start(m=40)
    world.do("prepare_run")
    world.label(limit=3)
    labels = list(Label.objects.order_by("pk"))
    assert [message["data"]["label"] for message in told(webhook)] == [label.pk for label in labels]
    reader = Client()
    reader.force_login(world.manager)
    hidden = json.dumps(told(webhook))
    for message in told(webhook):
        assert (message["data"]["item"], message["data"]["external_id"]) == (None, None)
        assert reader.get(message["data"]["url"]).status_code == 404
    for word in ("cat", "dog", "emu", "model", *(f'"{label.item.external_id}"' for label in labels)):
        assert word not in hidden
    world.finish()
    run.refresh_from_db()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    label = labels[0]
    other = "dog" if label.value == "cat" else "cat"
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="corrected")
    (corrected,) = told(webhook, "label.corrected")
    assert corrected["data"]["external_id"] == label.item.external_id
    assert corrected["data"]["version"] == 2
    assert reader.get(corrected["data"]["url"]).json()["id"] == corrected["data"]["label"]
    assert other not in json.dumps(corrected)


def test_an_answer_costs_no_query_more_where_nobody_listens(world: World) -> None:
    world.start(m=40)
    world.do("prepare_run")

    def queries_of_an_answer(key: str) -> int:
        user = world.annotators[0]
        task = queue.claim(project=world.project, user=user)
        with CaptureQueriesContext(connection) as queries:
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=world.truth[task.work_item.item.external_id],
                idempotency_key=key,
            )
        return sum("webhook" in query["sql"] and "webhooks" not in query["sql"] for query in queries), len(
            queries
        )

    own, before = queries_of_an_answer("a")
    assert own == 2  # both part of a query that is made anyway
    webhook = watch(world.project)
    update_webhook(webhook=webhook, actor=world.manager, is_active=False)
    assert queries_of_an_answer("b") == (own, before)


def test_imports_and_failures_are_told(world: World) -> None:
    webhook = watch(world.project)

    def take(content: bytes) -> None:
        stored = store_file(
            project=world.project,
            content=io.BytesIO(content),
            original_name="more.csv",
            media_type="text/csv",
        )
        job = start_import(
            project=world.project,
            user=world.manager,
            stored_file=stored,
            mapping=ColumnMapping(id_column="id", text_column="text"),
        )
        jobs.run(job.pk)

    take(b"id,text\na,one\nb,two\n")
    assert [message["type"] for message in told(webhook)] == ["job.finished", "import.finished"]
    (finished,) = told(webhook, "import.finished")
    assert (finished["data"]["added"], finished["data"]["problems"]) == (2, 0)
    take(b"id,text\n,\n")
    (failed,) = told(webhook, "job.failed")
    assert failed["data"]["kind"] == "import"
