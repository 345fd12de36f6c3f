"""What people said about the items of a run."""

from datetime import datetime

from annotation.models import Label, Settlement, WorkBatch, WorkItem
from annotation.values import Value


def records_at(batch: WorkBatch, moment: datetime) -> dict[int, Value]:
    """Item id -> its label of record as it held at `moment`: the answer of the one person who was asked, or
    what the answers of several were settled to.
    """
    labels = Label.objects.filter(work_item__batch=batch, created_at__lte=moment).order_by("version")
    if batch.overlap > 1:
        several = WorkItem.objects.filter(batch=batch, slot=1).values("item")
        labels = labels.exclude(item__in=several)
    rows = labels.values_list("item_id", "value")
    found: dict[int, Value] = dict(rows.iterator(chunk_size=2_000))
    return found | _settled_at(batch, moment)


def _settled_at(batch: WorkBatch, moment: datetime) -> dict[int, Value]:
    if batch.overlap == 1:
        return {}
    settlements = Settlement.objects.filter(batch=batch, created_at__lte=moment).order_by("version")
    newest = dict(settlements.values_list("item_id", "value"))
    return {item: value for item, value in newest.items() if value is not None}


def given_up(batch: WorkBatch) -> set[int]:
    """Ids of the items that nobody could label."""
    rows = WorkItem.objects.filter(batch=batch, state=WorkItem.State.UNLABELABLE)
    return set(rows.values_list("item_id", flat=True))
