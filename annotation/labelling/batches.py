"""Asking for labels: making batches, watching them, ending them.

Nobody is asked any more as soon as a batch ends; of a large one, a job writes that to its work items.
"""

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common.bulk import copy_rows
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling.labels_of_record import unsettled
from annotation.labelling.leases import NO_LEASE
from annotation.labelling.stuck_items import may_be_stuck, stuck_in
from annotation.models import Item, Label, Project, User, WorkBatch, WorkItem

State = WorkItem.State
AT_ONCE = 2_000
"""Open work items that are withdrawn in a request."""
CHUNK = 50_000
"""Items that are read before they are written: whoever gives them may read them from the database."""
KIND = "withdraw_work"
"""The job that withdraws what is left of large batches."""
WITHDRAWN_AT_ONCE = 5_000
"""Work items that it withdraws in one transaction."""


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is.

    The first five count work items: answers that are asked for, of which an item may need several. The others
    count items: those with an open answer that nobody is left to give, those that are asked about, those with
    a label of record, and those whose people have all answered without settling it. `all_stuck` says whether
    nobody but a manager can go on with any of what is left.
    """

    open: int
    leased: int
    done: int
    unlabelable: int
    total: int
    stuck: int
    items: int
    settled: int
    disagreeing: int
    all_stuck: bool

    @property
    def finished(self) -> bool:
        """Whether every item has a label of record or was given up."""
        return self.open == 0 and self.leased == 0 and self.disagreeing == 0


def create_batch(
    *,
    project: Project,
    item_ids: Iterable[int],
    blind: bool,
    priority: int,
    entropy: int,
    overlap: int = 1,
    overlap_share: Decimal = Decimal(1),
    people: Callable[[Sequence[int]], Sequence[Sequence[int]]] | None = None,
    third_decides: bool = False,
    suggests: bool = False,
) -> WorkBatch:
    """Ask people for one label of each item, in an order drawn from `entropy`; for `overlap` labels by as
    many people of items that are chosen at random, each with the probability `overlap_share`.

    With a roster, `people` gives for ids of items the ids of the users who label each, by slot, and nobody
    else is asked; `overlap` is then how many these are, and `third_decides` says that a third person does
    where two differ. With `suggests` whoever labels an item is shown what a model answered about it.

    Order and choice rest on hashes of `entropy` and the item's id, so that they say nothing about how the
    items were chosen or in which order they are given here. Raises InputError where an item is not of the
    project.
    """
    wrong = InputError(_("An item is given twice, or is not of this project."), where="item_ids")
    given = 0
    with transaction.atomic():
        # What somebody took while its batch was withdrawn would keep the item from everybody.
        _withdraw(
            WorkItem.objects.filter(
                batch__project=project, batch__withdrawn_at__isnull=False, state=State.LEASED
            )
        )
        batch = WorkBatch.objects.create(
            project=project,
            blind=blind,
            priority=priority,
            overlap=overlap,
            rostered=people is not None,
            third_decides=third_decides,
            suggests=suggests,
        )
        for ids in _chunks(item_ids):
            given += len(ids)
            slots = people(ids) if people else _slots(ids, entropy, overlap, overlap_share)
            rows = (
                (batch.pk, pk, slot, user, priority, _place(entropy, pk))
                for pk, users in zip(ids, slots, strict=True)
                for slot, user in enumerate(users)
            )
            try:
                copy_rows(WorkItem, ("batch", "item", "slot", "assigned_to", "priority", "order"), rows)
            except IntegrityError:  # two rows for one slot
                raise wrong from None
        # All at once: of a million items that is one look instead of a thousand.
        if Item.objects.filter(project=project, work_items__batch=batch, work_items__slot=0).count() != given:
            raise wrong
    return batch


def add_items(
    *,
    batches: Sequence[tuple[WorkBatch, Sequence[int]]],
    overlap_share: Decimal = Decimal(1),
    people: Callable[[Sequence[int]], Sequence[Sequence[int]]] | None = None,
) -> None:
    """Ask for labels of more items. None of them is in its batch yet, and none of the batches is locked or
    withdrawn; `overlap_share` and `people` are those of `create_batch`.

    Items of a batch are served in the order in which they are given here. That apart, neither their places
    in the queue nor the numbers of their work items say anything, nor in which of the batches they are:
    places are drawn by chance, and the rows of all batches are stored in one order drawn by chance.
    """
    rows: list[tuple[int, int, int, int | None, int, int]] = []
    for batch, ids in batches:
        places = sorted(secrets.randbits(63) for _ in ids)
        slots = people(ids) if people else _slots(ids, secrets.randbits(128), batch.overlap, overlap_share)
        rows += (
            (batch.pk, pk, slot, user, batch.priority, place)
            for pk, place, users in zip(ids, places, slots, strict=True)
            for slot, user in enumerate(users)
        )
    secrets.SystemRandom().shuffle(rows)
    copy_rows(WorkItem, ("batch", "item", "slot", "assigned_to", "priority", "order"), rows)


def lock_batch(*, batch: WorkBatch) -> WorkBatch:
    """From now on a correction makes what rests on these labels invalid. Locking twice has one effect.

    Raises ConflictError while an item is open or with somebody, or people differ about it.
    """
    with transaction.atomic():
        # The moment is taken when the row is ours: a correction that held it until now is before the lock.
        locked = WorkBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
        if locked.locked_at is None:
            last = Label.objects.filter(work_item__batch=batch).aggregate(last=Max("created_at"))["last"]
            settled = (
                batch.settlements.aggregate(last=Max("created_at"))["last"] if batch.overlap > 1 else None
            )
            # Of two servers one clock may be behind the other.
            locked.locked_at = max(filter(None, (timezone.now(), last, settled)))
            locked.save(update_fields=["locked_at"])
        waiting = WorkItem.objects.filter(batch=batch, state__in=WorkItem.UNFINISHED).count()
        if waiting:
            raise ConflictError(
                _("%(count)s items still wait for their label.") % {"count": f"{waiting:,}"},
                code="items_unlabelled",
            )
        if batch.overlap > 1 and (differ := unsettled(WorkItem.objects.filter(batch=batch)).count()):
            raise ConflictError(
                _("People differ about %(count)s items: a reviewer has to decide.")
                % {"count": f"{differ:,}"},
                code="items_disputed",
            )
    batch.refresh_from_db(fields=["locked_at"])
    return batch


def withdraw_batch(*, batch: WorkBatch) -> int:
    """Ask no longer for what has no label yet; returns how many work items that is. Labels stay."""
    with transaction.atomic():
        _mark_withdrawn(batch)
        return _withdraw(WorkItem.objects.filter(batch=batch, state__in=WorkItem.UNFINISHED))


def stop_asking(*, batch: WorkBatch) -> bool:
    """As `withdraw_batch` to everybody who labels, and quick however large the batch is: nobody is given
    anything of it any more, and what people hold is withdrawn. False where the rest is left to
    `withdraw_some`.
    """
    with transaction.atomic():
        _mark_withdrawn(batch)
        waiting = WorkItem.objects.filter(batch=batch, state=State.OPEN)
        many = len(waiting.order_by().values_list("pk")[: AT_ONCE + 1]) > AT_ONCE
        states = (State.LEASED,) if many else WorkItem.UNFINISHED
        _withdraw(WorkItem.objects.filter(batch=batch, state__in=states))
        return not many


def left_to_withdraw(batch: WorkBatch, most: int) -> list[int]:
    """Some work items of a withdrawn batch that still look as if they were asked for."""
    left = WorkItem.objects.filter(batch=batch, state__in=WorkItem.UNFINISHED).order_by()
    return list(left.values_list("pk", flat=True)[:most])


def withdraw_some(batch: WorkBatch, work_items: Collection[int]) -> int:
    """Withdraw these of the batch; call it in a transaction."""
    # The batch first, as in `settlement.lock_settling`.
    list(WorkBatch.objects.select_for_update(no_key=True).filter(pk=batch.pk).values_list("pk"))
    return _withdraw(WorkItem.objects.filter(batch=batch, pk__in=work_items, state__in=WorkItem.UNFINISHED))


def withdraw_items(items: Collection[int]) -> int:
    """Ask nobody any more about these items, whichever batches they are in; call it in a transaction."""
    work = WorkItem.objects.filter(item__in=items, state__in=WorkItem.UNFINISHED)
    batches = WorkBatch.objects.filter(pk__in=work.order_by().values("batch")).order_by("pk")
    list(batches.select_for_update(no_key=True).values_list("pk"))
    return _withdraw(work)


def _mark_withdrawn(batch: WorkBatch) -> None:
    WorkBatch.objects.filter(pk=batch.pk, withdrawn_at__isnull=True).update(withdrawn_at=timezone.now())


def _withdraw(work: QuerySet[WorkItem]) -> int:
    return work.update(state=State.WITHDRAWN, finished_at=timezone.now(), **NO_LEASE)


def batch_progress(batch: WorkBatch) -> BatchProgress:
    """How far the batch is. Withdrawn work items are not counted."""
    # What is open of a batch that was withdrawn is being withdrawn.
    gone = (State.WITHDRAWN,) if batch.withdrawn_at is None else (State.WITHDRAWN, State.OPEN)
    asked = WorkItem.objects.filter(batch=batch).exclude(state__in=gone)
    counts: dict[str, int] = dict(asked.values_list("state").annotate(count=Count("pk")).order_by())
    total, done = sum(counts.values()), counts.get(State.DONE, 0)
    open_, leased = counts.get(State.OPEN, 0), counts.get(State.LEASED, 0)
    slots = stuck = stuck_in(batch).count() if may_be_stuck(batch) else 0
    items, settled, disagreeing = total, done, 0
    if batch.overlap > 1:
        slots = stuck_in(batch, one_per_item=False).count() if stuck else 0
        items, settled, disagreeing = _items_of_several(batch)
    return BatchProgress(
        open=open_,
        leased=leased,
        done=done,
        unlabelable=counts.get(State.UNLABELABLE, 0),
        total=total,
        stuck=stuck,
        items=items,
        settled=settled,
        disagreeing=disagreeing,
        all_stuck=bool(stuck) and not leased and slots == open_,
    )


def progress_together(*progresses: BatchProgress) -> BatchProgress:
    """How far several batches are that people label side by side."""
    counts = {
        field.name: sum(getattr(one, field.name) for one in progresses)
        for field in fields(BatchProgress)
        if field.name != "all_stuck"
    }
    waiting = [one for one in progresses if one.open or one.leased]
    return BatchProgress(**counts, all_stuck=bool(waiting) and all(one.all_stuck for one in waiting))


def _items_of_several(batch: WorkBatch) -> tuple[int, int, int]:
    """Items that are asked about, that have a label of record, and whose people have all answered without
    settling it (annotation.labelling.labels_of_record.unsettled), in one pass over the work items.
    """
    unanswered = Q(state__in=(State.OPEN, State.LEASED, State.UNLABELABLE))
    by_item = (
        WorkItem.objects.filter(batch=batch)
        .order_by()
        .values("item")
        .annotate(
            last=Max("slot"),
            given=Count("pk", filter=Q(state=State.DONE)),
            missing=Count("pk", filter=unanswered),
        )
    )
    counted = by_item.aggregate(
        items=Count("item", filter=Q(given__gt=0) | Q(missing__gt=0)),
        alone=Count("item", filter=Q(last=0, given__gt=0)),
        answered=Count("item", filter=Q(last__gt=0, given__gt=0, missing=0)),
    )
    # Only what is answered is ever settled, and an answer stays.
    standing = batch.settlements.filter(superseded_by__isnull=True, value__isnull=False).count()
    return counted["items"], counted["alone"] + standing, counted["answered"] - standing


def _slots(
    ids: Sequence[int], entropy: int, overlap: int, overlap_share: Decimal
) -> Iterator[Sequence[None]]:
    """One entry for each label that is asked for of each item, whoever gives it."""
    one, several = [None], [None] * overlap
    for pk in ids:
        yield several if overlap > 1 and _has_several(entropy, pk, overlap_share) else one


def _place(entropy: int, item_id: int) -> int:
    """63 bits: what a PositiveBigIntegerField holds."""
    return int.from_bytes(hashlib.sha256(f"{entropy}:{item_id}".encode()).digest()[:8]) >> 1


def _has_several(entropy: int, item_id: int, share: Decimal) -> bool:
    """Whether several people are asked about an item: each on its own, so that the draw of a calibration set
    stays a simple random sample whatever came out.
    """
    digest = hashlib.sha256(f"{entropy}:{item_id}:several".encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64


def _chunks(item_ids: Iterable[int]) -> Iterator[list[int]]:
    rest = iter(item_ids)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def withdraw(*, project: Project, batches: Sequence[WorkBatch], user: User | None) -> None:
    """Ask no longer for what has no label yet: of a large batch, a job writes that to its work items."""
    left = [batch.pk for batch in batches if not stop_asking(batch=batch)]
    if left:
        jobs.enqueue(project=project, kind_name=KIND, params={"batches": left}, user=user)


def withdraw_work(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "withdraw_work"."""
    done = context.job.done
    for batch in WorkBatch.objects.filter(pk__in=context.params["batches"], project=context.job.project_id):
        while work_items := left_to_withdraw(batch, WITHDRAWN_AT_ONCE):
            done += len(work_items)
            with context.chunk(done=done):
                withdraw_some(batch, work_items)
    return {"withdrawn": done}
