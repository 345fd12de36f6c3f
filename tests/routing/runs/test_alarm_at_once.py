"""An alarm of the audit while annotators and the expert answer and correct at the same moment."""

import threading
from decimal import Decimal

import pytest
from django.db import connection

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Label
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database, pytest.mark.costly]


def test_nobody_waits_for_another_for_ever_when_the_audit_warns() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    here = ExpertWorld(error=0.0)
    run = here.routed(here.start(audit_share=Decimal(1), accepted_error=Decimal("0.02")))
    people = [*here.world.annotators, here.expert]
    here.label(*here.world.annotators, limit=2)
    first = Label.objects.filter(work_item__batch=run.routed_batch).order_by("pk").first()
    assert first is not None
    here.error = 0.9
    start, failed = threading.Barrier(len(people) + 1), []

    def work(do) -> None:
        try:
            start.wait()
            do()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    def answer(user) -> None:
        keys = 0
        while task := queue.claim(project=here.world.project, user=user):
            keys += 1
            try:
                queue.submit(
                    user=user,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    value=here.answer(user, task.work_item.item),
                    idempotency_key=f"{user.pk}-{keys}",
                )
            except ConflictError:  # it was withdrawn meanwhile
                continue

    def correct() -> None:
        label = first
        for number in range(20):
            value = CHOICES[number % len(CHOICES)]
            label = queue.correct(
                user=label.annotator, label_id=label.pk, value=value, idempotency_key=f"again-{number}"
            )

    ways = [lambda user=user: answer(user) for user in people] + [correct]
    threads = [threading.Thread(target=work, args=[do]) for do in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    run.refresh_from_db()
    assert run.audit_alarm_at is not None
