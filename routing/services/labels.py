"""What people said about the items of a run."""

from datetime import datetime

from annotation.models import Label, WorkBatch, WorkItem


def labels_at(batch: WorkBatch, moment: datetime) -> dict[int, Label]:
    """Item id -> the version of its label that held at `moment`."""
    labels = Label.objects.filter(work_item__batch=batch, created_at__lte=moment).order_by("version")
    return {label.item_id: label for label in labels.iterator(chunk_size=2_000)}


def given_up(batch: WorkBatch) -> set[int]:
    """Ids of the items that nobody could label."""
    rows = WorkItem.objects.filter(batch=batch, state=WorkItem.State.UNLABELABLE)
    return set(rows.values_list("item_id", flat=True))
