"""Which work item is next for somebody.

Open ones in the order of the index (batch, state, priority, order), up to the first that nothing keeps from
the person. Of a batch that asks several people about an item, who is ahead of the others has to pass all that
they answered already and the others have not: those are not read one by one (`_of_several`).
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db import connection
from django.db.models import Case, Exists, Max, Min, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from annotation.models import Label, Project, Skip, User, WorkBatch, WorkItem

State = WorkItem.State
WINDOW = 200
"""Open work items of a batch with overlap that are read one after the other."""
LATEST = 50
"""Labels of somebody by which it is known how far they are."""


def batches_with_work(project: Project, now: datetime) -> Iterator[tuple[WorkBatch, bool]]:
    """Those in which something waits, in their order; each with whether a lease in it is over."""
    unfinished = WorkItem.objects.filter(batch=OuterRef("pk"), state__in=WorkItem.UNFINISHED)
    expired = WorkItem.objects.filter(batch=OuterRef("pk"), state=State.LEASED, lease_expires_at__lte=now)
    batches = WorkBatch.objects.filter(
        Exists(unfinished), project=project, locked_at__isnull=True, withdrawn_at__isnull=True
    )
    for batch in batches.annotate(has_expired=Exists(expired)).order_by("priority", "id"):
        yield batch, batch.has_expired


def batches_in_turn(
    project: Project, user: User, now: datetime, *, may_label: Callable[[WorkBatch], bool]
) -> Iterator[tuple[WorkBatch, bool]]:
    """The same as this person comes to them: of one priority the batch first whose first item for them has
    the first place, so that those of several batches are mixed and nobody can tell which is of which.
    """
    for _priority, same in groupby(batches_with_work(project, now), key=lambda one: one[0].priority):
        rest = [one for one in same if may_label(one[0])]
        if len(rest) > 1:
            places = _first_places(rest, user, now)
            rest = [one for one in rest if places[one[0].pk] is not None]
            rest.sort(key=lambda one: (places[one[0].pk], one[0].pk))
        yield from rest


def _first_places(batches: list[tuple[WorkBatch, bool]], user: User, now: datetime) -> dict[int, int | None]:
    """Id of each batch -> the place of the person's first item in it; None: nothing is there for them."""
    cases = [
        When(pk=batch.pk, then=_first_place(batch, user, now, expired=expired)) for batch, expired in batches
    ]
    rows = WorkBatch.objects.filter(pk__in=[batch.pk for batch, _expired in batches])
    return dict(rows.annotate(place=Case(*cases)).values_list("pk", "place"))


def _first_place(batch: WorkBatch, user: User, now: datetime, *, expired: bool) -> Coalesce | Subquery:
    available = available_work_items(batch, user)
    over = available.filter(state=State.LEASED, lease_expires_at__lte=now)
    waiting = available.filter(state=State.OPEN)
    places = [_place_of(over)] if expired else []
    if batch.overlap == 1:
        places.append(_place_of(waiting))
    else:
        # As in `_of_several`, no more than a window is read; who is ahead of it goes on from where they are.
        same = WorkItem.objects.filter(batch=batch, state=State.OPEN).order_by("priority", "order")
        places += [
            _place_of(waiting.filter(pk__in=Subquery(same.values("pk")[:WINDOW]))),
            _place_of(_labelled_lately(batch, user).order_by("-order")),
            _place_of(same),
        ]
    return Coalesce(*places) if len(places) > 1 else places[0]


def _place_of(rows: QuerySet[WorkItem]) -> Subquery:
    return Subquery(rows.values("order")[:1])


def candidate_work_items(
    batch: WorkBatch, user: User, now: datetime, *, expired: bool
) -> Iterator[QuerySet[WorkItem]]:
    """Where to look for the person's next item of the batch: what they may have, one part after the other.

    Expired leases come first (asked for by `expired`): they were handed out early, so their places are before
    those of the open ones. One query each, so that each can walk the index to its first match.
    """
    if expired:
        yield available_work_items(batch, user).filter(state=State.LEASED, lease_expires_at__lte=now)
    waiting = available_work_items(batch, user).filter(state=State.OPEN)
    if batch.overlap == 1:
        yield waiting
    else:
        yield from _of_several(batch, user, waiting)


def available_work_items(batch: WorkBatch, user: User) -> QuerySet[WorkItem]:
    """Work items of the batch that nothing keeps from this person, whatever their state."""
    # Not as NOT EXISTS: PostgreSQL makes joins of those and reads the whole batch for them. These are looked
    # up row by row while it walks the queue's index, up to the first row that fits.
    against = {f"against_{n}": _first(rows) for n, rows in enumerate(_against(batch, user))}
    rows = WorkItem.objects.filter(batch=batch).alias(**against)
    if batch.rostered:
        rows = rows.filter(assigned_to=user)
    return rows.filter(**{f"{name}__isnull": True for name in against}).order_by("priority", "order")


