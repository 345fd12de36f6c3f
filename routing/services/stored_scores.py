"""Uncertainty scores of stored predictions. Another score needs no other model call."""

from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from annotation.jobs import JobContext
from annotation.services.bulk import copy_rows
from annotation.values import ValueReader, reader_of
from routing.backends.base import shortened
from routing.core.scores import make_score
from routing.models import ItemScore, Prediction, RunSource
from routing.services.score_fields import fields_of
from routing.services.scoring import ChosenScore

CHUNK = 2_000


def store_scores(rows: Iterable[Prediction], score: ChosenScore, reader: ValueReader) -> None:
    """Compute and store one score of predictions that do not have it.

    An answer that cannot be used is as uncertain as can be, whatever the model thought of it.
    """
    compute, name = make_score(score.name, score.params), score.key
    results = ((row.pk, compute(fields_of(row, reader))) for row in rows)
    copy_rows(
        ItemScore,
        ("prediction", "name", "value", "reason"),
        [(pk, name, result.u, shortened(result.reason)) for pk, result in results],
    )


def score_missing(context: JobContext, *, run_source: RunSource, score: ChosenScore) -> None:
    """Compute `score` for the stored predictions of a source that lack it. No model is called."""
    missing = Prediction.objects.filter(
        ~Exists(ItemScore.objects.filter(prediction=OuterRef("pk"), name=score.key)),
        source=run_source.source_id,
        fingerprint=run_source.fingerprint,
    ).order_by("pk")
    rows = list(missing[:CHUNK])
    if not rows:
        return
    reader = reader_of(run_source.run.project)
    while rows:
        with context.chunk(stage=f"Scores of {run_source.source.name}"):
            store_scores(rows, score, reader)
        rows = list(missing.filter(pk__gt=rows[-1].pk)[:CHUNK])
