"""Who is far ahead of the others in a batch that asks several people about an item."""

import random

import pytest
from django.utils import timezone

from annotation.labelling import next_item, queue
from annotation.labelling.labels_of_record import unsettled
from annotation.labelling.next_item import available_work_items
from annotation.models import Settlement, WorkItem
from tests.annotation.labelling.several import SeveralDesk as Desk

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]
State = WorkItem.State


@pytest.fixture(autouse=True)
def short_looks(monkeypatch) -> None:
    """So short that small batches go through all parts of the search."""
    monkeypatch.setattr(next_item, "WINDOW", 3)
    monkeypatch.setattr(next_item, "LATEST", 4)


def may_have(desk: Desk, user) -> list[int]:
    """Ids of what the person could be given now, by looking at every row."""
    rows = available_work_items(desk.batch, user)
    past = rows.filter(state=State.LEASED, lease_expires_at__lte=timezone.now())
    return [*past.values_list("pk", flat=True), *rows.filter(state=State.OPEN).values_list("pk", flat=True)]


def test_who_is_ahead_goes_on_where_they_are_and_at_last_takes_what_was_left_behind() -> None:
    desk = Desk(items=20, overlap=2, people=2)
    ahead, other = desk.people
    first = queue.claim(project=desk.project, user=other)
    places = []
    while task := queue.claim(project=desk.project, user=ahead):
        places.append(task.work_item.order)
        desk.submit(ahead, "cat")
    assert places == sorted(places)
    assert len(places) == 20
    queue.release(user=other, work_item_id=first.work_item.pk, token=first.token)
    assert queue.claim(project=desk.project, user=ahead) is None
    assert queue.claim(project=desk.project, user=other).work_item.order == places[0]


@pytest.mark.parametrize("seed", [0, 2])
def test_nobody_is_told_that_nothing_is_left_while_something_is(seed) -> None:
    """In random order and at a different speed each: nobody gets what they may not have, everybody gets
    something as long as there is something for them, and the counts are those of all rows.
    """
    rng = random.Random(seed)
    desk = Desk(items=20, overlap=3, people=4, share="0.7")
    # Most have a word of their own, so that they differ about some items, whichever several are asked about.
    words = dict(zip(desk.people, ("cat", "dog", "emu", "cat"), strict=True))
    for _ in range(280):
        user = rng.choices(desk.people, weights=[8, 4, 2, 1])[0]
        mine = set(desk.batch.work_items.filter(leased_to=user).values_list("pk", flat=True))
        possible = mine or set(may_have(desk, user))
        task = queue.claim(project=desk.project, user=user)
        assert (task is None) is (not possible)
        if task is None:
            continue
        assert task.work_item.pk in possible
        what = rng.random()
        held = {"user": user, "work_item_id": task.work_item.pk, "token": task.token}
        if what < 0.05:
            queue.skip(**held, reason="unclear")
        elif what < 0.3:
            queue.release(**held)
        elif what < 0.4:
            WorkItem.objects.filter(pk=task.work_item.pk).update(lease_expires_at="2020-01-01T00:00Z")
        elif what < 0.9:
            desk.submit(user, words[user] if rng.random() < 0.7 else rng.choice(["cat", "dog", "emu"]))
    progress = queue.batch_progress(desk.batch)
    work = WorkItem.objects.filter(batch=desk.batch)
    assert progress.items == work.values("item").distinct().count()
    assert progress.disagreeing == unsettled(work).count() > 0
    several = work.filter(slot=1).values("item")
    alone = work.exclude(item__in=several).filter(state=State.DONE).count()
    assert progress.settled == alone + Settlement.objects.filter(superseded_by__isnull=True).count()
    stuck = set(queue.stuck_items(desk.project).values_list("item", flat=True))
    assert progress.stuck == len(stuck)
    for work_item in work.filter(state=State.OPEN):
        nobody = all(
            not available_work_items(desk.batch, user).filter(pk=work_item.pk).exists()
            and not work.filter(item=work_item.item_id, leased_to=user).exists()
            for user in desk.people
        )
        if nobody and not work.filter(item=work_item.item_id, state=State.LEASED).exists():
            assert work_item.item_id in stuck
