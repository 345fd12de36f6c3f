"""An alarm of the audit of later items while people without a roster answer and correct at once."""

import threading
from decimal import Decimal

import pytest
from django.db import connection, transaction

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Label, WorkItem
from routing.runs.later.take_in import take_in
from testbed.factories import add_member
from testbed.worlds import CHOICES, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database, pytest.mark.costly]


def test_nobody_waits_for_another_for_ever_when_models_get_worse() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    world = make_world(500)
    run = world.routed(target="population", m=200, p=Decimal(1), later_audit_share=Decimal(1))
    with transaction.atomic():
        world.finish()
    world.annotators += [add_member(world.project) for _ in range(4)]
    world.arrive(200, error=(lambda u: 0.9, lambda u: 0.9))
    take_in(run=run, user=world.manager)
    world.do("take_in")
    run.refresh_from_db()
    WorkItem.objects.filter(batch=run.routed_batch, state="open").update(state="withdrawn")
    world.label(limit=2)
    first = Label.objects.filter(work_item__batch=run.later_audit_batch).order_by("pk").first()
    assert first is not None
    start, failed = threading.Barrier(len(world.annotators) + 1), []

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
        while task := queue.claim(project=world.project, user=user):
            keys += 1
            try:
                queue.submit(
                    user=user,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    value=world.truth[task.item.external_id],
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

    ways = [lambda user=user: answer(user) for user in world.annotators] + [correct]
    threads = [threading.Thread(target=work, args=[do]) for do in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    run.refresh_from_db()
    assert run.audit_alarm_at is not None
    assert not WorkItem.objects.filter(batch=run.later_audit_batch, state__in=WorkItem.UNFINISHED).exists()
