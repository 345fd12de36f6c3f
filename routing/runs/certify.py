"""From the locked calibration labels to the certificate: a manager has the draw analysed, once, and the job
"analyse_run" does it.

`mark_invalid` says what breaks a certificate after the fact: its bytes stay, and everywhere it is shown, this
is said.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
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
from routing.common.states import ANALYSED, State, move
from routing.core.bins import Bins
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError
from routing.core.certificate import canonical_bytes, certificate_document, draw_line
from routing.core.certify import Certification, certify
from routing.core.chain import Chain
from routing.core.documents import read_slices
from routing.core.every_score.certify import certify_every_score
from routing.core.every_score.documents import score_certificate
from routing.core.every_score.select import AnswersMissingError, PilotCosts
from routing.core.losses import LossUnavailableError
from routing.core.plan import Plan
from routing.core.reference.certify import ReferenceCertification
from routing.core.reference.settled import settled_certificate, settled_says
from routing.models import Certificate, Run, RunSource
from routing.runs import every_score_runs
from routing.runs.analysis_result import AnalysisResult, provenance_of
from routing.runs.chains import chains_from_json, no_losses, thresholds_to_json
from routing.runs.committed import refuse_other_than_committed
from routing.runs.diagnostics import Analysis, messages_of, run_diagnostics
from routing.runs.events import certificate_broken, run_analysed
from routing.runs.expert.analyse import analyse_with_expert
from routing.runs.load_calibration import load_calibration
from routing.runs.losses_to_measure import refuse_unmeasured
from routing.runs.other_rule_comparison import compare_with_other_rule
from routing.runs.plan import plan_of
from routing.runs.score_diagnostics import ScoreAnalysis, score_diagnostics
from routing.runs.two_people import FIGURE, two_people_of

logger = logging.getLogger(__name__)


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
        move(
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
    shown, messages = _shown_of(run, found)
    certification = found.certification
    document = canonical_bytes(found.document)
    with context.chunk():
        certificate = Certificate.objects.create(
            run=run,
            certified=certification.certified,
            document=document.decode(),
            draw_lines="".join(draw_line(row) + "\n" for row in found.rows),
            figures=shown,
            messages=messages,
            sha256=hashlib.sha256(document).hexdigest(),
            **found.policy,
        )
        move(
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
    if run.by_expert:
        return analyse_with_expert(run, run_sources)
    if every_score_runs.uses_every_score(run):
        found = _analyse_by_every_score(context, run, run_sources)
    else:
        found = _analyse_by_first_score(run, run_sources)
    return _settled(run, found) if run.reference == Run.Reference.SETTLED else found


def _settled(run: Run, found: AnalysisResult) -> AnalysisResult:
    """The same, its certificate, and what pages show of it, saying that two people and a third are right."""
    certification = found.certification
    if isinstance(certification, ReferenceCertification):
        raise TypeError("an expert is the reference")
    plan = plan_of(run)
    return replace(
        found,
        certification=replace(certification, said=settled_says(plan, certification)),
        document=settled_certificate(plan, certification, found.document),
    )


def _analyse_by_first_score(run: Run, run_sources: Sequence[RunSource]) -> AnalysisResult:
    plan, (calibration, own) = plan_of(run), load_calibration(run, run_sources)
    chains = chains_from_json(run.chains or [])
    slices = None if run.slices is None else read_slices(run.slices)
    certification = _certified(plan, chains, calibration, slices)
    provenance = provenance_of(run, run_sources, certification)
    analysis = Analysis(plan, calibration, certification, chains, slices, own)
    return AnalysisResult(
        certification,
        certificate_document(plan, calibration, certification, provenance=provenance, slices=slices),
        calibration.rows,
        partial(run_diagnostics, analysis),
        partial(compare_with_other_rule, run, run_sources, plan, calibration),
        {"thresholds": thresholds_to_json(certification.thresholds)},
    )


def _analyse_by_every_score(
    context: JobContext, run: Run, run_sources: Sequence[RunSource]
) -> AnalysisResult:
    """The same where every model's own score decides: a model that the tests need answers in between."""
    plan, chains = plan_of(run), every_score_runs.chains_of(run)
    pilot = PilotCosts.of(plan, chains, every_score_runs.pilot_outside_draw(run, run_sources, chains))
    names = [run_source.source.name for run_source in run_sources]
    done = 0
    while True:
        calibration, own = load_calibration(run, run_sources)
        try:
            certification = certify_every_score(plan, chains, calibration, pilot=pilot, names=names)
            break
        except AnswersMissingError as error:
            done += every_score_runs.ask_for(context, run, run_sources, error.missing, done=done)
        except (LossUnavailableError, CalibrationError) as error:
            raise no_losses(error) from error
    provenance = provenance_of(run, run_sources, certification)
    chosen = certification.selection.chain
    analysis = ScoreAnalysis(plan, calibration, certification, chains, pilot, own)
    return AnalysisResult(
        certification,
        score_certificate(plan, chains, calibration, certification, pilot=pilot, provenance=provenance),
        calibration.rows,
        partial(score_diagnostics, analysis),
        partial(compare_with_other_rule, run, run_sources, plan, calibration),
        {
            "shape": chosen.shape,
            "model_positions": [place + 1 for place in chosen.models],
            "thresholds": thresholds_to_json(certification.thresholds),
        },
    )


def _certified(
    plan: Plan, chains: Sequence[Chain], calibration: Calibration, slices: Bins | None
) -> Certification:
    try:
        return certify(plan, chains, calibration, slices=slices)
    except (LossUnavailableError, CalibrationError) as error:
        raise no_losses(error) from error


def _shown_of(run: Run, found: AnalysisResult) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures and the messages, or nothing: what is only shown beside a certificate must not stand in its
    way, since the draw is spent.
    """
    shown: dict[str, Any] = {}
    try:
        shown = found.figures()
        if beside := found.other():
            shown["comparisons"].insert(0, beside)
    except Exception:
        logger.exception("The figures of run %s could not be computed", run.pk)
    if run.overlap > 1:
        try:
            shown[FIGURE] = two_people_of(run, plan_of(run))
        except Exception:
            logger.exception("How often two people differ in run %s could not be computed", run.pk)
    try:
        return shown, messages_of(found.certification, shown)
    except Exception:
        logger.exception("What run %s found could not be put into messages", run.pk)
        for row in shown.get("comparisons", []):
            row.pop("messages", None)
        return shown, {}


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
