"""Several people and a manager at the same items at the same moment."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from annotation.labelling import answers, queue
from annotation.models import Label, WorkItem
from tests.annotation.labelling.several import SeveralDesk as Desk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]
State = WorkItem.State


def test_an_answer_and_the_end_of_its_batch_do_not_wait_for_each_other(monkeypatch) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    desk = Desk(overlap=2, people=2)
    tasks = [queue.claim(project=desk.project, user=user) for user in desk.people]
    answered, failed = threading.Event(), []
    settle = answers.settle_after

    def settle_late(label: Label) -> None:
        answered.set()
        ended.wait(0.5)  # until the other one waits for this
        settle(label)

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    def submit() -> None:
        late = next(task for task in tasks if task.work_item.slot == 1)
        queue.submit(
            user=late.work_item.leased_to,
            work_item_id=late.work_item.pk,
            token=late.token,
            value="cat",
            idempotency_key="late",
        )

    def withdraw() -> None:
        answered.wait(60)
        queue.withdraw_batch(batch=desk.batch)
        ended.set()

    ended = threading.Event()
    monkeypatch.setattr(answers, "settle_after", settle_late)
    threads = [threading.Thread(target=run, args=[work]) for work in (submit, withdraw)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    states = dict(desk.batch.work_items.values_list("slot", "state"))
    assert states == {0: State.WITHDRAWN, 1: State.DONE}
