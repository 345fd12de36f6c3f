"""Reading labels and work."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from annotation.hooks import blind_objection
from annotation.models import Label, Project, Skip, User, WorkBatch, WorkItem

State = WorkItem.State


@dataclass(frozen=True)
class Pace:
    """Items that somebody has labelled in a project: since midnight in the current time zone, and ever."""

    today: int
    total: int


def annotator_pace(project: Project, user: User) -> Pace:
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    # Only first versions: a correction is no further item.
    mine = Label.objects.filter(item__project=project, annotator=user, version=1)
    return Pace(today=mine.filter(created_at__gte=midnight).count(), total=mine.count())


def waiting_for(project: Project, user: User) -> int:
    """How many items wait in the queue for this person, with the one that they hold."""
    unfinished = WorkItem.objects.filter(batch=OuterRef("pk"), state__in=(State.OPEN, State.LEASED))
    batches = [
        batch
        for batch in WorkBatch.objects.filter(Exists(unfinished), project=project, locked_at__isnull=True)
        if not (batch.blind and blind_objection(project, user))
    ]
    work = WorkItem.objects.filter(batch__in=batches)
    mine_or_expired = Q(leased_to=user) | Q(lease_expires_at__lte=timezone.now())
    skipped = Skip.objects.filter(
        user=user, cleared_at__isnull=True, work_item__batch__in=batches, work_item__state=State.OPEN
    )
    # Counted apart, as the index has the states: what is open is many, what is skipped or leased is few.
    return (
        work.filter(state=State.OPEN).count()
        + work.filter(mine_or_expired, state=State.LEASED).count()
        - skipped.count()
    )
