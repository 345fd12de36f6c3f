"""Handing out items and taking them back."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from annotation.common.clock import database_time
from annotation.errors import ConflictError, NotAllowedError, Refusal
from annotation.labelling.gold import hand_out_gold
from annotation.labelling.limits import remaining_quota
from annotation.labelling.next_item import batches_in_turn, candidate_work_items
from annotation.labelling.practice import practice_left
from annotation.labelling.suggestions import suggestion_for
from annotation.labelling.tokens import new_token, was_given
from annotation.models import (
    Draft,
    Item,
    Label,
    Membership,
    Project,
    ShownSuggestion,
    Skip,
    User,
    WorkBatch,
    WorkItem,
)
from annotation.permissions import members_who_label
from annotation.ports import routing_port

State = WorkItem.State
NO_LEASE: dict[str, Any] = {"leased_to": None, "lease_token": "", "lease_expires_at": None}
CLAIM_ATTEMPTS = 5
MAX_AHEAD = 2
"""Items that somebody may hold besides the one before them, so that the next one is there at once."""
RENEWED_AFTER = 1 / 30
"""Part of the lease's time that has to be over before asking for more items renews it."""


@dataclass(frozen=True)
class LeasedItem:
    """One item before one person.

    `token` goes with every answer about it, and the lease runs until `expires_at`. Where `correcting` is
    given, the person's own label is to be corrected: there is no lease then (token "", expires_at None).
    `suggestion` is what a model answered, of an item whose batch shows that.
    """

    work_item: WorkItem
    item: Item
    token: str
    expires_at: datetime | None
    draft_value: Any = None
    correcting: Label | None = None
    suggestion: ShownSuggestion | None = None


def claim(*, project: Project, user: User) -> LeasedItem | None:
    """The item that the person labels now: the first that they hold, else the next free one. None: nothing
    to do.

    Free are open items and those whose lease has expired, by priority and then in the random order of their
    batches, which are mixed, without those that the person skipped, or labelled already in the batch, and
    without blind batches where something stands against it (`RoutingPort.blind_objection`). Who has practice
    items left is given none, and gold items come among the others by chance. Nobody is given more items than
    their membership allows (annotation.labelling.limits); what they hold already they may finish.

    Raises NotAllowedError where the person may not label in the project.
    """
    for _attempt in range(CLAIM_ATTEMPTS):
        ids = _renew_and_fill(project, user, 1)
        if not ids:
            break
        if (task := _load_held(ids[0], user)) is not None:
            return task
    return None


def claim_ahead(*, project: Project, user: User, holding: Collection[int] = ()) -> list[LeasedItem]:
    """What the person labels now and next, in the order in which it was handed out, without the work items in
    `holding`, which the caller has before it already.

    As `claim`, filled up from the queue until the person has one item before them and MAX_AHEAD behind it.
    Answers that have not arrived yet count as held.
    """
    most = 1 + MAX_AHEAD
    # A gold item behind the last of them is held, and told of later: one item more would say which it is.
    asked = [pk for pk in _renew_and_fill(project, user, most)[:most] if pk not in holding]
    return [task for pk in asked if (task := _load_held(pk, user)) is not None]


def held_item(*, user: User, work_item_id: int, token: str) -> LeasedItem | None:
    """The item once more, where the person still holds it with this token."""
    return _load_held(work_item_id, user) if active_lease(user, work_item_id, token).exists() else None


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
    """Renew the lease; returns its new end. Raises ConflictError where they do not hold the item."""
    seconds = (
        Project.objects.filter(work_batches__work_items=work_item_id).values_list("lease_seconds", flat=True)
    ).first()
    expires_at = database_time() + timedelta(seconds=seconds or 0)
    if not active_lease(user, work_item_id, token).update(lease_expires_at=expires_at):
        why = why_gone(user=user, work_item_id=work_item_id, token=token)
        raise ConflictError(why, code=why.code)
    return expires_at


