"""Intakes that are under way, or were begun and not finished."""

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.errors import UnderWayError
from annotation.jobs import jobs
from annotation.models import Project
from routing.models import Intake, Run

KIND = "take_in"
"""The job that takes items in."""
OPEN = Q(finished_at__isnull=True, abandoned_at__isnull=True)


def unfinished_intake(run: Run) -> Intake | None:
    """What was begun to be taken in, and can be gone on with."""
    return run.intakes.filter(OPEN).first()


def refuse_while_taking_in(project: Project) -> None:
    """Raises ConflictError while a run of the project takes in items."""
    if project.jobs.filter(kind=KIND, state__in=jobs.UNFINISHED).exists():
        raise UnderWayError(_(jobs.kind(KIND).title))


def abandon_unfinished(project: Project) -> None:
    """A new run begins: what earlier ones had begun to take in is free for it."""
    Intake.objects.filter(OPEN, run__project=project).update(abandoned_at=timezone.now())
