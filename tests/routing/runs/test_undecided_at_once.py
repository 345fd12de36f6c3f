"""Losses that are computed while people answer and correct at the same moment."""

import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Job, Label
from routing.core.reference.sources import CHECKED
from routing.models import Run
from routing.runs.expert.requests import decide
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES
from tests.routing.runs.at_once import all_at_once
from tests.routing.runs.slow_loss import PATH, compute_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database, pytest.mark.costly]


@pytest.fixture(autouse=True)
def several_writers(settings: Any) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    settings.HYPAC_LOSSES = [PATH]


def checked(run: Run) -> Any:
    routes = run.routes.filter(position=run.run_sources.count() + CHECKED + 1)
    return Label.objects.filter(
        work_item__batch=run.routed_batch, item__in=routes.values("item"), superseded_by=None
    )


def best_of(run: Run) -> dict[int, Any]:
    last = run.run_sources.select_related("source").order_by("position").last()
    return dict(last.source.predictions.values_list("item", "value"))


def test_a_correction_is_not_lost_while_its_label_is_decided() -> None:
    here = ExpertWorld(240, error=0.2)
    run = here.routed(here.start(loss=PATH))
    while here.label(*here.world.annotators, *here.experts):
        pass
    best = best_of(run)
    label = next(one for one in checked(run) if one.value == best[one.item_id])
    # As the job has them, of those that agree alone: it asks nobody about anything, and locks no work.
    same = run.project.computed_losses.filter(computed_at=None, label=F("answer"))
    assert same.update(value=0, computed_at=F("asked_at"))
    other = next(name for name in CHOICES if name != label.value)

    def correct() -> None:
        try:
            queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="again")
        finally:
            connection.close()

    corrects = threading.Thread(target=correct)
    with transaction.atomic():
        assert decide(run)
        assert not run.expert_requests.filter(item=label.item).exists()  # the two agree
        corrects.start()
        _until_somebody_waits()
    corrects.join()
    assert run.expert_requests.filter(item=label.item, why="undecided").exists()


def _until_somebody_waits() -> None:
    for _attempt in range(1000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("The correction does not wait.")


def test_nobody_waits_for_another_for_ever_and_nothing_stays_undecided() -> None:
    here = ExpertWorld(240, error=0.2)
    run = here.routed(here.start(loss=PATH, audit_share=Decimal("0.5"), accepted_error=Decimal("0.6")))
    project = here.world.project
    here.label(*here.world.annotators, limit=2)
    first = Label.objects.filter(work_item__batch=run.routed_batch).order_by("pk").first()
    assert first is not None
    run.project.computed_losses.all().delete()
    failed: list[Exception] = []
    over = threading.Event()

    def compute() -> None:
        try:
            while not over.is_set():
                if job := project.jobs.filter(kind="compute_losses", state=Job.State.QUEUED).first():
                    jobs.run(job.pk)
                time.sleep(0.02)
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    computes = threading.Thread(target=compute)
    computes.start()
    try:
        failed += all_at_once(project, [*here.world.annotators, here.expert], here.answer, first)
    finally:
        over.set()
        computes.join()
    assert not failed
    assert not project.jobs.filter(kind="compute_losses", state=Job.State.FAILED).exists()
    while compute_all(project) or here.label(*here.world.annotators, *here.experts):
        pass
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert not run.expert_requests.filter(why="undecided").exists()
    asked = set(run.expert_requests.values_list("item", flat=True))
    best = best_of(run)
    assert {one.item_id for one in checked(run) if one.value != best.get(one.item_id)} <= asked
