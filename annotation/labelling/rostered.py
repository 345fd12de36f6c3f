"""Work that a roster gives to one person each: added, withdrawn and given up by whose it is."""

import secrets
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.labelling.leases import MAX_AHEAD, NO_LEASE
from annotation.labelling.settlement import settle_withdrawn
from annotation.models import Skip, User, WorkBatch, WorkItem

State = WorkItem.State
PART = 500
LAST = 2**63 - 1
"""What holds an order."""


def add_work(*, batch: WorkBatch, people: Mapping[int, Sequence[int]]) -> int:
    """Ask for labels of more items: `people` are the ids of the users by slot, of each item's id. Returns how
    many work items that adds; what is there already stays as it is.

    Neither their place in the queue nor the number of their work item says that they came later: a new item
    takes, by chance, the work item of one that waits for the same person, which takes the new one at the end
    (the shuffle of Fisher and Yates, from within). What somebody may have seen stays where it is. Raises
    ConflictError for a batch that is locked or withdrawn.
    """
    with transaction.atomic():
        current = WorkBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
        if current.locked_at is not None or current.withdrawn_at is not None:
            raise ConflictError(
                _("Nothing can be added: these labels are locked, or no longer asked for."),
                code="labels_locked",
            )
        there = set(
            WorkItem.objects.filter(batch=current, item__in=list(people)).values_list("item_id", flat=True)
        )
        new = [item for item in people if item not in there]
        secrets.SystemRandom().shuffle(new)
        end = WorkItem.objects.filter(batch=current).aggregate(last=Max("order"))["last"] or 0
        rows = [
            WorkItem(
                batch=current,
                item_id=item,
                slot=slot,
                assigned_to_id=user,
                priority=current.priority,
                order=min(end + number, LAST),
            )
            for number, item in enumerate(new, start=1)
            for slot, user in enumerate(people[item])
        ]
        _shuffle_in(current, rows)
        WorkItem.objects.bulk_create(rows)
    return len(rows)


def _shuffle_in(batch: WorkBatch, rows: Sequence[WorkItem]) -> None:
    """Exchange items between new work items, at the end, and those that wait for the same person."""
    moved: dict[int, int] = {}
    given: list[tuple[WorkItem, int]] = []
    people = sorted({(row.assigned_to_id or 0, row.slot) for row in rows})
    for user, slot in people:
        mine = [row for row in rows if (row.assigned_to_id, row.slot) == (user, slot)]
        waiting = _unseen(batch, user, slot)
        items = [item for _pk, item in waiting]
        for row in mine:
            items.append(row.item_id)
            place = secrets.randbelow(len(items))
            items[place], items[-1] = items[-1], items[place]
        kept = len(waiting)
        moved |= {
            pk: item for (pk, before), item in zip(waiting, items[:kept], strict=True) if item != before
        }
        given += zip(mine, items[kept:], strict=True)
    changed = list(WorkItem.objects.select_for_update(no_key=True).filter(pk__in=list(moved)))
    still = {pk for user, slot in people for pk, _item in _unseen(batch, user, slot)}
    if not still.issuperset(moved):
        return  # one was given out in this moment: the new ones stay at the end
    for work_item in changed:
        work_item.item_id = moved[work_item.pk]
    WorkItem.objects.bulk_update(changed, ["item"], batch_size=PART)
    for row, item in given:
        row.item_id = item


def _unseen(batch: WorkBatch, user: int, slot: int) -> list[tuple[int, int]]:
    """Keys and items of what waits for somebody who cannot have seen it: they are given the first ones alone,
    as many as they may hold, and what they skipped is passed over.
    """
    skipped = Skip.objects.filter(work_item=OuterRef("pk"))
    work = WorkItem.objects.filter(
        ~Exists(skipped), batch=batch, assigned_to=user, slot=slot, state__in=WorkItem.UNFINISHED
    )
    rows = work.order_by("priority", "order").values_list("pk", "item_id", "state")
    return [(pk, item) for pk, item, state in rows[1 + MAX_AHEAD :] if state == State.OPEN]


def withdraw_work_of(*, batch: WorkBatch, user: User | None) -> list[int]:
    """Ask somebody no longer for what is open of a batch, or everybody where `user` is None; returns the ids
    of these items. What is before somebody at this moment is withdrawn, too: an answer that comes later is
    kept as a draft. What others have answered about them is enough.
    """
    with transaction.atomic():
        work = _lock_unfinished(batch, user)
        items = sorted({item for _pk, item in work})
        _end([pk for pk, _item in work], State.WITHDRAWN)
        settle_withdrawn(batch, items)
    return items


def give_up_work_of(*, batch: WorkBatch, user: User, actor: User | None) -> int:
    """Decide that somebody's open items of a batch get no answer, and that nobody else is asked; returns how
    many.

    Raises ConflictError for a batch that is locked.
    """
    with transaction.atomic():
        if WorkBatch.objects.filter(pk=batch.pk, locked_at__isnull=False).exists():
            raise ConflictError(_("The labels of these items have been locked."), code="labels_locked")
        work = _lock_unfinished(batch, user)
        _end([pk for pk, _item in work], State.UNLABELABLE)
        audit.record(
            project=batch.project,
            actor=actor,
            action="work.given_up_of",
            target=f"batch:{batch.pk}",
            data={"user": user.pk, "count": len(work)},
        )
    return len(work)


def _lock_unfinished(batch: WorkBatch, user: User | None) -> list[tuple[int, int]]:
    """Keys and items of what is open, or before somebody; the batch is locked first, as whoever ends work
    items does.
    """
    list(WorkBatch.objects.select_for_update(no_key=True).filter(pk=batch.pk).values_list("pk"))
    work = WorkItem.objects.filter(batch=batch, state__in=WorkItem.UNFINISHED)
    if user is not None:
        work = work.filter(assigned_to=user)
    return list(work.order_by("pk").values_list("pk", "item_id"))


def _end(work_items: Sequence[int], state: str) -> None:
    for start in range(0, len(work_items), PART):
        part = WorkItem.objects.filter(pk__in=work_items[start : start + PART], state__in=WorkItem.UNFINISHED)
        part.update(state=state, finished_at=timezone.now(), **NO_LEASE)