def _against(batch: WorkBatch, user: User) -> list[QuerySet[Any]]:
    """What keeps a work item (the outer reference) from the person: rows of which there must be none."""
    held = held_elsewhere(user)
    if batch.overlap == 1:  # what has its label waits no more
        return [_skipped(user).filter(work_item=OuterRef("pk")), held]
    # Who cannot tell for one of the labels that an item gets cannot for another.
    skipped = _skipped(user).filter(work_item__item=OuterRef("item"), work_item__batch=batch)
    return [skipped, _labelled(batch, user).filter(item=OuterRef("item")), held]


def _skipped(user: User) -> QuerySet[Skip]:
    return Skip.objects.filter(user=user, cleared_at__isnull=True)


def _labelled(batch: WorkBatch, user: User) -> QuerySet[Label]:
    return Label.objects.filter(annotator=user, work_item__batch=batch)


def held_elsewhere(user: User) -> QuerySet[WorkItem]:
    """By somebody, or by this person for another of the labels that the item gets."""
    held = Q(slot=OuterRef("slot")) | Q(leased_to=user)
    return WorkItem.objects.filter(held, item=OuterRef("item"), state=State.LEASED).exclude(pk=OuterRef("pk"))


def _of_several(batch: WorkBatch, user: User, waiting: QuerySet[WorkItem]) -> Iterator[QuerySet[WorkItem]]:
    """The first WINDOW open ones, as many from where the person is, and at last all of them as a set."""
    near = _window_end(batch)
    if near is None:
        yield waiting
        return
    same = waiting.filter(priority=batch.priority)  # with it the order is a range of the index
    yield same.filter(order__lte=near)
    reached = max(near, _reached(batch, user))
    far = _window_end(batch, reached)
    ahead = same.filter(order__gt=reached)
    yield ahead if far is None else ahead.filter(order__lte=far)
    # Who is here has answered nearly all that is open, so this is asked when others are to go on.
    first = _first_of_all(batch, user)
    if first is not None:
        yield waiting.filter(order=first)
        yield waiting.filter(order__gt=first)


def _first_of_all(batch: WorkBatch, user: User) -> int | None:
    """The first place of an open work item that nothing keeps from the person, by comparing whole sets."""
    rows = WorkItem.objects.filter(batch=batch, state=State.OPEN)
    skipped = _skipped(user).filter(work_item__batch=batch)
    if connection.vendor == "sqlite":
        # It makes the list once; an EXISTS it asks again for each row.
        rows = rows.exclude(item__in=_labelled(batch, user).values("item"))
        rows = rows.exclude(item__in=skipped.values("work_item__item"))
    else:
        # PostgreSQL makes a join of it; a list that is too long for its memory it would read for each row.
        rows = rows.filter(~Exists(_labelled(batch, user).filter(item=OuterRef("item"))))
        rows = rows.filter(~Exists(skipped.filter(work_item__item=OuterRef("item"))))
    rows = rows.filter(~Exists(held_elsewhere(user)))
    first: int | None = rows.aggregate(order=Min("order"))["order"]
    return first


def _window_end(batch: WorkBatch, after: int | None = None) -> int | None:
    """The place of the open work item that is WINDOW behind `after`; None where there are fewer."""
    rows = WorkItem.objects.filter(batch=batch, state=State.OPEN, priority=batch.priority)
    if after is not None:
        rows = rows.filter(order__gt=after)
    return rows.order_by("priority", "order").values_list("order", flat=True)[WINDOW : WINDOW + 1].first()


def _reached(batch: WorkBatch, user: User) -> int:
    """The furthest place of what the person holds and has labelled lately in the batch; -1: nothing."""
    held = WorkItem.objects.filter(batch=batch, state=State.LEASED, leased_to=user)
    orders = [held.aggregate(furthest=Max("order"))["furthest"]]
    orders.append(_labelled_lately(batch, user).aggregate(furthest=Max("order"))["furthest"])
    return max((order for order in orders if order is not None), default=-1)


def _labelled_lately(batch: WorkBatch, user: User) -> QuerySet[WorkItem]:
    """Of the person's latest labels those of the batch that others have still to answer: where more items
    were added to a batch that had its answers, the older ones do not say how far they are.
    """
    latest = Label.objects.filter(annotator=user).order_by("-pk").values("work_item")[:LATEST]
    open_ = WorkItem.objects.filter(batch=batch, item=OuterRef("item"), state=State.OPEN)
    return WorkItem.objects.filter(Exists(open_), batch=batch, pk__in=Subquery(latest))


def _first(rows: QuerySet[Any]) -> Subquery:
    return Subquery(rows.order_by().values("pk")[:1])
