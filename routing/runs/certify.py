"""From the locked calibration labels to the certificate: a manager has the draw analysed, once, and the job
"analyse_run" does it.

`mark_invalid` says what breaks a certificate after the fact: its bytes stay, and everywhere it is shown, this
is said.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.models import Job, User, WorkBatch
from annotation.words import Words
from routing.common.states import ANALYSED, State, change_state
from routing.core.every_score.select import AnswersMissingError
from routing.models import Certificate, Run, RunSource
from routing.runs import every_score_runs
from routing.runs.analysis import compute_analysis, figures_and_messages
from routing.runs.analysis_result import AnalysisResult
from routing.runs.certificate_columns import certificate_columns
from routing.runs.commitment_queries import refuse_other_than_committed
from routing.runs.events import certificate_broken, run_analysed
from routing.runs.expert.rows import expert_rows
from routing.runs.load_calibration import load_calibration
from routing.runs.losses_to_measure import refuse_unmeasured
from routing.runs.plan import plan_of


def analyse(*, run: Run, user: User | None) -> Job:
    """Lock the calibration labels and have the thresholds certified (job "analyse_run").

    Raises ConflictError, in words, before every asked item is labelled and settled or given up, and after
    the one analysis of a draw.
    """
    run.refresh_from_db()
    if run.state in (State.ANALYSED, State.ROUTING, State.LABELLING, State.COMPLETE):
        raise ConflictError(
            _("Run %(run)s has been analysed. A draw is analysed once; another look needs a new run.")
            % {"run": run.number},
            code="analysed_already",
        )
    batch = _last_batch(run)
    if run.measured_elsewhere and run.state == State.CALIBRATING:
        raise ConflictError(
            _(
                "The losses of run %(run)s are measured elsewhere: have them asked for once its labels are "
                "there, then analyse."
            )
            % {"run": run.number},
            code="losses_not_asked",
        )
    if run.state != _to_be_analysed(run) or batch is None:
        raise ConflictError(
            _("Run %(run)s cannot be analysed now: %(state)s.")
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="cannot_analyse_now",
        )
    with transaction.atomic():
        refuse_unfinished(batch)
        if run.state == State.LOSSES:
            refuse_unmeasured(run)
        # The batch before the run, as a correction and a decision take their locks: in another order, two of
        # them could wait for each other.
        queue.lock_batch(batch=batch)
        change_state(
            run,
            before=_to_be_analysed(run),
            after=State.ANALYSING,
            refusal=ConflictError(
                _("Run %(run)s is being analysed already.") % {"run": run.number}, code="being_analysed"
            ),
        )
        audit.record(
            project=run.project, actor=user, action="run.analysis_started", target=f"run:{run.number}"
        )
        return jobs.enqueue(
            project=run.project,
            kind_name="analyse_run",
            params={"run": run.pk},
            unique_key=f"analyse_run:{run.pk}",
            user=user,
        )


def _to_be_analysed(run: Run) -> str:
    """In which state a run waits for its analysis."""
    if run.by_expert:
        return State.CHECKING
    return State.LOSSES if run.measured_elsewhere else State.CALIBRATING


def _last_batch(run: Run) -> WorkBatch | None:
    """Whose labels the analysis waits for."""
    return run.expert_batch if run.by_expert else run.calibration_batch


def refuse_unfinished(batch: WorkBatch) -> None:
    """Raises ConflictError while an answer is missing, or people differ about an item."""
    progress = queue.batch_progress(batch)
    if missing := progress.open + progress.leased:
        raise ConflictError(
            _(
                "%(missing)s of %(total)s calibration items are still to be labelled. No result "
                "can be seen before the last one; what nobody can label is to be given up by a "
                "manager."
            )
            % {"missing": missing, "total": progress.total}
            if progress.items == progress.total
            else _(
                "%(missing)s of %(total)s answers about %(items)s calibration items are still "
                "missing. No result can be seen before the last one; what nobody can label is to "
                "be given up by a manager."
            )
            % {"missing": missing, "total": progress.total, "items": progress.items},
            code="calibration_unlabelled",
        )
    if progress.disagreeing:
        raise ConflictError(
            _(
                "People differ about %(disagreeing)s of %(items)s calibration items. A reviewer "
                "has to decide about each before the analysis."
            )
            % {"disagreeing": progress.disagreeing, "items": progress.items},
            code="calibration_disputed",
        )


def analyse_run(context: JobContext) -> dict[str, Any]:
    runs = Run.objects.select_related("project", "calibration_batch")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    if run.state != State.ANALYSING:
        return {"state": run.state}
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    context.progress(stage=Words(gettext_noop("Certificate")))
    found = _analysis_of(context, run, run_sources)
    refuse_other_than_committed(run, plan_of(run), found.document, found.rows)
    shown, messages = figures_and_messages(run, found)
    with context.chunk():
        certificate = Certificate.objects.create(
            run=run, figures=shown, messages=messages, **certificate_columns(found.document, found.rows)
        )
        change_state(
            run,
            before=State.ANALYSING,
            after=State.ANALYSED,
            analysed_at=timezone.now(),
            refusal=ANALYSED.error(raised_as=ConflictError, run=run.number),
        )
        run.refresh_from_db(fields=["invalid_reasons"])  # a label may have been corrected meanwhile
        run_analysed(run, certified=certificate.holds)
    return {"certified": certificate.holds}


def _analysis_of(context: JobContext, run: Run, run_sources: Sequence[RunSource]) -> AnalysisResult:
    """What the rows of the draw give; a model that the tests need answers in between."""
    rows_of, done = expert_rows if run.by_expert else load_calibration, 0
    while True:
        calibration, own = rows_of(run, run_sources)
        try:
            return compute_analysis(run, run_sources, calibration, own)
        except AnswersMissingError as error:
            done += every_score_runs.ask_for(context, run, run_sources, error.missing, done=done)


def mark_invalid(*, run: Run, why: failures.Failure, params: failures.Params, actor: User | None) -> None:
    """Add a reason why the certificate of `run` no longer holds. The same reason twice has one effect, and
    only the first of all breaks what held: other programs are told once.
    """
    reason = {"code": why.code, "params": dict(params)}
    with transaction.atomic():
        # Whoever answers meanwhile holds the key of the run, by what it paid, and waits for this row.
        current = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        if reason in ({key: known[key] for key in reason} for known in current.invalid_reasons):
            return
        words = failures.in_english(why.code, params)
        first = not current.invalid_reasons
        current.invalid_reasons.append(reason | {"words": words})
        current.save(update_fields=["invalid_reasons"])
        run.invalid_reasons = current.invalid_reasons
        audit.record(
            project=run.project,
            actor=actor,
            action="run.marked_invalid",
            target=f"run:{run.number}",
            data={"reason": words},
        )
        if first:
            certificate_broken(run, why=why.part(**params))
