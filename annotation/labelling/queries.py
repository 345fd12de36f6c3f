"""Reading labels and work."""

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from itertools import pairwise
from statistics import median

from django.core.cache import cache
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.common.clock import database_time
from annotation.labelling.limits import first_labels, midnight, remaining_quota
from annotation.labelling.next_item import held_elsewhere
from annotation.labelling.validation import GIVEN_ELSEWHERE
from annotation.models import Label, Membership, Project, Skip, User, WorkBatch, WorkItem
from annotation.ports import routing_port

State = WorkItem.State


SESSION_GAP = timedelta(minutes=30)
"""A longer pause between two labels ends a session."""
LATEST = 200
"""Labels that are looked at for somebody's pace."""
OPEN_EXACTLY = 2_000
"""Up to so many open work items are counted anew each time."""
OPEN_SECONDS = 20
ENOUGH = 5
"""Labels of a session from which a pace is told."""


@dataclass(frozen=True)
class Pace:
    """Items that somebody has labelled in a project: since midnight in the current time zone, and ever.

    Of their last session (a pause of SESSION_GAP ends one): items an hour, and the median time on an item in
    seconds, as the page measured it. Both are None where the session has fewer than ENOUGH labels.
    """

    today: int
    total: int
    per_hour: int | None = None
    median_seconds: float | None = None


def annotator_pace(project: Project, user: User) -> Pace:
    mine = first_labels(project, user)
    # Those that come from another program come many at once.
    per_hour, median_seconds = _last_session(mine.exclude(idempotency_key__startswith=GIVEN_ELSEWHERE))
    return Pace(
        today=mine.filter(created_at__gte=midnight()).count(),
        total=mine.count(),
        per_hour=per_hour,
        median_seconds=median_seconds,
    )


def _last_session(labels: QuerySet[Label]) -> tuple[int | None, float | None]:
    latest = list(labels.order_by("-pk").values_list("created_at", "lead_time_ms")[:LATEST])
    ends = (at for at, (now, before) in enumerate(pairwise(latest), 1) if now[0] - before[0] > SESSION_GAP)
    session = latest[: next(ends, len(latest))]
    if len(session) < ENOUGH:
        return None, None
    measured = [milliseconds / 1000 for _, milliseconds in session if milliseconds]
    # From the first label to the last there is one item less than there are labels.
    hours = (session[0][0] - session[-1][0]).total_seconds() / 3600
    return (
        round((len(session) - 1) / hours) if hours > 0 else None,
        round(median(measured), 1) if measured else None,
    )


def waiting_for(project: Project, user: User) -> int:
    """How many items wait in the queue for this person, with what they hold: no more than they may label."""
    unfinished = WorkItem.objects.filter(batch=OuterRef("pk"), state__in=WorkItem.UNFINISHED)
    asking = WorkBatch.objects.filter(Exists(unfinished), locked_at__isnull=True, withdrawn_at__isnull=True)
    batches = [
        batch
        for batch in asking.filter(project=project)
        if not (batch.blind and routing_port().blind_objection(project=project, user=user))
    ]
    own = [batch.pk for batch in batches if batch.rostered]
    one = [batch.pk for batch in batches if batch.overlap == 1 and not batch.rostered]
    several = [batch.pk for batch in batches if batch.overlap > 1 and not batch.rostered]
    waiting = _waiting(one, user) + (_waiting_of_several(several, user) if several else 0)
    waiting += _waiting_by_roster(own, user) if own else 0
    membership = Membership.objects.filter(project=project, user=user).first()
    return remaining_quota(membership, most=waiting) if membership else waiting


def _waiting_by_roster(batches: list[int], user: User) -> int:
    """What is this person's and they did not skip."""
    work = WorkItem.objects.filter(batch__in=batches, assigned_to=user, state__in=WorkItem.UNFINISHED)
    skipped = Skip.objects.filter(user=user, cleared_at__isnull=True, work_item=OuterRef("pk"))
    given = Q(leased_to=user) | ~Exists(held_elsewhere(user))
    return work.filter(given, ~Exists(skipped)).count()


def _waiting(batches: list[int], user: User) -> int:
    work = WorkItem.objects.filter(batch__in=batches)
    now = database_time()
    expired = Q(state=State.LEASED, lease_expires_at__lte=now) & ~Q(leased_to=user)
    mine = work.filter(state=State.LEASED, leased_to=user).count()
    # Counted apart, as the index has the states: what is open is many, what is skipped or leased is few.
    free = _open(batches) + work.filter(expired).count()
    return mine + max(0, free - len(_kept_back(batches, user, Q(state=State.OPEN) | expired)))


def _kept_back(batches: list[int], user: User, free: Q) -> set[int]:
    """Ids of work items that nobody holds, and that the queue does not give this person all the same: those
    they skipped, and those whose item is with somebody for another batch.
    """
    work = WorkItem.objects.filter(free, batch__in=batches)
    skipped = Skip.objects.filter(user=user, cleared_at__isnull=True, work_item__batch__in=batches)
    kept = set(work.filter(pk__in=skipped.values("work_item")).values_list("pk", flat=True))
    projects = WorkBatch.objects.filter(pk__in=batches).values("project")
    # Few are with somebody: from their items to what waits, not through all that waits.
    leased = WorkItem.objects.filter(state=State.LEASED, batch__project__in=projects)
    items = list(leased.values_list("item", flat=True))
    elsewhere = work.filter(Exists(held_elsewhere(user)), item__in=items)
    return kept | set(elsewhere.values_list("pk", flat=True))


def _open(batches: list[int]) -> int:
    """How many work items are open. Of many, this is counted every OPEN_SECONDS only: every page on which
    somebody labels asks for it.
    """
    key = f"open_work:{sha256(repr(sorted(batches)).encode()).hexdigest()}"
    if (known := cache.get(key)) is not None:
        return int(known)
    count = WorkItem.objects.filter(batch__in=batches, state=State.OPEN).count()
    if count > OPEN_EXACTLY:
        cache.set(key, count, OPEN_SECONDS)
    return count


def _waiting_of_several(batches: list[int], user: User) -> int:
    """Items, however many of their labels are missing, that this person has neither labelled nor skipped."""
    free = Q(state=State.OPEN) | Q(leased_to=user) | Q(lease_expires_at__lte=database_time())
    same = {"work_item__item": OuterRef("item"), "work_item__batch": OuterRef("batch")}
    work = WorkItem.objects.filter(
        free,
        # By the label's own item, which has an index; else all labels of this person are read for each item.
        ~Exists(
            Label.objects.filter(annotator=user, item=OuterRef("item"), work_item__batch=OuterRef("batch"))
        ),
        ~Exists(Skip.objects.filter(user=user, cleared_at__isnull=True, **same)),
        Q(leased_to=user) | ~Exists(held_elsewhere(user)),
        batch__in=batches,
        state__in=WorkItem.UNFINISHED,
    )
    return work.values("batch", "item").distinct().count()
