"""Where several people answer for one item: what becomes its label of record, stored as a `Settlement`.

More than half of the answers settle it at once; else a reviewer decides, or, outside blind batches,
Dawid-Skene. All of it is taken from the item's own answers, except by Dawid-Skene, which learns from those of
other items how far each person is to be trusted.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.ranges import of_items
from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling.alike import Alike
from annotation.labelling.dawid_skene import dawid_skene
from annotation.labelling.labels_of_record import answers_of, newest_settlement, unsettled
from annotation.labelling.leases import NO_LEASE
from annotation.labelling.validation import check_comment, validate_value
from annotation.models import Item, Label, Settlement, User, WorkBatch, WorkItem
from annotation.ports import routing_port
from annotation.task_types import TASK_TYPES

State = WorkItem.State
Method = Settlement.Method
CHUNK = 500


def settle_after(label: Label) -> Settlement | None:
    """Settle the item of a label that was just stored, or open it again; the new settlement, if any.

    Call it in the transaction that stores the label, and that has begun with `lock_settling`.
    """
    batch = label.work_item.batch
    return None if batch.overlap == 1 else settle_item(batch, label.item_id)


def lock_settling(batch: WorkBatch) -> None:
    """Call it first in a transaction that ends a work item or changes an answer: the answers of one item come
    one after the other.

    Two people who give the last two at once would else each see the other's as missing. And it is the batch
    that is locked, before any work item, as whoever withdraws it does: locks that are taken in another order
    end one of the two with "deadlock detected". Of several batches that are locked, the first comes first.
    """
    asks = batch.rostered or batch.blind
    together = set(routing_port().locked_together(batch=batch)) if asks else set()
    if batch.overlap > 1:
        together.add(batch.pk)
    if together:
        batches = WorkBatch.objects.select_for_update(no_key=True).filter(pk__in=together)
        list(batches.order_by("pk").values_list("pk"))


def settle_item(batch: WorkBatch, item_id: int) -> Settlement | None:
    """Bring an item's settlement in line with its answers once all of them are there.

    A label that more than half gave, or gave alike (the first of these), counts before a reviewer's
    decision, and that one stays where the answers go on to differ. A majority or an outcome of Dawid-Skene
    whose reasons are gone leaves the item open. The answers of a guideline round settle nothing, nor do those
    to gold items.
    """
    if batch.for_round or batch.for_gold:
        return None
    if batch.third_decides:
        return _settle_by_third(batch, item_id)
    states = _states(batch, item_id)
    if len(states) < 2 or _still_asked(states) or State.UNLABELABLE in states:
        return None
    now = replaced_labels(batch.project).now
    given = [now(label.value) for label in answers_of(batch, Item(pk=item_id))]
    found = Alike(batch.project, batch=batch.pk).given_by_most(given)
    standing = newest_settlement(batch, item_id)
    if found is not None:
        if standing is not None and standing.value is not None and now(standing.value) == found:
            return None
        return _store(batch, item_id, standing, found, Method.MAJORITY)
    if standing is None or standing.value is None or standing.method == Method.ADJUDICATED:
        return None
    return _store(batch, item_id, standing, None, standing.method)


def settle_withdrawn(batch: WorkBatch, item_ids: Sequence[int]) -> None:
    """Settle items of which some answers are asked for no more by those that are there, if they agree; else a
    reviewer decides.
    """
    if batch.overlap == 1:
        return
    answered = WorkItem.objects.filter(of_items("item", item_ids), batch=batch, state=State.DONE)
    for item_id in answered.order_by("item").values_list("item", flat=True).distinct():
        settle_item(batch, item_id)


def _settle_by_third(batch: WorkBatch, item_id: int) -> Settlement | None:
    """The same where a third person decides if the first two differ, and is asked only then."""
    work = {one.slot: one for one in WorkItem.objects.filter(batch=batch, item=item_id)}
    if len(work) < 2 or any(work[slot].state != State.DONE for slot in (0, 1)):
        return None
    given = {label.work_item.slot: label for label in answers_of(batch, Item(pk=item_id))}
    standing, third = newest_settlement(batch, item_id), work.get(2)
    now, by_loss = replaced_labels(batch.project).now, Alike(batch.project, batch=batch.pk).by_loss

    def alike(one: Label, other: Label) -> bool:
        return by_loss(now(one.value), now(other.value))

    if now(given[0].value) == now(given[1].value) or alike(given[0], given[1]):
        if third is not None and third.state in WorkItem.UNFINISHED:
            _move(third, State.WITHDRAWN)
        return _store_new(batch, item_id, standing, given[0].value)
    if third is not None and third.state == State.DONE:
        value, decider = given[2].value, given[2].annotator
        first_two = (given[0], given[1])
        if value in [one.value for one in first_two] or any(alike(given[2], one) for one in first_two):
            return _store_new(batch, item_id, standing, value)
        return _store_new(batch, item_id, standing, value, Method.ADJUDICATED, decider)
    # A correction may come when the labels are locked: nobody can be asked then.
    still = WorkBatch.objects.filter(pk=batch.pk, locked_at__isnull=True, withdrawn_at__isnull=True)
    if still.exists():
        _ask_third(batch, item_id, third)
    if standing is None or standing.value is None:
        return None
    return _store(batch, item_id, standing, None, Method.MAJORITY)


def _ask_third(batch: WorkBatch, item_id: int, third: WorkItem | None) -> None:
    """Ask whoever decides, unless they are asked already; a reviewer is where the roster names nobody."""
    if third is not None:
        if third.state == State.WITHDRAWN:
            _move(third, State.OPEN)
        return
    decider = routing_port().decider(batch=batch, item_id=item_id)
    if decider is not None:
        first = WorkItem.objects.get(batch=batch, item=item_id, slot=0)
        WorkItem.objects.create(
            batch=batch,
            item_id=item_id,
            slot=2,
            assigned_to_id=decider,
            priority=first.priority,
            order=first.order,
        )


def _move(work_item: WorkItem, state: str) -> None:
    ended = None if state == State.OPEN else timezone.now()
    WorkItem.objects.filter(pk=work_item.pk).update(state=state, finished_at=ended, **NO_LEASE)


def _store_new(
    batch: WorkBatch,
    item_id: int,
    standing: Settlement | None,
    value: Value,
    method: str = Method.MAJORITY,
    decided_by: User | None = None,
) -> Settlement | None:
    """Store a settlement, unless the one that stands says the same."""
    if standing is not None and standing.value == value:
        return None
    return _store(batch, item_id, standing, value, method, decided_by=decided_by)


def adjudicate(
    *,
    batch: WorkBatch,
    item: Item,
    actor: User,
    value: Any,
    comment: str = "",
    confirmed: bool = False,
) -> Settlement:
    """Decide what the label of record of an item is about which people differ.

    Who decided may change it; for anybody else it is decided. Once the batch is locked, `confirmed` has to
    say that what rests on its labels becomes invalid. Raises ConflictError where there is nothing to decide
    (any more, or yet), InputError for a value that is no label of the project, NotAllowedError where the
    person may not label a blind batch.
    """
    value = validate_value(batch.project, value, item=item.pk)
    check_comment(comment)
    with transaction.atomic():
        # Before the batch's lock or after it, never beside it; and one reviewer after the other.
        project = batch.project
        batch = WorkBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
        if batch.withdrawn_at is not None:
            raise ConflictError(_("This item is no longer asked for."), code="not_asked_for")
        third = routing_port().decider(batch=batch, item_id=item.pk) if batch.third_decides else None
        if third is not None and batch.locked_at is None:
            raise ConflictError(
                _("Where two people differ here, a third one of the roster decides."),
                code="third_person_decides",
            )
        if batch.locked_at is not None and not confirmed:
            raise ConflictError(
                _(
                    "The labels of this item have been locked: what was computed from them becomes invalid "
                    "if this one changes. Confirm that you want that."
                ),
                code="confirm_locked",
            )
        if (
            batch.blind
            and batch.locked_at is None
            and (objection := routing_port().blind_objection(project=project, user=actor))
        ):
            raise NotAllowedError(objection)
        states = _states(batch, item.pk)
        if not states:
            raise InputError(_("Nobody was asked about this item."), where="item")
        standing = newest_settlement(batch, item.pk)
        _refuse_to_decide(states, standing, actor)
        if standing is not None and (standing.value, standing.comment) == (value, comment):
            return standing
        settlement = _store(
            batch, item.pk, standing, value, Method.ADJUDICATED, decided_by=actor, comment=comment
        )
        # Not the item: whoever reads the trail must not learn what is in a hidden batch.
        audit.record(
            project=project, actor=actor, action="work.adjudicated", target=f"settlement:{settlement.pk}"
        )
    return settlement


def settle_batch_by_dawid_skene(batch: WorkBatch) -> int:
    """Settle by Dawid-Skene what the people of an answered batch differ about; returns how many items.

    For single choices only: of other types 0. Raises ConflictError for a blind batch, whose labels of record
    have to come from each item's answers alone.
    """
    if batch.blind:
        raise ConflictError(
            _("Dawid-Skene may not settle the items of a blind batch: a reviewer decides."),
            code="blind_batch",
        )
    if not TASK_TYPES[batch.project.task_type].one_choice:
        return 0
    mine = WorkItem.objects.filter(batch=batch)
    waiting = list(unsettled(mine).order_by("item").values_list("item", flat=True))
    if not waiting:
        return 0
    labels = Label.objects.filter(
        work_item__batch=batch, item__in=mine.filter(slot=1).values("item"), superseded_by__isnull=True
    )
    now = replaced_labels(batch.project).now
    given = labels.order_by("pk").values_list("item_id", "annotator_id", "value")
    table = [(item, annotator, now(value)) for item, annotator, value in given]
    outcome = dawid_skene(table)
    settled = 0
    for start in range(0, len(waiting), CHUNK):
        with transaction.atomic():
            # Corrections and reviewers wait for this, and it for them.
            WorkBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
            still = unsettled(mine.filter(item__in=waiting[start : start + CHUNK]))
            ids = list(still.order_by("item").values_list("item", flat=True))
            settled += len(_store_many(batch, {item: outcome[item][0] for item in ids if item in outcome}))
    return settled


def _refuse_to_decide(states: Sequence[str], standing: Settlement | None, actor: User) -> None:
    if len(states) == 1:
        raise ConflictError(
            _("One person is asked about this item: that answer is its label."), code="one_person_asked"
        )
    if _still_asked(states):
        raise ConflictError(
            _("Not everybody who is asked about this item has answered yet."), code="not_all_answered"
        )
    if State.UNLABELABLE in states:
        raise ConflictError(_("It was decided that this item cannot be labelled."), code="cannot_be_labelled")
    if State.DONE not in states:
        raise ConflictError(_("This item is no longer asked for."), code="not_asked_for")
    if standing is None or standing.value is None:
        return
    if standing.method != Method.ADJUDICATED:
        raise ConflictError(_("This item is settled by now: its answers agree."), code="answers_agree")
    if standing.decided_by_id != actor.pk:
        raise ConflictError(_("Somebody else has decided about this item by now."), code="decided_by_other")


def _states(batch: WorkBatch, item_id: int) -> list[str]:
    """States of the item's work items by slot."""
    same = WorkItem.objects.filter(batch=batch, item=item_id)
    return list(same.order_by("slot").values_list("state", flat=True))


