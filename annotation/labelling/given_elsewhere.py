"""Answers that people gave in another program, for items that wait here."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.common.clock import database_time
from annotation.errors import ConflictError, NotAllowedError, Refusal
from annotation.labelling.answers import load_watched, store
from annotation.labelling.leases import lease, load_item, lock_membership
from annotation.labelling.limits import remaining_quota
from annotation.labelling.next_item import available_work_items
from annotation.labelling.practice import practice_left
from annotation.labelling.validation import GIVEN_ELSEWHERE, validate_value
from annotation.models import Label, Membership, Skip, User, WorkBatch, WorkItem
from annotation.ports import routing_port


def store_given(
    *, batch: WorkBatch, user: User, item_id: int, value: Any, lead_time_ms: int | None = None
) -> tuple[Label, bool]:
    """The label of this person for an item of the batch, and whether it is new; the queue's rules hold, as if
    the item had been handed to them and they had answered at once; one that they have open is theirs already.

    Sent twice, it makes one label. Raises ConflictError where the item waits for no answer of theirs (the
    code says why), or they have given another; InputError where the value is no label; NotAllowedError where
    they may not label.
    """
    key = f"{GIVEN_ELSEWHERE}{batch.pk}:{item_id}"
    # Before anything is locked: large masks take a moment to read.
    canonical = validate_value(batch.project, value)
    with transaction.atomic():
        membership = lock_membership(batch.project, user)
        mine = Label.objects.filter(annotator=user, item=item_id, work_item__batch=batch)
        if earlier := mine.filter(superseded_by__isnull=True).last():
            if earlier.value == canonical:
                return earlier, False
            raise ConflictError(
                _("This person has given another label for this item already."), code="labelled_already"
            )
        waiting = WorkBatch.objects.filter(pk=batch.pk, locked_at__isnull=True, withdrawn_at__isnull=True)
        if not waiting.exists():
            raise ConflictError(_("This item is no longer asked for."), code="not_asked_for")
        if batch.blind and (words := routing_port().blind_objection(project=batch.project, user=user)):
            raise NotAllowedError(words)
        work_item_id = _held(batch, user, item_id) or _leased(batch, user, membership, item_id)
        token = load_item(work_item_id, user).token
        label = store(
            load_watched(work_item_id),
            user=user,
            token=token,
            value=canonical,
            idempotency_key=key,
            lead_time_ms=lead_time_ms,
        )
        return label, True


def _held(batch: WorkBatch, user: User, item_id: int) -> int | None:
    """The work item of this item that the person has open."""
    held = WorkItem.objects.filter(batch=batch, item=item_id, state=WorkItem.State.LEASED, leased_to=user)
    return held.values_list("pk", flat=True).first()


def _leased(batch: WorkBatch, user: User, membership: Membership, item_id: int) -> int:
    """The work item of this item, handed to the person now. Raises ConflictError."""
    if practice_left(batch.project, membership):
        raise ConflictError(
            _("This person has practice items to answer before any other."), code="practice_left"
        )
    if membership.paused_at is not None:
        raise ConflictError(_("This person is paused in this project."), code="person_paused")
    if not remaining_quota(membership, most=1):
        raise ConflictError(
            _("This person has labelled as many items as their membership allows."), code="quota_spent"
        )
    now = database_time()
    over = Q(state=WorkItem.State.LEASED, lease_expires_at__lte=now)
    free = available_work_items(batch, user).filter(Q(state=WorkItem.State.OPEN) | over, item=item_id)
    until = now + timedelta(seconds=batch.project.lease_seconds)
    work_item_id = lease(free, user, until)
    if work_item_id is None:
        why = _why_not_free(batch, user, item_id)
        raise ConflictError(why, code=why.code)
    return work_item_id


def _why_not_free(batch: WorkBatch, user: User, item_id: int) -> Refusal:
    """Why an item waits for no answer of this person, though they may label and have given none."""
    skips = Skip.objects.filter(user=user, work_item__batch=batch, work_item__item=item_id)
    if skips.filter(cleared_at__isnull=True).exists():
        return Refusal(
            _("This person has skipped this item: it is for somebody else to answer."), "skipped_by_person"
        )
    states = set(WorkItem.objects.filter(batch=batch, item=item_id).values_list("state", flat=True))
    if states == {WorkItem.State.WITHDRAWN}:
        return Refusal(_("This item is no longer asked for."), "not_asked_for")
    if WorkItem.State.UNLABELABLE in states:
        return Refusal(_("It was decided that this item cannot be labelled."), "cannot_be_labelled")
    if not states & set(WorkItem.UNFINISHED):
        return Refusal(_("Somebody else has labelled this item by now."), "labelled_by_other")
    return Refusal(
        _(
            "Somebody else has this item open now. Send the answer again later: it is taken if they give the "
            "item back."
        ),
        "item_with_other",
    )
