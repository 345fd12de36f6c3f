"""A manager ends a run for good."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.labelling.batches import withdraw
from annotation.models import User
from routing.common.states import CANCELLABLE, State, change_state
from routing.models import Run
from routing.runs.budget import mark_lost
from routing.runs.commitment_queries import first_hash
from routing.runs.commitments import is_drawn_elsewhere
from routing.runs.ledger import charge_draw


def cancel_run(*, run: Run, user: User | None) -> None:
    """End a run for good. Its draw is spent: alpha stays in the ledger, and labels stay with their items. So
    is a draw that is not stored but may be known: else one could look at it, and throw it away for nothing.

    A job at work on it stops at its next chunk, and nobody is asked any more; of a large run, a job goes on
    to write that to each work item (annotation.labelling.batches). Raises ConflictError where the run is
    complete or cancelled.
    """
    with transaction.atomic():
        # Jobs and work before the run itself, as a job's chunk and a submitted label take their locks: in
        # another order, two of them could wait for each other.
        for job in run.project.jobs.filter(params__run=run.pk, state__in=jobs.UNFINISHED).order_by("pk"):
            jobs.cancel(job=job)
        # Their worker has lost its job, and nobody else will take it up.
        mark_lost(run.reservations.all())
        run.refresh_from_db()
        asking = list(run.project.work_batches.filter(pk__in=run.own_batches))
        withdraw(project=run.project, batches=asking, user=user)
        change_state(
            run,
            before=CANCELLABLE,
            after=State.CANCELLED,
            completed_at=timezone.now(),
            refusal=ConflictError(
                _("Run %(run)s is %(state)s and can no longer be cancelled.")
                % {"run": run.number, "state": run.get_state_display().lower()},
                code="cannot_cancel",
            ),
        )
        if is_drawn_elsewhere(run):
            charge_draw(run, commitment=first_hash(run))
        audit.record(project=run.project, actor=user, action="run.cancelled", target=f"run:{run.number}")
