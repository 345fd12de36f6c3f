"""Handing out items and taking them back."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.errors import ConflictError, NotAllowedError
from annotation.hooks import blind_objection
from annotation.models import Draft, Item, Label, Membership, Project, Skip, User, WorkBatch, WorkItem
from annotation.permissions import ROLES_BY_ACTION
from annotation.queue.limits import room_of

State = WorkItem.State
NO_LEASE: dict[str, Any] = {"leased_to": None, "lease_token": "", "lease_expires_at": None}
CLAIM_ATTEMPTS = 5
MAX_AHEAD = 2
"""Items that somebody may hold besides the one before them, so that the next one is there at once."""


@dataclass(frozen=True)
class Task:
    """One item before one person.

    `token` goes with every answer about it, and the lease runs until `expires_at`. Where `correcting` is
    given, the person's own label is to be corrected: there is no lease then (token "", expires_at None).
    """

    work_item: WorkItem
    item: Item
    token: str
    expires_at: datetime | None
    draft_value: Any = None
    correcting: Label | None = None


def claim(*, project: Project, user: User) -> Task | None:
    """The item that the person labels now: the first that they hold, else the next free one. None: nothing
    to do.

    Free are open items and those whose lease has expired, by priority and then in the batch's random order,
    without those that the person skipped, or labelled already in the batch, and without blind batches where
    something stands against it (`hooks.blind_objection`). Nobody is given more items than their membership
    allows (annotation.queue.limits); what they hold already they may finish.

    Raises NotAllowedError where the person may not label in the project.
    """
    ids = _hold(project, user, 1)
    return load_task(ids[0], user) if ids else None


def claim_ahead(*, project: Project, user: User, holding: Collection[int] = ()) -> list[Task]:
    """What the person labels now and next, in the order in which it was handed out, without the work items in
    `holding`, which the caller has before it already.

    As `claim`, filled up from the queue until the person has one item before them and MAX_AHEAD behind it.
    Answers that have not arrived yet count as held.
    """
    return [load_task(pk, user) for pk in _hold(project, user, 1 + MAX_AHEAD) if pk not in holding]


def held_task(*, user: User, work_item_id: int, token: str) -> Task | None:
    """The item once more, where the person still holds it with this token."""
    return load_task(work_item_id, user) if held(user, work_item_id, token).exists() else None


def has_seen(*, user: User, work_item: WorkItem) -> bool:
    """Whether the item is, or was, before this person: they hold, labelled or
    skipped it, or their answer came too late.
    """
    if work_item.leased_to_id == user.pk:
        return True
    answers = (
        Label.objects.filter(work_item=work_item, annotator=user),
        Skip.objects.filter(work_item=work_item, user=user),
        Draft.objects.filter(work_item=work_item, user=user),
    )
    return any(rows.exists() for rows in answers)


def heartbeat(*, user: User, work_item_id: int, token: str) -> datetime:
    """Renew the lease; returns its new end. Raises ConflictError where the item has passed on."""
    seconds = (
        Project.objects.filter(work_batches__work_items=work_item_id).values_list("lease_seconds", flat=True)
    ).first()
    expires_at = timezone.now() + timedelta(seconds=seconds or 0)
    if not held(user, work_item_id, token).update(lease_expires_at=expires_at):
        raise ConflictError(_("This item is no longer yours: it was open for too long. Load the next one."))
    return expires_at


def release(*, user: User, work_item_id: int, token: str) -> bool:
    """Give an item back unlabelled. False where the person does not hold it any more; that is no error."""
    return bool(held(user, work_item_id, token).update(state=State.OPEN, **NO_LEASE))


def release_all(*, project: Project, user: User) -> int:
    """Give back everything that the person holds in the project; returns how many items that was."""
    return WorkItem.objects.filter(
        state=State.LEASED, leased_to=user, batch__in=project.work_batches.values("pk")
    ).update(state=State.OPEN, **NO_LEASE)


# --- What the other modules of the queue build on -----------------------------------------------------------


def held(user: User, work_item_id: int, token: str) -> QuerySet[WorkItem]:
    """The work item, if this token's lease still stands.

    A lease that has expired, but that nobody else has taken over, still stands: its answer doubles nothing.
    """
    return WorkItem.objects.filter(
        pk=work_item_id, state=State.LEASED, leased_to=user, lease_token=token
    ).exclude(lease_token="")


def lock_membership(project: Project, user: User) -> Membership:
    """The person's membership, locked: two tabs of one person claim one after the other.

    Raises NotAllowedError where the person may not label.
    """
    membership = (
        Membership.objects.select_for_update(of=("self",), no_key=True)
        .filter(
            project=project,
            project__archived_at__isnull=True,
            user=user,
            user__is_active=True,
            is_active=True,
            role__in=ROLES_BY_ACTION["label"],
        )
        .first()
    )
    if membership is None:
        raise NotAllowedError(_("You may not label in this project."))
    return membership


def lease(candidates: QuerySet[WorkItem], project: Project, user: User) -> int | None:
    """Lease the first of the candidates that is still free; returns its id."""
    now = timezone.now()
    # On PostgreSQL, rows that others take at this moment are passed over instead of waited for.
    candidate = candidates.select_for_update(skip_locked=True, of=("self",)).first()
    if candidate is None:
        return None
    taken = WorkItem.objects.filter(
        pk=candidate.pk, state=candidate.state, lease_token=candidate.lease_token
    ).update(
        state=State.LEASED,
        leased_to=user,
        lease_token=secrets.token_hex(16),
        lease_expires_at=now + timedelta(seconds=project.lease_seconds),
    )
    return candidate.pk if taken else None


def free(batch: WorkBatch, user: User) -> QuerySet[WorkItem]:
    """Work items of the batch that nothing keeps from this person, whatever their state."""
    skipped = Skip.objects.filter(user=user, cleared_at__isnull=True)
    if batch.overlap == 1:
        skipped = skipped.filter(work_item=OuterRef("pk"))
    else:  # who cannot tell for one of the labels that an item gets cannot for another
        skipped = skipped.filter(work_item__item=OuterRef("item"), work_item__batch=batch)
    labelled = Label.objects.filter(item=OuterRef("item"), annotator=user, work_item__batch=batch)
    # By somebody, or by this person for another of the labels that the item gets.
    held_elsewhere = WorkItem.objects.filter(
        Q(slot=OuterRef("slot")) | Q(leased_to=user), item=OuterRef("item"), state=State.LEASED
    ).exclude(pk=OuterRef("pk"))
    # Not as NOT EXISTS: PostgreSQL makes joins of those and reads the whole batch for them. These are looked
    # up row by row while it walks the queue's index, up to the first row that fits.
    return (
        WorkItem.objects.filter(batch=batch)
        .alias(skipped=_first(skipped), labelled=_first(labelled), held_elsewhere=_first(held_elsewhere))
        .filter(skipped__isnull=True, labelled__isnull=True, held_elsewhere__isnull=True)
        .order_by("priority", "order")
    )


def _first(rows: QuerySet[Any]) -> Subquery:
    return Subquery(rows.order_by().values("pk")[:1])


def load_task(work_item_id: int, user: User) -> Task:
    work_item = WorkItem.objects.select_related("item__image", "batch__project").get(pk=work_item_id)
    draft = Draft.objects.filter(work_item=work_item, user=user).values_list("value", flat=True).first()
    return Task(
        work_item=work_item,
        item=work_item.item,
        token=work_item.lease_token,
        expires_at=work_item.lease_expires_at,
        draft_value=draft,
    )


def _hold(project: Project, user: User, count: int) -> list[int]:
    """Ids of what the person holds, the first one first, filled up to `count` from the queue."""
    for attempt in range(CLAIM_ATTEMPTS):
        try:
            with transaction.atomic():
                membership = lock_membership(project, user)
                ids = _renew_own(project, user)
                most = min(count, room_of(membership, most=count)) if len(ids) < count else 0
                while len(ids) < most and (work_item_id := _take_next(project, user)):
                    ids.append(work_item_id)
                return ids
        except IntegrityError:
            # The same item of another batch went to somebody else between our look and our UPDATE.
            if attempt == CLAIM_ATTEMPTS - 1:
                raise
    return []


def _renew_own(project: Project, user: User) -> list[int]:
    """What the person holds, with the leases renewed, so that a reload shows the same items.

    Leases end in the order in which the items were handed out: each is renewed a moment after the one before.
    """
    own = (
        WorkItem.objects.filter(state=State.LEASED, leased_to=user, batch__project=project)
        .select_related("batch")
        .order_by("lease_expires_at", "priority", "order")
    )
    ids = []
    for work_item in own:
        mine = held(user, work_item.pk, work_item.lease_token)
        if work_item.batch.blind and blind_objection(project, user):
            mine.update(state=State.OPEN, **NO_LEASE)
        elif mine.update(lease_expires_at=timezone.now() + timedelta(seconds=project.lease_seconds)):
            ids.append(work_item.pk)
    return ids


def _take_next(project: Project, user: User) -> int | None:
    unfinished = WorkItem.objects.filter(batch=OuterRef("pk"), state__in=(State.OPEN, State.LEASED))
    batches = WorkBatch.objects.filter(Exists(unfinished), project=project, locked_at__isnull=True)
    objection: str | None = None
    for batch in batches.order_by("priority", "id"):
        if batch.blind:
            objection = blind_objection(project, user) if objection is None else objection
            if objection:
                continue
        # Expired leases first: they were handed out early, so their places are before those of the open ones.
        # One query each, so that each can walk the index (batch, state, priority, order) to its first match.
        expired = free(batch, user).filter(state=State.LEASED, lease_expires_at__lte=timezone.now())
        waiting = free(batch, user).filter(state=State.OPEN)
        if work_item_id := lease(expired, project, user) or lease(waiting, project, user):
            return work_item_id
    return None
