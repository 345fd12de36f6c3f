"""What an analysis found, and where it comes from: what its certificate says beside the numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from annotation.models import Label, Settlement, WorkItem
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import Document
from routing.core.certify import Certification
from routing.core.every_score.certify import ScoreCertification
from routing.core.exact import plain
from routing.core.reference.certify import ReferenceCertification
from routing.models import Run, RunSource
from routing.runs.commitment_queries import project_named, with_commitments
from routing.runs.given_losses import count_changed_losses
from routing.runs.labelled_elsewhere import calibration_labels_from_elsewhere
from routing.runs.ledger import ledger, total_of

AnyCertification = Certification | ScoreCertification | ReferenceCertification


@dataclass(frozen=True)
class AnalysisResult:
    """What an analysis found.

    Attributes
    ----------
    certification
    document
        The certificate.
    rows
        Those of the draw.
    figures, other
        What pages show beside it, and what the other shape of thresholds would have come to, computed when
        they are called.
    """

    certification: AnyCertification
    document: Document
    rows: Sequence[CalibrationRow]
    figures: Callable[[], dict[str, Any]]
    other: Callable[[], dict[str, Any] | None]


def provenance_of(
    run: Run, run_sources: Sequence[RunSource], certification: AnyCertification
) -> dict[str, Any]:
    """Who certified what about which data.

    No time and no name of a person, so that the same labels give the same bytes.
    """
    entries = ledger(run)
    return {
        "project": project_named(run),
        "run": run.number,
        "target_in_words": run.get_target_display(),
        "currency": run.project.currency,
        "task_type": run.project.task_type,
        "choices": list(run.project.choices.order_by("position").values_list("key", flat=True)),
        "sources": sources_document(run_sources),
        "people_cost_per_label": plain(run.human_cost),
        **({"overlap": overlap_document(run)} if run.overlap > 1 else {}),
        "score": run.score,
        **({"score_params": run.score_params} if run.score_params else {}),
        **({"p_column": run.p_column} if run.p_column else {}),
        "entropy": run.entropy,
        "pool_hash": run.pool_hash,
        "alpha_ledger": [{"run": entry.number, "alpha": plain(entry.alpha)} for entry in entries],
        "alpha_total": plain(total_of(entries)),
        "suggestions_shown": run.suggestions,
        **({"calibration_elsewhere": count} if (count := calibration_labels_from_elsewhere(run)) else {}),
        **({"losses_given_anew": again} if (again := count_changed_losses(run)) else {}),
        "unlabelable": certification.unanswered,
        **with_commitments(run),
    }


def sources_document(run_sources: Sequence[RunSource]) -> list[dict[str, Any]]:
    """The models of a run."""
    return [
        {
            "position": row.position,
            "name": row.source.name,
            "backend": row.source.backend,
            "fingerprint": row.fingerprint,
            "cost_per_label": plain(row.cost_per_label),
        }
        for row in run_sources
    ]


def overlap_document(run: Run) -> dict[str, Any]:
    """How many people were asked, and how the labels of record of the calibration set came about, as it was
    when its labels were locked.
    """
    batch = run.calibration_batch
    if batch is None or batch.locked_at is None:
        raise ValueError("The calibration labels are not locked.")
    several = WorkItem.objects.filter(batch=batch, slot=1)
    answers = Label.objects.filter(work_item__batch=batch, version=1, created_at__lte=batch.locked_at)
    # Of each item the version that held then.
    later = Q(superseded_by__isnull=False, superseded_by__created_at__lte=batch.locked_at)
    settled = Settlement.objects.filter(
        batch=batch, created_at__lte=batch.locked_at, value__isnull=False
    ).exclude(later)
    # One answer is no majority: where nobody else was asked any more, there was nothing to settle.
    alone = answers.values("item").annotate(count=Count("pk")).filter(count=1)
    settled = settled.exclude(method=Settlement.Method.MAJORITY, item__in=alone.values("item"))
    methods = {
        method: settled.filter(method=method).count()
        for method in (Settlement.Method.MAJORITY, Settlement.Method.ADJUDICATED)
    }
    return {
        "people": run.overlap,
        "share": plain(run.overlap_share),
        "people_cost_per_item": plain(run.cost_per_item),
        "items_with_several": several.count(),
        "answers": answers.count(),
        "settled_by": {method.value: count for method, count in methods.items()},
        "outside_calibration": run.consensus,
    }
