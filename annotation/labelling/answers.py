"""Answers of people: labels, corrections, skips."""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import events
from annotation.common.clock import database_time
from annotation.common.value_reader import Value
from annotation.errors import ConflictError, InputError, NotAllowedError, Refusal
from annotation.labelling.gold import pause_if_below_bar
from annotation.labelling.leases import (
    NO_LEASE,
    LeasedItem,
    active_lease,
    lease,
    load_item,
    lock_membership,
    release_all,
    why_gone,
    with_suggestion,
)
from annotation.labelling.next_item import available_work_items
from annotation.labelling.settlement import lock_settling, settle_after
from annotation.labelling.suggestions import compare_with_suggestion, shown_suggestion
from annotation.labelling.tokens import was_given
from annotation.labelling.validation import (
    check_comment,
    check_idempotency_key,
    usable_lead_time,
    validate_value,
)
from annotation.labelling.versions import next_version, replay
from annotation.models import Draft, Label, Project, Skip, User, WorkBatch, WorkItem
from annotation.ports import routing_port

State = WorkItem.State


def submit(
    *,
    user: User,
    work_item_id: int,
    token: str,
    value: Any,
    idempotency_key: str,
    lead_time_ms: int | None = None,
    comment: str = "",
) -> Label:
    """Store the label of an item that the person holds, and end its lease.

    Sent twice with the same `idempotency_key` and the same answer, it makes one label. Raises ConflictError
    for the same key with another answer, for an item that they never held, and where the item has passed on
    meanwhile (the answer is then kept as the person's draft); InputError names the field; NotAllowedError
    where they may not label a blind item.
    """
    work_item, _watched = loaded = load_watched(work_item_id)
    value = validate_value(work_item.batch.project, value, item=work_item.item_id)
    check_comment(comment)
    check_idempotency_key(idempotency_key)
    return store(
        loaded,
        user=user,
        token=token,
        value=value,
        idempotency_key=idempotency_key,
        lead_time_ms=lead_time_ms,
        comment=comment,
    )


def store(
    loaded: tuple[WorkItem, bool],
    *,
    user: User,
    token: str,
    value: Value,
    idempotency_key: str,
    lead_time_ms: int | None = None,
    comment: str = "",
) -> Label:
    """`submit` of what has been checked: `value` is one of `validate_value`, `loaded` of `load_watched`."""
    work_item, watched = loaded
    work_item_id, project = work_item.pk, work_item.batch.project
    try:
        with transaction.atomic():
            if work_item.batch.blind and (
                objection := routing_port().blind_objection(project=project, user=user)
            ):
                if label := replay(user, idempotency_key, work_item_id, value, comment):
                    return label
                raise NotAllowedError(objection)
            lock_settling(work_item.batch)
            if active_lease(user, work_item_id, token).update(
                state=State.DONE, finished_at=timezone.now(), **NO_LEASE
            ):
                label = Label.objects.create(
                    item_id=work_item.item_id,
                    work_item=work_item,
                    annotator=user,
                    value=value,
                    idempotency_key=idempotency_key,
                    comment=comment,
                    lead_time_ms=usable_lead_time(lead_time_ms),
                    suggestion=compare_with_suggestion(work_item, user.pk, value),
                )
                Draft.objects.filter(work_item=work_item, user=user).delete()
                settle_after(label)
                if work_item.batch.for_gold:
                    pause_if_below_bar(project, user)
                routing_port().label_stored(label=label, replaced=None)
                if watched:
                    events.label_stored(label, project, work_item.batch_id)
                return label
            # This request may have come before, or a twin of it was quicker by a moment.
            if label := replay(user, idempotency_key, work_item_id, value, comment):
                return label
    except IntegrityError:
        # The key came with another answer before, or at the same moment, and the other one won.
        if label := replay(user, idempotency_key, work_item_id, value, comment):
            return label
        raise
    why = why_gone(user=user, work_item_id=work_item_id, token=token)
    if why.code == "labelled_already":
        # The item does not come back, and no draft would be seen again.
        stays = _(
            "You have labelled this item already. That label stays; “My labels” has it, to be corrected."
        )
        why = Refusal(stays, why.code)
    elif was_given(token, work_item_id=work_item_id, user_id=user.pk):
        _keep_draft(work_item, user, value, comment)
        why = Refusal(_("%(what)s Your answer is kept as a draft.") % {"what": why}, why.code)
    raise ConflictError(why, code=why.code)


def correct(
    *,
    user: User,
    label_id: int,
    value: Any,
    idempotency_key: str,
    lead_time_ms: int | None = None,
    comment: str = "",
) -> Label:
    """Store a new version of the person's own label. Where nothing changes, the label itself comes back.

    This is possible after the batch is locked, too: whoever rests on the label hears of it through
    `RoutingPort.label_stored`. Raises ConflictError where the label has a newer version already, or for a
    known key with another answer; NotAllowedError for somebody else's label.
    """
    old = Label.objects.select_related("work_item__batch__project", "annotator").filter(pk=label_id).first()
    if old is None:
        raise InputError(_("There is no such label."), where="label_id")
    if old.annotator_id != user.pk:
        raise NotAllowedError(_("Only the person who gave a label can correct it."))
    project = old.work_item.batch.project
    value = validate_value(project, value, item=old.item_id)
    check_comment(comment)
    check_idempotency_key(idempotency_key)

    def refuse(batch: WorkBatch) -> None:
        if batch.for_round and batch.withdrawn_at is not None:
            raise ConflictError(
                _("This guideline round is closed and all see its answers: they stay as they are."),
                code="round_closed",
            )
        must_be_blind = batch.blind and batch.locked_at is None
        if must_be_blind and (objection := routing_port().blind_objection(project=project, user=user)):
            raise NotAllowedError(objection)

    return next_version(
        old=old,
        actor=user,
        value=value,
        comment=comment,
        idempotency_key=idempotency_key,
        unchanged=(old.value, old.comment) == (value, comment),
        refuse=refuse,
        lead_time_ms=usable_lead_time(lead_time_ms),
    )


