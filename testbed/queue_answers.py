"""What people of a world get from the queue and give to it: all at once where that is the same."""

from datetime import timedelta

from annotation.common.clock import database_time
from annotation.common.value_reader import Value
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.labelling.leases import LeasedItem
from annotation.labelling.next_item import available_work_items, batches_with_work
from annotation.models import Membership, Project, User, WorkItem
from annotation.ports import routing_port

TOKEN = "0" * 32


def handed_out(project: Project, user: User, limit: int | None) -> list[LeasedItem]:
    """All that the queue would give this person one after the other, at most `limit`, in its order; where it
    gives somebody who may label only so many items, the next one. A claim each would ask anew before each.
    """
    first = queue.claim(project=project, user=user) if limit != 0 else None
    if first is None:
        return []
    member = Membership.objects.get(project=project, user=user)
    if limit == 1 or member.max_labels is not None or member.max_per_day is not None:
        return [first]
    now, found = database_time(), list[tuple[int, int, WorkItem]]()
    objection = routing_port().blind_objection(project=project, user=user)
    for batch, _expired in batches_with_work(project, now):
        if not (batch.blind and objection):
            waiting = available_work_items(batch, user).filter(state=WorkItem.State.OPEN)
            found += ((batch.priority, row.order, row) for row in waiting.select_related("item"))
    found.sort(key=lambda one: (one[0], one[1], one[2].pk))
    others = {row.item_id: row for _, _, row in reversed(found) if row.item_id != first.item.pk}
    rows = list(reversed(others.values()))[: None if limit is None else limit - 1]
    until = now + timedelta(seconds=project.lease_seconds)
    WorkItem.objects.filter(pk__in=[row.pk for row in rows]).update(
        state=WorkItem.State.LEASED, leased_to=user, lease_token=TOKEN, lease_expires_at=until
    )
    return [first, *(LeasedItem(row, row.item, TOKEN, until) for row in rows)]


def submitted(user: User, task: LeasedItem, value: Value, key: str) -> bool:
    """Whether the answer was taken; not where another answer had the item withdrawn."""
    try:
        queue.submit(
            user=user, work_item_id=task.work_item.pk, token=task.token, value=value, idempotency_key=key
        )
    except ConflictError:
        if WorkItem.objects.get(pk=task.work_item.pk).state != WorkItem.State.WITHDRAWN:
            raise
        return False
    return True
