"""How good the models of a run were on what they were asked, by a truth that only a demonstration has."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.db.models import Sum
from sklearn.metrics import roc_auc_score

from annotation.values import as_text
from routing.core.experiment.reliability import reliability
from routing.models import ItemScore, Prediction, Run, RunSource, Spend
from routing.runs.score import score_of

PEOPLE = "People"


def measured_models(run: Run, truth: Mapping[int, str]) -> list[dict[str, Any]]:
    """Of each model, in their order: answers, accuracy, tokens in and out, and AUROC and expected calibration
    error (ten bins of equal width) of 1 - uncertainty. `truth` is the right label by item id.

    A later model is asked about the pilot, the asked items of the draw and its own band: harder items than
    the first one, which is asked about all.
    """
    return [
        _measured(run, entry, truth)
        for entry in run.run_sources.select_related("source").order_by("position")
    ]


def spend(run: Run) -> list[dict[str, Any]]:
    """The ledger by source and stage."""
    rows = Spend.objects.filter(run=run).values("source", "source__name", "stage").order_by("source", "stage")
    return [
        {
            "source": row["source__name"] or PEOPLE,
            "stage": row["stage"],
            "labels": row["labels"],
            "amount": float(row["total"]),
        }
        for row in rows.annotate(labels=Sum("quantity"), total=Sum("amount"))
    ]


def _measured(run: Run, entry: RunSource, truth: Mapping[int, str]) -> dict[str, Any]:
    answers = Prediction.objects.filter(source=entry.source_id, fingerprint=entry.fingerprint)
    score = score_of(run, entry)
    scores = dict(
        ItemScore.objects.filter(prediction__in=answers, name=score.key).values_list("prediction", "value")
    )
    rows = list(answers.order_by("item").values_list("pk", "item_id", "value", "tokens_in", "tokens_out"))
    right = np.array(
        [value is not None and as_text(value) == truth[item] for _, item, value, _, _ in rows], dtype=bool
    )
    uncertainty = np.array([scores.get(pk, 1.0) for pk, *_ in rows])
    both = bool(right.any()) and not bool(right.all())
    return {
        "name": entry.source.name,
        "asked": len(rows),
        "usable": sum(value is not None for _, _, value, _, _ in rows),
        "accuracy": float(right.mean()) if rows else None,
        "tokens_in": _total(row[3] for row in rows),
        "tokens_out": _total(row[4] for row in rows),
        "score": score.name,
        "auroc": float(roc_auc_score(right, 1 - uncertainty)) if both else None,
        "ece": reliability(uncertainty, 1.0 - right).ece if rows else None,
    }


def _total(numbers: Any) -> int | None:
    """None where the backend does not count tokens."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
