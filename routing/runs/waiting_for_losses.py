"""Runs that wait for losses while no job computes them: it failed for good or was cancelled, or the run came
with a project file, which has neither jobs that have not ended nor computed losses.
"""

from datetime import timedelta

from django.core.cache import cache
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation.jobs import jobs
from annotation.models import Job, Project, WorkItem
from routing.common.computed_losses import KIND, forget_losses, have_computed
from routing.common.states import State
from routing.core.losses import is_quick, make_loss
from routing.core.messages import CoreError
from routing.models import ExpertRequest, Run

AT_ONCE = 1000
REST, RETRY = timedelta(minutes=10), timedelta(hours=1)
"""How often such runs are looked for, and how long after the last job of a project the next one begins."""


def maintain_losses() -> None:
    """Begin a job where a run waits for one, and remove losses that nobody needs. Any number of processes may
    do so at the same time.
    """
    if cache.add("look-after-losses", value=True, timeout=REST.total_seconds()):
        _wake()
    if not cache.get("kept-losses") and not forget_losses(most=AT_ONCE):
        cache.set("kept-losses", value=True, timeout=RETRY.total_seconds())


def resume_runs(project: Project) -> None:
    """Have a job go on with the runs of a project that has just come with a file."""
    if project.archived_at is None and any(map(_needs_a_job, _waiting(Run.objects.filter(project=project)))):
        have_computed(project)


def _wake() -> None:
    lately = Q(state__in=jobs.UNFINISHED) | Q(finished_at__gt=timezone.now() - RETRY)
    looked = Job.objects.filter(lately, project=OuterRef("project"), kind=KIND)
    runs = Run.objects.filter(~Exists(looked), project__archived_at=None, project__deleting_at=None)
    projects = {run.project for run in _waiting(runs).select_related("project") if _needs_a_job(run)}
    for project in sorted(projects, key=lambda one: one.pk):
        have_computed(project)


def _waiting(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Those of which something is undecided, or that stay open although nobody is asked about anything."""
    ended = [
        ~Exists(WorkItem.objects.filter(batch=OuterRef(batch), state__in=WorkItem.UNFINISHED))
        for batch in ("routed_batch", "expert_routed_batch", "later_audit_batch")
    ]
    undecided = ExpertRequest.objects.filter(run=OuterRef("pk"), why=ExpertRequest.Why.UNDECIDED)
    compares = Q(reference=Run.Reference.EXPERT) | Q(later_audit_share__gt=0)
    return runs.filter(compares, Q(Exists(undecided)) | Q(*ended), state=State.LABELLING)


def _needs_a_job(run: Run) -> bool:
    try:
        return not is_quick(make_loss(run.loss, run.loss_params))
    except CoreError:
        return True  # which says what is missing
