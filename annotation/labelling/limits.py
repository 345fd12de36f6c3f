"""How many items one person may label in a project: in all, and in a day."""

from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from annotation.labelling.label_queries import imported_batches
from annotation.models import Label, Membership, Project, User


def remaining_quota(membership: Membership, *, most: int) -> int:
    """How many more items this member may label now, as far as `most`; none while they are paused.

    An item counts once, at the first version of its label. A day is one of the current time zone.
    """
    if membership.paused_at is not None:
        return 0
    room = most
    if membership.max_labels is None and membership.max_per_day is None:
        return room
    labels = first_labels(membership.project, membership.user)
    if membership.max_labels is not None:
        room = min(room, membership.max_labels - labels.count())
    if membership.max_per_day is not None:
        room = min(room, membership.max_per_day - labels.filter(created_at__gte=midnight()).count())
    return max(0, room)


def first_labels(project: Project, user: User) -> QuerySet[Label]:
    """What the person labelled in the project; a correction is no further item. What an import says that
    they gave elsewhere is no work of theirs here.
    """
    labels = Label.objects.filter(item__project=project, annotator=user, version=1)
    if elsewhere := imported_batches(project):
        labels = labels.exclude(work_item__batch__in=elsewhere)
    return labels


def midnight() -> datetime:
    """When today began in the current time zone."""
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
