"""Several people and a manager at the calibration set of one run at the same moment."""

import threading
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.db import connection

from annotation.common import events
from annotation.labelling import queue
from annotation.models import Label, Project, Webhook, WorkBatch
from annotation.outside.webhooks.manage import create_webhook
from routing.models import Run
from routing.runs.certify import analyse
from testbed.worlds import CHOICES
from tests.routing.runs.test_overlap import PLAN, label, make_crowd

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]


def test_an_analysis_and_a_correction_do_not_wait_for_each_other(monkeypatch) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    world = make_crowd(overlap=2, overlap_share=Decimal(1))
    create_webhook(
        project=world.project,
        actor=world.manager,
        url="https://example.org/",
        events=["run.calibration_done"],
    )
    run = world.start(**PLAN)
    world.do("prepare_run")
    label(world, wrong=0)
    run.refresh_from_db()
    given = Label.objects.filter(work_item__batch=run.calibration_batch).first()
    locking, settling = threading.Event(), threading.Event()
    lock, wanted, failed = queue.lock_batch, events.wanted_by, []

    def lock_late(*, batch: WorkBatch) -> WorkBatch:
        locking.set()
        assert settling.wait(60)
        return lock(batch=batch)

    def wanted_late(project: Project, event: str) -> list[Webhook]:
        settling.set()
        assert locking.wait(60)
        return wanted(project, event)

    def work(do: Callable[[], object]) -> None:
        try:
            do()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    def correct() -> None:
        other = next(name for name in CHOICES if name != given.value)
        queue.correct(user=given.annotator, label_id=given.pk, value=other, idempotency_key="corrected")

    monkeypatch.setattr(queue, "lock_batch", lock_late)
    monkeypatch.setattr(events, "wanted_by", wanted_late)
    ways = (correct, lambda: analyse(run=run, user=world.manager))
    threads = [threading.Thread(target=work, args=[do]) for do in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Label.objects.filter(supersedes=given).exists()
    assert [str(error) for error in failed] == ["People differ about 1 items: a reviewer has to decide."]
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING
