"""Asking for labels: making batches, watching them, ending them."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from django.db import transaction
from django.db.models import Count, Max
from django.utils import timezone

from annotation.errors import ConflictError, InputError
from annotation.models import Item, Label, Project, Skip, WorkBatch, WorkItem
from annotation.queue.decisions import stuck_in
from annotation.queue.leases import NO_LEASE

State = WorkItem.State
CHUNK = 1000


@dataclass(frozen=True)
class BatchProgress:
    """Counts of work items. `stuck` of the open ones were skipped by everyone who may label them."""

    open: int
    leased: int
    done: int
    unlabelable: int
    total: int
    stuck: int

    @property
    def finished(self) -> bool:
        """Whether every item has a label or was given up."""
        return self.open == 0 and self.leased == 0


def create_batch(
    *, project: Project, item_ids: Iterable[int], blind: bool, priority: int, entropy: int
) -> WorkBatch:
    """Ask people for one label of each item, in an order drawn from `entropy`.

    The order rests on a hash of `entropy` and the item's id, so that it says nothing about how the items were
    chosen or in which order they are given here. Raises InputError where an item is not of the project.
    """
    with transaction.atomic():
        batch = WorkBatch.objects.create(project=project, blind=blind, priority=priority)
        for ids in _chunks(item_ids):
            if Item.objects.filter(project=project, pk__in=ids).count() != len(ids):
                raise InputError("An item is given twice, or is not of this project.", where="item_ids")
            WorkItem.objects.bulk_create(
                WorkItem(batch=batch, item_id=pk, priority=priority, order=_place(entropy, pk)) for pk in ids
            )
    return batch


def lock_batch(*, batch: WorkBatch) -> WorkBatch:
    """From now on a correction makes what rests on these labels invalid. Locking twice has one effect.

    Raises ConflictError while an item is open or with somebody.
    """
    with transaction.atomic():
        # The moment is taken when the row is ours: a correction that held it until now is before the lock.
        locked = WorkBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
        if locked.locked_at is None:
            last = Label.objects.filter(work_item__batch=batch).aggregate(last=Max("created_at"))["last"]
            # Of two servers one clock may be behind the other.
            locked.locked_at = max(filter(None, (timezone.now(), last)))
            locked.save(update_fields=["locked_at"])
        waiting = WorkItem.objects.filter(batch=batch, state__in=(State.OPEN, State.LEASED)).count()
        if waiting:
            raise ConflictError(f"{waiting:,} items still wait for their label.")
    batch.refresh_from_db(fields=["locked_at"])
    return batch


def withdraw_batch(*, batch: WorkBatch) -> int:
    """Ask no longer for what has no label yet; returns how many items that is. Labels stay."""
    return WorkItem.objects.filter(batch=batch, state__in=(State.OPEN, State.LEASED)).update(
        state=State.WITHDRAWN, finished_at=timezone.now(), **NO_LEASE
    )


def batch_progress(batch: WorkBatch) -> BatchProgress:
    """How far the batch is. Withdrawn items are not counted."""
    counts: dict[str, int] = dict(
        WorkItem.objects.filter(batch=batch)
        .exclude(state=State.WITHDRAWN)
        .values_list("state")
        .annotate(count=Count("pk"))
        .order_by()
    )
    skipped = Skip.objects.filter(work_item__batch=batch, cleared_at__isnull=True)
    return BatchProgress(
        open=counts.get(State.OPEN, 0),
        leased=counts.get(State.LEASED, 0),
        done=counts.get(State.DONE, 0),
        unlabelable=counts.get(State.UNLABELABLE, 0),
        total=sum(counts.values()),
        stuck=stuck_in(batch).count() if skipped.exists() else 0,
    )


def _place(entropy: int, item_id: int) -> int:
    """63 bits: what a PositiveBigIntegerField holds."""
    return int.from_bytes(hashlib.sha256(f"{entropy}:{item_id}".encode()).digest()[:8]) >> 1


def _chunks(item_ids: Iterable[int]) -> Iterator[list[int]]:
    rest = iter(item_ids)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