def release(*, user: User, work_item_id: int, token: str) -> bool:
    """Give an item back unlabelled. False where the person does not hold it any more; that is no error."""
    return bool(active_lease(user, work_item_id, token).update(state=State.OPEN, **NO_LEASE))


def release_all(*, project: Project, user: User) -> int:
    """Give back everything that the person holds in the project; returns how many items that was."""
    return WorkItem.objects.filter(
        state=State.LEASED, leased_to=user, batch__in=project.work_batches.values("pk")
    ).update(state=State.OPEN, **NO_LEASE)


# --- What the other modules of the queue build on -----------------------------------------------------------


def active_lease(user: User, work_item_id: int, token: str) -> QuerySet[WorkItem]:
    """The work item, if this token's lease still stands; no row, if not.

    A lease that has expired, but that nobody else has taken over, still stands: its answer doubles nothing.
    """
    return WorkItem.objects.filter(
        pk=work_item_id, state=State.LEASED, leased_to=user, lease_token=token
    ).exclude(lease_token="")


def why_gone(*, user: User, work_item_id: int, token: str) -> Refusal:
    """Why this token holds the item no more. What became of it is told to those alone who were given it."""
    if not was_given(token, work_item_id=work_item_id, user_id=user.pk):
        return Refusal(_("This item was never given to you. Load the page again."), "not_your_item")
    work_item = WorkItem.objects.get(pk=work_item_id)
    if work_item.state == State.DONE:
        mine = Label.objects.filter(work_item=work_item, annotator=user).exists()
        if mine:
            return Refusal(_("You have labelled this item already."), "labelled_already")
        return Refusal(_("Somebody else has labelled this item by now."), "labelled_by_other")
    if work_item.state == State.LEASED and work_item.leased_to_id != user.pk:
        return Refusal(_("This item was open for so long that it went to somebody else."), "lease_passed_on")
    if work_item.state == State.LEASED and work_item.lease_token != token:
        return Refusal(
            _("You have this item before you in another window, or on another device."), "lease_elsewhere"
        )
    if work_item.state == State.WITHDRAWN:
        return Refusal(_("This item is no longer asked for."), "not_asked_for")
    if work_item.state == State.UNLABELABLE:
        return Refusal(_("It was decided that this item cannot be labelled."), "cannot_be_labelled")
    return Refusal(_("You do not hold this item any more."), "lease_gone")


def lock_membership(project: Project, user: User) -> Membership:
    """The person's membership, locked: two tabs of one person claim one after the other.

    Raises NotAllowedError where the person may not label.
    """
    membership = (
        members_who_label(project.pk)
        .select_for_update(of=("self",), no_key=True)
        .filter(user=user, project__archived_at__isnull=True)
        .first()
    )
    if membership is None:
        raise NotAllowedError(_("You may not label in this project."))
    return membership


def lease(candidates: QuerySet[WorkItem], user: User, until: datetime) -> int | None:
    """Lease the first of the candidates that is still free; returns its id."""
    # On PostgreSQL, rows that others take at this moment are passed over instead of waited for.
    rows = candidates.select_for_update(skip_locked=True, of=("self",))
    candidate = rows.values_list("pk", "state", "lease_token").first()
    if candidate is None:
        return None
    pk, state, token = candidate
    taken = WorkItem.objects.filter(pk=pk, state=state, lease_token=token).update(
        state=State.LEASED,
        leased_to=user,
        lease_token=new_token(pk, user.pk),
        lease_expires_at=until,
    )
    return pk if taken else None


def load_item(work_item_id: int, user: User) -> LeasedItem:
    draft = Draft.objects.filter(work_item=OuterRef("pk"), user=user).values("value")
    work_item = (
        WorkItem.objects.select_related("item__image", "batch__project")
        .annotate(draft_value=Subquery(draft))
        .get(pk=work_item_id)
    )
    return LeasedItem(
        work_item=work_item,
        item=work_item.item,
        token=work_item.lease_token,
        expires_at=work_item.lease_expires_at,
        draft_value=work_item.draft_value,
    )


