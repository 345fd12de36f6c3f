"""Reading why work waits that somebody may not do."""

from django.db.models import Exists, OuterRef
from django.utils.translation import ngettext

from annotation.labelling.limits import first_labels, room_of
from annotation.models import Membership, Project, User, WorkBatch, WorkItem
from annotation.ports import routing_port


def why_not_mine(project: Project, user: User) -> str:
    """Why items that wait for a label are not given to this person, in words; "" where none are kept back."""
    membership = Membership.objects.filter(project=project, user=user).first()
    if membership is not None and (reached := limit_reached(membership)):
        return reached
    waiting = WorkItem.objects.filter(
        batch=OuterRef("pk"), state__in=(WorkItem.State.OPEN, WorkItem.State.LEASED)
    )
    blind = WorkBatch.objects.filter(
        Exists(waiting), project=project, blind=True, locked_at__isnull=True, withdrawn_at__isnull=True
    )
    return routing_port().blind_objection(project=project, user=user) if blind.exists() else ""


def limit_reached(membership: Membership) -> str:
    """Why this member may label no further item, in words; "" where they may."""
    if room_of(membership, most=1):
        return ""
    labels = first_labels(membership.project, membership.user)
    if membership.max_labels is not None and labels.count() >= membership.max_labels:
        return ngettext(
            "You have labelled %(n)s item, as many as you may in this project.",
            "You have labelled %(n)s items, as many as you may in this project.",
            membership.max_labels,
        ) % {"n": f"{membership.max_labels:,}"}
    return ngettext(
        "You have labelled %(n)s item today, as many as you may in a day. You can go on tomorrow.",
        "You have labelled %(n)s items today, as many as you may in a day. You can go on tomorrow.",
        membership.max_per_day or 0,
    ) % {"n": f"{membership.max_per_day or 0:,}"}
