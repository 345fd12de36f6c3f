"""Reading why work waits that somebody may not do."""

from django.db.models import Exists, OuterRef

from annotation.hooks import blind_objection
from annotation.models import Project, User, WorkBatch, WorkItem


def why_not_mine(project: Project, user: User) -> str:
    """Why items that wait for a label are not given to this person, in words; "" where none are kept back."""
    waiting = WorkItem.objects.filter(
        batch=OuterRef("pk"), state__in=(WorkItem.State.OPEN, WorkItem.State.LEASED)
    )
    blind = WorkBatch.objects.filter(Exists(waiting), project=project, blind=True, locked_at__isnull=True)
    return blind_objection(project, user) if blind.exists() else ""
