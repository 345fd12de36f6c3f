"""Uncertainty scores of stored predictions. Another score needs no other model call."""

from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from annotation.jobs import JobContext
from routing.core.scores import SCORES
from routing.models import ItemScore, Prediction, RunSource

CHUNK = 2_000


def store_scores(rows: Iterable[Prediction], score: str) -> None:
    """Compute and store one score of predictions that do not have it.

    An answer that cannot be used is as uncertain as can be, whatever the model thought of it.
    """
    compute = SCORES.get(score)
    scores = []
    for row in rows:
        result = compute(row.raw) if row.value is not None else None
        scores.append(
            ItemScore(
                prediction=row,
                name=score,
                value=1.0 if result is None else result.u,
                reason=(row.reason if result is None else result.reason)[:200],
            )
        )
    ItemScore.objects.bulk_create(scores)


def score_missing(context: JobContext, *, run_source: RunSource, score: str) -> None:
    """Compute `score` for the stored predictions of a source that lack it. No model is called."""
    missing = Prediction.objects.filter(
        ~Exists(ItemScore.objects.filter(prediction=OuterRef("pk"), name=score)),
        source=run_source.source_id,
        fingerprint=run_source.fingerprint,
    ).order_by("pk")
    rows = list(missing[:CHUNK])
    while rows:
        with context.chunk(stage=f"Scores of {run_source.source.name}"):
            store_scores(rows, score)
        rows = list(missing.filter(pk__gt=rows[-1].pk)[:CHUNK])
