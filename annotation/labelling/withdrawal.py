"""The job that withdraws what is left of large batches, of which nobody is asked any more already."""

from collections.abc import Sequence
from typing import Any

from annotation.jobs import running as jobs
from annotation.jobs.running import JobContext
from annotation.labelling import queue
from annotation.models import Project, User, WorkBatch

KIND = "withdraw_work"
CHUNK = 5_000


def withdraw(*, project: Project, batches: Sequence[WorkBatch], user: User | None) -> None:
    """Ask no longer for what has no label yet: of a large batch, a job writes that to its work items."""
    left = [batch.pk for batch in batches if not queue.stop_asking(batch=batch)]
    if left:
        jobs.enqueue(project=project, kind_name=KIND, params={"batches": left}, user=user)


def withdraw_work(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "withdraw_work"."""
    done = context.job.done
    for batch in WorkBatch.objects.filter(pk__in=context.params["batches"], project=context.job.project_id):
        while work_items := queue.left_to_withdraw(batch, CHUNK):
            done += len(work_items)
            with context.chunk(done=done):
                queue.withdraw_some(batch, work_items)
    return {"withdrawn": done}