def _still_asked(states: Sequence[str]) -> bool:
    return State.OPEN in states or State.LEASED in states


def _store(
    batch: WorkBatch,
    item_id: int,
    standing: Settlement | None,
    value: Value | None,
    method: str,
    *,
    decided_by: User | None = None,
    comment: str = "",
) -> Settlement:
    settlement = Settlement.objects.create(
        batch=batch,
        item_id=item_id,
        value=value,
        method=method,
        version=1 if standing is None else standing.version + 1,
        supersedes=standing,
        decided_by=decided_by,
        comment=comment,
    )
    routing_port().settled(batch=batch, settlements=[settlement])
    return settlement


def _store_many(batch: WorkBatch, values: dict[int, Value]) -> list[Settlement]:
    standing = {
        row.item_id: row
        for row in Settlement.objects.filter(batch=batch, item__in=values, superseded_by__isnull=True)
    }
    settlements = Settlement.objects.bulk_create(
        Settlement(
            batch=batch,
            item_id=item_id,
            value=value,
            method=Method.DAWID_SKENE,
            version=standing[item_id].version + 1 if item_id in standing else 1,
            supersedes=standing.get(item_id),
        )
        for item_id, value in values.items()
    )
    routing_port().settled(batch=batch, settlements=settlements)
    return settlements
