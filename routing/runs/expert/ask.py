"""The expert's part of the calibration set: once annotators have labelled theirs, a manager locks it, and the
job "ask_expert" brings the expert what she labels of it, shuffled, without a reason.
"""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import Job, User
from annotation.words import Words
from routing.common.states import State, change_state, was_cancelled
from routing.core import sampling
from routing.core.reference.table import expert_sees
from routing.models import DrawItem, ExpertRequest, Run
from routing.runs.certify import refuse_unfinished
from routing.runs.expert.rows import annotated_rows
from routing.runs.plan import plan_of
from routing.runs.reference import expert_plan_of
from routing.runs.roster import who_is_the_expert

Why = ExpertRequest.Why
EXPERT_PRIORITY = 1


def ask_expert(*, run: Run, user: User | None) -> Job:
    """Lock the annotators' calibration labels, and have the expert asked (job "ask_expert").

    Raises ConflictError, in words, where the run has no expert, is not at this point, or an asked item is
    neither labelled nor given up.
    """
    run.refresh_from_db()
    if not run.by_expert:
        raise ConflictError(
            _("Run %(run)s has no expert: its labels can be analysed.") % {"run": run.number},
            code="no_expert",
        )
    if run.state != State.CALIBRATING or run.calibration_batch is None:
        raise ConflictError(
            _("The expert of run %(run)s cannot be asked now: %(state)s.")
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="cannot_ask_expert_now",
        )
    with transaction.atomic():
        refuse_unfinished(run.calibration_batch)
        queue.lock_batch(batch=run.calibration_batch)
        audit.record(project=run.project, actor=user, action="run.expert_asked", target=f"run:{run.number}")
        return jobs.enqueue(
            project=run.project,
            kind_name="ask_expert",
            params={"run": run.pk},
            unique_key=f"ask_expert:{run.pk}",
            user=user,
        )


def bring_to_expert(context: JobContext) -> dict[str, Any]:
    """The job "ask_expert"."""
    runs = Run.objects.select_related("project", "calibration_batch")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    if run.state != State.CALIBRATING:
        return {"state": run.state}
    context.progress(stage=Words(gettext_noop("What the expert labels")))
    why = _seen(run)
    with context.chunk():
        ExpertRequest.objects.bulk_create(
            ExpertRequest(run=run, item_id=item, why=reason) for item, reason in sorted(why.items())
        )
        batch = queue.create_batch(
            project=run.project,
            item_ids=sorted(why),
            blind=True,
            priority=EXPERT_PRIORITY,
            entropy=sampling.new_entropy(),
            people=who_is_the_expert(run),
        )
        change_state(
            run,
            before=State.CALIBRATING,
            after=State.CHECKING,
            expert_batch=batch,
            refusal=was_cancelled(run),
        )
    return {"items": len(why)}


def _seen(run: Run) -> dict[int, str]:
    """Ids of the asked items that the expert labels -> why."""
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    calibration, _own = annotated_rows(run, run_sources)
    expert = expert_plan_of(run, plan_of(run))
    asked = [row for row in calibration.rows if row.asked]
    ids = list(
        DrawItem.objects.filter(draw__run=run, asked=True).order_by("order").values_list("item", flat=True)
    )
    rechecked = expert.rechecked(len(asked))
    return {
        item: Why.RECHECK if place < rechecked else Why.ASKED
        for place, (item, seen) in enumerate(zip(ids, expert_sees(expert, asked).tolist(), strict=True))
        if seen
    }
