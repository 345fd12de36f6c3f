"""Answers that people gave in another program, for items that wait here."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.common.clock import database_time
from annotation.errors import ConflictError, NotAllowedError
from annotation.labelling.answers import load_watched, store
from annotation.labelling.leases import lease, load_item, lock_membership
from annotation.labelling.limits import remaining_quota
from annotation.labelling.next_item import available_work_items
from annotation.labelling.practice import practice_left
from annotation.labelling.validation import GIVEN_ELSEWHERE, validate_value
from annotation.models import Label, User, WorkBatch, WorkItem
from annotation.ports import routing_port


def store_given(
    *, batch: WorkBatch, user: User, item_id: int, value: Any, lead_time_ms: int | None = None
) -> tuple[Label, bool]:
    """The label of this person for an item of the batch, and whether it is new; the queue's rules hold, as if
    the item had been handed to them and they had answered at once.

    Sent twice, it makes one label. Raises ConflictError where the item waits for no answer of theirs, or they
    have given another; InputError where the value is no label; NotAllowedError where they may not label.
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
        if practice_left(batch.project, membership):
            raise ConflictError(
                _("This person has practice items to answer before any other."), code="practice_left"
            )
        if not remaining_quota(membership, most=1):
            raise ConflictError(
                _("This person has labelled as many items as their membership allows."), code="quota_spent"
            )
        free = available_work_items(batch, user).filter(item=item_id, state=WorkItem.State.OPEN)
        until = database_time() + timedelta(seconds=batch.project.lease_seconds)
        work_item_id = lease(free, user, until)
        if work_item_id is None:
            raise ConflictError(
                _("This item waits for no answer of this person: it is labelled, with somebody, or skipped."),
                code="item_not_waiting",
            )
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