def _load_held(work_item_id: int, user: User) -> LeasedItem | None:
    """None where another window of the person has given it back in this moment: its token is empty then."""
    task = load_item(work_item_id, user)
    if not task.token or task.work_item.leased_to_id != user.pk:
        return None
    return with_suggestion(task, user.pk)


def with_suggestion(task: LeasedItem, user_id: int) -> LeasedItem:
    """The item with what its batch shows of a model's answer, if it does."""
    found = suggestion_for(task.work_item, user_id)
    return task if found is None else replace(task, suggestion=found)


def _renew_and_fill(project: Project, user: User, count: int) -> list[int]:
    """Ids of what the person holds, the first one first, filled up to `count` from the queue."""
    for attempt in range(CLAIM_ATTEMPTS):
        try:
            with transaction.atomic():
                membership = lock_membership(project, user)
                now = database_time()
                objection = _Objection(project, user)
                ids = _renew_own(project, user, now, objection)
                most = min(count, remaining_quota(membership, most=count)) if len(ids) < count else 0
                if most and practice_left(project, membership):
                    most = 0
                while len(ids) < most:
                    until = _end(project, now, place=len(ids))
                    work_item_id = _take_next(project, user, now, until, objection)
                    if work_item_id is None:
                        break
                    ids.append(work_item_id)
                    until = _end(project, now, place=len(ids))
                    if gold_item := hand_out_gold(project, membership, until):
                        ids.append(gold_item)
                return ids
        except IntegrityError:
            # The same item of another batch went to somebody else between our look and our UPDATE.
            if attempt == CLAIM_ATTEMPTS - 1:
                raise
    return []


class _Objection:
    """What stands against blind batches: asked once, and only where there is one."""

    def __init__(self, project: Project, user: User) -> None:
        self.project, self.user = project, user

    @cached_property
    def words(self) -> str:
        return routing_port().blind_objection(project=self.project, user=self.user)


def _end(project: Project, now: datetime, *, place: int) -> datetime:
    """When a lease that begins now ends. Those of one person end in the order in which the items were handed
    out, and are renewed in it: each a moment after the one before.
    """
    return now + timedelta(seconds=project.lease_seconds, microseconds=place)


def _renew_own(project: Project, user: User, now: datetime, objection: _Objection) -> list[int]:
    """What the person holds, with the leases renewed, so that a reload shows the same items."""
    own = (
        WorkItem.objects.filter(state=State.LEASED, leased_to=user, batch__project=project)
        .filter(batch__withdrawn_at__isnull=True)
        .order_by("lease_expires_at", "priority", "order")
        .values_list("pk", "lease_token", "lease_expires_at", "batch__blind")
    )
    mine = []
    for pk, token, expires_at, blind in own:
        if blind and objection.words:
            active_lease(user, pk, token).update(state=State.OPEN, **NO_LEASE)
        else:
            mine.append((pk, token, expires_at or now))
    # Who answers every second does not renew every second. All or none, which keeps their order.
    fresh = now + timedelta(seconds=project.lease_seconds * (1 - RENEWED_AFTER))
    if all(expires_at > fresh for _pk, _token, expires_at in mine):
        return [pk for pk, _token, _expires_at in mine]
    return [
        pk
        for place, (pk, token, _expires_at) in enumerate(mine)
        if active_lease(user, pk, token).update(lease_expires_at=_end(project, now, place=place))
    ]


def _take_next(
    project: Project, user: User, now: datetime, until: datetime, objection: _Objection
) -> int | None:
    def may_label(batch: WorkBatch) -> bool:
        return not (batch.blind and objection.words)

    for batch, has_expired in batches_in_turn(project, user, now, may_label=may_label):
        for candidates in candidate_work_items(batch, user, now, expired=has_expired):
            if work_item_id := lease(candidates, user, until):
                return work_item_id
    return None