def skip(*, user: User, work_item_id: int, token: str, reason: str, comment: str = "") -> Skip:
    """Give the item to somebody else, and say why. Sent twice, it has one effect.

    Raises ConflictError where the person does not hold the item any more, InputError for an unknown reason.
    """
    if reason not in Skip.Reason.values:
        raise InputError(
            _("There is no reason %(reason)r; choose one of %(names)s.")
            % {"reason": reason, "names": ", ".join(Skip.Reason.values)},
            where="reason",
        )
    check_comment(comment)
    work_item, _watched = load_watched(work_item_id)
    with transaction.atomic():
        lock_settling(work_item.batch)
        if active_lease(user, work_item_id, token).update(state=State.OPEN, **NO_LEASE):
            skipped = Skip.objects.create(work_item=work_item, user=user, reason=reason, comment=comment)
            routing_port().work_item_skipped(work_item=work_item, user=user)
            if work_item.batch.for_gold:
                pause_if_below_bar(work_item.batch.project, user)
            return skipped
        earlier = Skip.objects.filter(work_item=work_item, user=user, cleared_at__isnull=True).first()
    if earlier is not None and (earlier.reason, earlier.comment) == (reason, comment):
        return earlier
    why = why_gone(user=user, work_item_id=work_item_id, token=token)
    raise ConflictError(why, code=why.code)


def load_watched(work_item_id: int) -> tuple[WorkItem, bool]:
    """The work item, and whether its project has an address that is told of labels."""
    rows = WorkItem.objects.select_related("batch__project").filter(pk=work_item_id)
    work_item = rows.annotate(watched=events.is_watched("batch__project")).first()
    if work_item is None:
        raise InputError(_("There is no such work item."), where="work_item")
    return work_item, work_item.watched


def _keep_draft(work_item: WorkItem, user: User, value: Any, comment: str) -> None:
    Draft.objects.update_or_create(
        work_item=work_item, user=user, defaults={"value": value, "comment": comment}
    )


def undo(*, project: Project, user: User, before: int | None = None) -> LeasedItem | None:
    """What the person did last comes back: a label to correct, or a skipped item to be labelled after all.

    A label stays as it is until `correct` is called with `LeasedItem.correcting`. A skip is taken back at
    once, and the person holds that item again (and no other). `before` is the id of a label of theirs: go
    back behind it. None where there is nothing to take back. Raises ConflictError where the skipped item has
    gone to somebody else, NotAllowedError where the person may not label.
    """
    labels = Label.objects.filter(
        annotator=user,
        work_item__batch__project=project,
        work_item__batch__imported_by__isnull=True,
        superseded_by__isnull=True,
    )
    skips = Skip.objects.filter(user=user, work_item__batch__project=project, cleared_at__isnull=True)
    if before is not None and (limit := labels.filter(pk=before).first()):
        labels = labels.filter(pk__lt=limit.pk)
        skips = skips.filter(created_at__lt=limit.created_at)
    with transaction.atomic():
        lock_membership(project, user)
        label = labels.select_related("item__image", "item__project", "work_item__batch__project").last()
        skip = skips.select_related("work_item__batch").order_by("created_at", "pk").last()
        if skip is not None and (label is None or skip.created_at > label.created_at):
            return _take_back(project, user, skip)
    if label is None:
        return None
    return to_correct(label)


def to_correct(label: Label) -> LeasedItem:
    """A person's own label before them again."""
    return LeasedItem(
        work_item=label.work_item,
        item=label.item,
        token="",
        expires_at=None,
        correcting=label,
        suggestion=shown_suggestion(label.work_item, label.annotator_id),
    )


def _take_back(project: Project, user: User, skip: Skip) -> LeasedItem:
    """Inside a transaction: raising leaves the skip, and what else the person holds, as it was."""
    Skip.objects.filter(pk=skip.pk).update(cleared_at=timezone.now())
    release_all(project=project, user=user)  # so that a reload shows this item and no other
    batch = skip.work_item.batch
    available = WorkItem.objects.none()
    if batch.locked_at is None and batch.withdrawn_at is None:
        available = available_work_items(batch, user).filter(pk=skip.work_item_id)
    now = database_time()
    until = now + timedelta(seconds=project.lease_seconds)
    work_item_id = lease(available.filter(state=WorkItem.State.OPEN), user, until) or lease(
        available.filter(state=WorkItem.State.LEASED, lease_expires_at__lte=now), user, until
    )
    if work_item_id is None:
        raise ConflictError(
            _("The item that you skipped has gone to somebody else by now."), code="skipped_item_taken"
        )
    return with_suggestion(load_item(work_item_id, user), user.pk)
