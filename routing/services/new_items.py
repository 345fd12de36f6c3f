"""Whether there is anything for another run, and whether the last one is done with."""

from django.db.models import Exists, OuterRef

from annotation.models import Project
from routing.core.choices import DEFAULT_TARGET
from routing.models import PoolItem, Run
from routing.runs.pool import pool_of


def has_new_items(*, project: Project, target: str | None = None) -> bool:
    """Whether a run planned now would cover an item that was in no pool before, be it of a cancelled run."""
    in_a_pool = Exists(PoolItem.objects.filter(item=OuterRef("pk")))
    return pool_of(project, target or DEFAULT_TARGET).filter(~in_a_pool).exists()


def undelivered_run(*, project: Project) -> Run | None:
    """The newest run that was not cancelled, where it is complete and no delivery of it was made since.

    What filters found counts as none.
    """
    run = project.runs.exclude(state=Run.State.CANCELLED).order_by("-number").first()
    if run is None or run.state != Run.State.COMPLETE:
        return None
    since = {"created_at__gte": run.completed_at} if run.completed_at else {}
    return None if run.deliveries.filter(filters={}, **since).exists() else run
