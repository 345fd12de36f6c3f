"""Uncertainty scores U in [0, 1].  A new one is one file and one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.core.registry import Registry
from routing.core.scores.base import (
    Composite,
    Example,
    Examples,
    ItemScore,
    Score,
    ScoreError,
    ScoreKind,
    number_or_reason,
    refused,
    score_key,
    unusable,
)
from routing.core.scores.calibrated import Calibrated
from routing.core.scores.ensemble import Ensemble
from routing.core.scores.hybrid import Hybrid
from routing.core.scores.label_probability import LabelProbability
from routing.core.scores.logits import Logits
from routing.core.scores.max_softmax import MaxSoftmax
from routing.core.scores.recorded import Recorded
from routing.core.scores.verbalized import Verbalized

SCORES: Registry[ScoreKind] = Registry(
    "score", MaxSoftmax(), LabelProbability(), Logits(), Verbalized(), Ensemble(), Recorded()
)


def make_score(name: str, params: Mapping[str, Any] | None = None) -> Score:
    """The score called ``name`` with its parameters.

    What it gives is a number in [0, 1] with no reason, or 1 with a reason: an answer that is missing or was
    cut off, and a score that is no number in [0, 1], are unusable whatever the score says.
    Raises `UnknownNameError` with the known names, and `ScoreError` that names a parameter.
    """
    score = SCORES.get(name).make(params or {})

    def checked(prediction: Mapping[str, object]) -> ItemScore:
        if reason := refused(prediction):
            return unusable(reason)
        result = score(prediction)
        value = number_or_reason(result.u, f"the score {name!r}")
        return unusable(value) if isinstance(value, str) else result

    return checked


def fit_score(name: str, params: Mapping[str, Any], examples: Examples) -> dict[str, Any]:
    """Parameters with which `make_score` makes the score: those given, and what has to be learnt.

    ``examples`` is called only where something has to be. Raises as `make_score` does, and `ScoreError`
    where the examples are too few.
    """
    kind = SCORES.get(name)
    fitted = kind.fit(params, examples) if isinstance(kind, Composite) else dict(params)
    kind.make(fitted)
    return fitted


def fields_read(name: str, params: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Stored fields that the score needs: of each entry any one is enough.  Raises as `make_score` does."""
    kind = SCORES.get(name)
    if not isinstance(kind, Composite):
        return [kind.reads]
    return [fields for part, own in kind.parts(params) for fields in fields_read(part, own)]


SCORES.add(Calibrated(make_score))
SCORES.add(Hybrid(make_score, fit_score))

__all__ = [
    "SCORES",
    "Example",
    "Examples",
    "ItemScore",
    "Score",
    "ScoreError",
    "ScoreKind",
    "fields_read",
    "fit_score",
    "make_score",
    "score_key",
]
