"""When the last routed item is done, the run is complete."""

from contextlib import suppress
from typing import Any

from django.db.models import Q
from django.utils import timezone

from annotation.common import events, mail
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.labelling.labels_of_record import unsettled
from annotation.models import Project, WorkBatch, WorkItem
from annotation.task_types import TASK_TYPES
from routing.common.states import ROUTED, State
from routing.models import Run
from routing.runs.events import CALIBRATION_DONE, calibration_done, run_completed
from routing.runs.expert.audit import audit_state
from routing.runs.expert.requests import has_undecided
from routing.runs.later.audit import later_audit_state

# More than can be submitted at one moment: above it, no other request can be finishing the batch meanwhile.
CROWD = 200


def of_batch(batch: int) -> Q:
    """Those runs that a batch was made for."""
    names = ("calibration_batch", "routed_batch", "expert_batch", "expert_routed_batch", "later_audit_batch")
    return Q(*((name, batch) for name in names), _connector=Q.OR)


def run_of_batch(batch: WorkBatch) -> Run | None:
    """The run that a batch was made for, without what is large of it: each answer asks for it."""
    run = (
        Run.objects.filter(of_batch(batch.pk))
        .annotate(watched=events.is_watched("project"))
        .defer("chains", "slices", "tally", "score_params", "loss_params")
        .first()
    )
    if run is not None:
        run.project = batch.project
    return run


def complete_if_done(run: Run, ended: WorkItem | None = None) -> bool:
    """Complete the run if nothing is left but `ended` of what people label since its routing, they differ
    about nothing, and no loss of their labels is still to be computed. Where Dawid-Skene is to settle what
    they differ about, a job is made that does it; of the audit of later items a reviewer decides, as in the
    calibration set.

    Call it in the transaction that ends that, or settles an item.
    """
    batches = [
        batch
        for batch in (run.routed_batch_id, run.expert_routed_batch_id, run.later_audit_batch_id)
        if batch is not None
    ]
    others = WorkItem.objects.filter(batch__in=batches, state__in=WorkItem.UNFINISHED)
    if ended is not None:
        others = others.exclude(pk=ended.pk)
    if len(others.values_list("pk")[:CROWD]) == CROWD:
        return False
    # Two people who finish the last two items at once do it one after the other; else each would see the
    # other's.
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if others.exists():
        return False
    if run.overlap > 1 and unsettled(WorkItem.objects.filter(batch__in=batches)).exists():
        if unsettled(WorkItem.objects.filter(batch=run.routed_batch_id)).exists():
            _settle_by_job(run)
        return False
    if _waits_for_losses(run):
        return False
    completed = Run.objects.filter(pk=run.pk, state=State.LABELLING).update(
        state=State.COMPLETE, completed_at=timezone.now()
    )
    if completed:
        run_completed(run)
    return bool(completed)


def _waits_for_losses(run: Run) -> bool:
    """Whether an item may still go to the expert, or an audit sound its alarm, once losses are computed: the
    job that computes them completes the run.
    """
    if not (run.by_expert or run.later_audit_share):
        return False  # nothing is asked of a loss any more
    if run.by_expert and has_undecided(run):
        return True
    return (audit_state(run) if run.by_expert else later_audit_state(run)).computing


def calibration_ended(run: Run, ended: WorkItem | None = None) -> None:
    """Tell whoever wants to know it that the calibration set has all its labels, if it has: once of each run.

    Call it in the transaction that ends `ended`, or settles an item.
    """
    if run.state != State.CALIBRATING:
        return
    watched = getattr(run, "watched", True) and events.wanted_by(run.project, CALIBRATION_DONE)
    if not watched and not mail.is_on():
        return
    work = WorkItem.objects.filter(batch=run.calibration_batch_id)
    others = work.filter(state__in=WorkItem.UNFINISHED)
    if ended is not None:
        others = others.exclude(pk=ended.pk)
    if len(others.values_list("pk")[:CROWD]) == CROWD:
        return
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # as above
    if not others.exists() and not (run.overlap > 1 and unsettled(work).exists()):
        calibration_done(run)


def settle_run(context: JobContext) -> dict[str, Any]:
    """The job "settle_run": Dawid-Skene on what people differ about, which completes the run."""
    runs = Run.objects.select_related("project", "routed_batch")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    settled = 0
    if run.routed_batch is not None and run.state in ROUTED:
        # Again until nothing is left: a correction may have opened an item meanwhile.
        while more := queue.settle_batch_by_dawid_skene(run.routed_batch):
            settled += more
    return {"settled": settled}


def _settle_by_job(run: Run) -> None:
    """Of other tasks than single choices all is left to a reviewer."""
    single = TASK_TYPES[run.project.task_type].one_choice
    if run.consensus != Project.Consensus.DAWID_SKENE or not single:
        return
    with suppress(ConflictError):  # it is under way already
        jobs.enqueue(
            project=run.project,
            kind_name="settle_run",
            params={"run": run.pk},
            unique_key=f"settle_run:{run.pk}",
        )
