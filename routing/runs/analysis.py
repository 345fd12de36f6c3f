"""What the rows of a draw give: the certificate of a run, and what pages show beside it."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from routing.core.arrays import Floats
from routing.core.bins import Bins
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError
from routing.core.certificate import certificate_document
from routing.core.certify import Certification, certify
from routing.core.chain import Chain
from routing.core.documents import read_slices
from routing.core.every_score.certify import certify_every_score
from routing.core.every_score.documents import score_certificate
from routing.core.every_score.select import PilotCosts
from routing.core.losses import LossUnavailableError
from routing.core.plan import Plan
from routing.core.reference.certify import ReferenceCertification
from routing.core.reference.settled import settled_certificate, settled_says
from routing.models import Run, RunSource
from routing.runs import every_score_runs
from routing.runs.analysis_result import AnalysisResult, provenance_of
from routing.runs.chains import chains_from_json, no_losses
from routing.runs.diagnostics import Analysis, messages_of, run_diagnostics
from routing.runs.expert.analyse import analyse_with_expert
from routing.runs.other_rule_comparison import compare_with_other_rule
from routing.runs.plan import plan_of
from routing.runs.score_diagnostics import ScoreAnalysis, score_diagnostics
from routing.runs.two_people import FIGURE, two_people_of

logger = logging.getLogger(__name__)


def compute_analysis(
    run: Run, run_sources: Sequence[RunSource], calibration: Calibration, own: Floats
) -> AnalysisResult:
    """The same for the same rows; `own` (m, S - 1) as of `load_calibration`, for the figures alone.

    Raises JobFailedError where losses cannot be computed, AnswersMissingError where the tests need answers
    that are not there.
    """
    if run.by_expert:
        return analyse_with_expert(run, run_sources, calibration)
    by_rule = _by_every_score if every_score_runs.uses_every_score(run) else _by_first_score
    found = by_rule(run, run_sources, calibration, own)
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


def _by_first_score(
    run: Run, run_sources: Sequence[RunSource], calibration: Calibration, own: Floats
) -> AnalysisResult:
    plan = plan_of(run)
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
    )


def _by_every_score(
    run: Run, run_sources: Sequence[RunSource], calibration: Calibration, own: Floats
) -> AnalysisResult:
    """The same where every model's own score decides."""
    plan, chains = plan_of(run), every_score_runs.chains_of(run)
    pilot = PilotCosts.of(plan, chains, every_score_runs.pilot_outside_draw(run, run_sources, chains))
    names = [run_source.source.name for run_source in run_sources]
    try:
        certification = certify_every_score(plan, chains, calibration, pilot=pilot, names=names)
    except (LossUnavailableError, CalibrationError) as error:
        raise no_losses(error) from error
    provenance = provenance_of(run, run_sources, certification)
    analysis = ScoreAnalysis(plan, calibration, certification, chains, pilot, own)
    return AnalysisResult(
        certification,
        score_certificate(plan, chains, calibration, certification, pilot=pilot, provenance=provenance),
        calibration.rows,
        partial(score_diagnostics, analysis),
        partial(compare_with_other_rule, run, run_sources, plan, calibration),
    )


def _certified(
    plan: Plan, chains: Sequence[Chain], calibration: Calibration, slices: Bins | None
) -> Certification:
    try:
        return certify(plan, chains, calibration, slices=slices)
    except (LossUnavailableError, CalibrationError) as error:
        raise no_losses(error) from error


def figures_and_messages(run: Run, found: AnalysisResult) -> tuple[dict[str, Any], dict[str, Any]]:
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
