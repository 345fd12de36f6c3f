"""1 - the largest class probability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routing.core.scores.base import ItemScore, number_or_reason, unusable

SUM_TOLERANCE = 1e-3
"""Probabilities stored in half precision or rounded for a file still add up to one within this."""
ROUNDING = 1e-6
"""A float32 softmax may give 1.0000001."""


@dataclass(frozen=True)
class MaxSoftmax:
    """U = 1 - max_k p_k from ``probabilities``: one number per class, or a mapping from class to number."""

    name: str = "max_softmax"

    def __call__(self, prediction: Mapping[str, object]) -> ItemScore:
        probabilities = prediction.get("probabilities")
        if isinstance(probabilities, Mapping):
            probabilities = list(probabilities.values())
        if (
            probabilities is None
            or isinstance(probabilities, str | bytes)
            or not isinstance(probabilities, Iterable)
        ):
            return unusable("the class probabilities are missing")
        largest, total, classes = 0.0, 0.0, 0
        for entry in probabilities:
            if isinstance(entry, float) and 1.0 < entry <= 1.0 + ROUNDING:
                entry = 1.0
            value = number_or_reason(entry, "a class probability")
            if isinstance(value, str):
                return unusable(value)
            largest, total, classes = max(largest, value), total + value, classes + 1
        if not classes:
            return unusable("the class probabilities are missing")
        if abs(total - 1.0) > SUM_TOLERANCE:
            return unusable(f"the class probabilities add up to {total:g}, not to 1")
        return ItemScore(1.0 - largest)
