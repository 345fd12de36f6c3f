"""The job "analyse_run": from the locked calibration labels to the certificate. Once per draw."""

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.errors import JobFailedError
from annotation.jobs import JobContext
from annotation.values import as_text
from routing.core.arrays import Floats
from routing.core.bins import Bins
from routing.core.calibration import Calibration, CalibrationError, CalibrationRow
from routing.core.certificate import canonical_bytes, certificate_document, draw_line
from routing.core.certify import Certification, certify
from routing.core.chain import Chain
from routing.core.documents import read_slices
from routing.core.exact import plain
from routing.core.losses import LossUnavailableError
from routing.core.plan import Plan
from routing.models import Certificate, DrawItem, Run, RunSource
from routing.selectors.ledger import ledger
from routing.services.answers import table_of_answers
from routing.services.chains import chains_from_json, thresholds_to_json
from routing.services.figures import Analysis, figures, messages_of
from routing.services.labels import given_up, records_at
from routing.services.overlap import overlap_document
from routing.services.plans import plan_of
from routing.services.run_events import run_analysed
from routing.services.states import State, move

logger = logging.getLogger(__name__)


def analyse_run(context: JobContext) -> dict[str, Any]:
    run = Run.objects.select_related("project", "calibration_batch").get(pk=context.params["run"])
    if run.state != State.ANALYSING:
        return {"state": run.state}
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    context.progress(stage="Certificate")
    plan, (calibration, own_scores) = plan_of(run), load_calibration(run, run_sources)
    chains = chains_from_json(run.chains or [])
    slices = None if run.slices is None else read_slices(run.slices)
    certification = _certified(plan, chains, calibration, slices)
    document = canonical_bytes(
        certificate_document(
            plan,
            calibration,
            certification,
            provenance=_provenance(run, run_sources, certification),
            slices=slices,
        )
    )
    analysis = Analysis(plan, calibration, certification, chains, slices, own_scores)
    shown = _figures_of(run, analysis)
    messages = messages_of(certification, shown)
    with context.chunk():
        certificate = Certificate.objects.create(
            run=run,
            certified=certification.certified,
            thresholds=thresholds_to_json(certification.thresholds),
            document=document.decode(),
            draw_lines="".join(draw_line(row) + "\n" for row in calibration.rows),
            figures=shown,
            messages=messages,
            sha256=hashlib.sha256(document).hexdigest(),
        )
        move(
            run,
            before=State.ANALYSING,
            after=State.ANALYSED,
            analysed_at=timezone.now(),
            refusal=_("Run %(run)s has been analysed already.") % {"run": run.number},
        )
        run.refresh_from_db(fields=["invalid_reason"])  # a label may have been corrected meanwhile
        run_analysed(run, certified=certificate.holds)
    return {"certified": certificate.holds}


def _certified(
    plan: Plan, chains: Sequence[Chain], calibration: Calibration, slices: Bins | None
) -> Certification:
    try:
        return certify(plan, chains, calibration, slices=slices)
    except LossUnavailableError as error:
        raise JobFailedError(
            _("The losses could not be computed: %(error)s.") % {"error": error}, permanent=False
        ) from error
    except CalibrationError as error:
        raise JobFailedError(_("The losses could not be computed: %(error)s.") % {"error": error}) from error


def _figures_of(run: Run, analysis: Analysis) -> dict[str, Any]:
    """The figures, or nothing: what is only shown beside a certificate must not stand in its way, since the
    draw is spent."""
    try:
        return figures(analysis)
    except Exception:
        logger.exception("The figures of run %s could not be computed", run.pk)
        return {}


def load_calibration(run: Run, run_sources: Sequence[RunSource]) -> tuple[Calibration, Floats]:
    """The draw with its labels as they were when the batch was locked, and each model's own score (m, S - 1)
    in draw order, NaN where it has none.

    Raises JobFailedError where one is missing.
    """
    batch = run.calibration_batch
    if batch is None or batch.locked_at is None:
        raise JobFailedError(_("The calibration labels of run %(run)s are not locked.") % {"run": run.number})
    labels, nobody = records_at(batch, batch.locked_at), given_up(batch)
    rows = list(
        DrawItem.objects.filter(draw__run=run)
        .order_by("order")
        .values_list("item_id", "item__external_id", "order", "asked", "probability")
    )
    answers, scores = table_of_answers(run, run_sources, [item for item, _, _, asked, _ in rows if asked])
    keys: dict[int, tuple[int, float, int]] = {}
    ids = [item for item, *_ in rows]
    for start in range(0, len(ids), 500):
        part = run.pool_items.filter(item__in=ids[start : start + 500])
        for item, position, u, v in part.values_list("item_id", "position", "u", "v"):
            keys[item] = (position, u or 0.0, v)
    result = []
    for item, external_id, order, asked, probability in rows:
        if asked and item not in labels and item not in nobody:
            raise JobFailedError(_("This asked item has neither a label nor a decision."), where=external_id)
        position, u, v = keys[item]
        label = labels.get(item) if asked else None
        result.append(
            CalibrationRow(
                item_id=external_id,
                position=position,
                order=order,
                asked=asked,
                p=probability.normalize(),
                u=u,
                v=v,
                label=None if label is None else as_text(label),
                answers=tuple(answers[item]) if asked else (),
            )
        )
    nothing = [None] * len(run_sources)
    own = np.array([scores.get(item, nothing) for item in ids], dtype=np.float64)  # None becomes NaN
    return Calibration.from_rows(result), own


def _provenance(run: Run, run_sources: Sequence[RunSource], certification: Certification) -> dict[str, Any]:
    """Who certified what about which data.

    No time and no name of a person, so that the same labels give the same bytes.
    """
    entries = ledger(run)
    return {
        "project": run.project.slug,
        "run": run.number,
        "target_in_words": run.get_target_display(),
        "currency": run.project.currency,
        "task_type": run.project.task_type,
        "choices": list(run.project.choices.order_by("position").values_list("key", flat=True)),
        "sources": [
            {
                "position": row.position,
                "name": row.source.name,
                "backend": row.source.backend,
                "fingerprint": row.fingerprint,
                "cost_per_label": plain(row.cost_per_label),
            }
            for row in run_sources
        ],
        "people_cost_per_label": plain(run.human_cost),
        **({"overlap": overlap_document(run)} if run.overlap > 1 else {}),
        "score": run.score,
        **({"score_params": run.score_params} if run.score_params else {}),
        **({"p_column": run.p_column} if run.p_column else {}),
        "entropy": run.entropy,
        "pool_hash": run.pool_hash,
        "alpha_ledger": [{"run": entry.number, "alpha": plain(entry.alpha)} for entry in entries],
        "alpha_total": plain(sum((entry.alpha for entry in entries), run.alpha * 0)),
        "suggestions_shown": False,
        "unlabelable": certification.unanswered,
    }
