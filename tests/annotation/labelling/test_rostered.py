"""Work that is added to somebody's queue says by nothing that it came later."""

import secrets

import pytest
from django.db import transaction

from annotation.labelling import queue
from annotation.models import WorkBatch, WorkItem
from testbed.factories import add_member, make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.database]

HELD = 3
"""Items that somebody is given at most before they answer."""


def batch_of(waiting: int, new: int):
    project = make_project(choices=["a", "b"])
    user = add_member(project)
    items = [item.pk for item in make_items(project, [f"text {number}" for number in range(waiting + new)])]
    batch = queue.create_batch(
        project=project,
        item_ids=items[:waiting],
        blind=True,
        priority=5,
        entropy=7,
        people=lambda ids: [[user.pk] for _ in ids],
    )
    return batch, user, items[waiting:]


def served(batch: WorkBatch) -> list[int]:
    return list(batch.work_items.order_by("priority", "order").values_list("item", flat=True))


def numbered(batch: WorkBatch) -> list[int]:
    return list(batch.work_items.order_by("pk").values_list("item", flat=True))


def test_each_place_and_each_number_is_as_likely_for_what_is_added(monkeypatch) -> None:
    batch, user, (new,) = batch_of(7, 1)
    before, numbers = served(batch), numbered(batch)
    last = {"served": set(), "numbered": set()}
    for outcome in range(7 - HELD + 1):
        monkeypatch.setattr(secrets, "randbelow", lambda _most, outcome=outcome: outcome)
        with transaction.atomic():
            assert queue.add_work(batch=batch, people={new: [user.pk]}) == 1
            assert served(batch)[HELD + outcome] == new
            assert served(batch)[:HELD] == before[:HELD], "what she may have seen moved"
            assert sorted(served(batch)) == sorted([*before, new])
            last["served"].add(served(batch)[-1])
            last["numbered"].add(numbered(batch)[-1])
            transaction.set_rollback(True)
        assert numbered(batch) == numbers
    # Whatever waits may be what has the newest number and the last place.
    assert last == {"served": {*before[HELD:], new}, "numbered": {*before[HELD:], new}}


def test_what_somebody_saw_or_skipped_keeps_its_work_item() -> None:
    batch, user, new = batch_of(9, 30)
    held = queue.claim_ahead(project=batch.project, user=user)
    queue.skip(user=user, work_item_id=held[0].work_item.pk, token=held[0].token, reason="unclear")
    held = queue.claim_ahead(project=batch.project, user=user)
    queue.release_all(project=batch.project, user=user)
    seen = dict(WorkItem.objects.filter(skips__isnull=False).values_list("pk", "item"))
    seen |= {task.work_item.pk: task.item.pk for task in held}
    assert len(seen) == HELD + 1
    for item in new:
        queue.add_work(batch=batch, people={item: [user.pk]})
        assert dict(WorkItem.objects.filter(pk__in=seen).values_list("pk", "item")) == seen
    assert set(numbered(batch)[:9]) & set(new), "by chance new ones took the place of old ones"
    assert sorted(served(batch)) == sorted(batch.project.items.values_list("pk", flat=True))


def test_many_at_once_come_once_each_and_are_not_added_twice() -> None:
    batch, user, new = batch_of(6, 12)
    people = {item: [user.pk] for item in new}
    assert queue.add_work(batch=batch, people=people) == 12
    assert queue.add_work(batch=batch, people=people) == 0
    assert sorted(served(batch)) == sorted(batch.project.items.values_list("pk", flat=True))
    assert served(batch)[6:] != new, "not in the order in which they came"
