"""1 - the largest class probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from routing.core.messages import gettext_noop
from routing.core.reasons import score_missing
from routing.core.scores.base import (
    ItemScore,
    Score,
    complement,
    entries_of,
    probability_or_reason,
    refuse_unknown,
    unusable,
)

SUM_TOLERANCE = 1e-3
"""Probabilities stored in half precision or rounded for a file still add up to one within this."""


@dataclass(frozen=True)
class MaxSoftmax:
    """U = 1 - max_k p_k from ``probabilities``: one number per class, or a mapping from class to number."""

    name: str = "max_softmax"
    title: str = gettext_noop("Largest class probability")
    summary: str = gettext_noop("1 minus the largest probability that a classifier gives to any class.")
    reads: tuple[str, ...] = ("probabilities",)
    parameters: ClassVar[Mapping[str, str]] = {}

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        return max_softmax


def max_softmax(prediction: Mapping[str, object]) -> ItemScore:
    """The score of one prediction; the probabilities must add up to 1 within `SUM_TOLERANCE`."""
    stored = prediction.get("probabilities")
    entries = list(stored.values()) if isinstance(stored, Mapping) else entries_of(stored)
    if not entries:
        return unusable(score_missing("the class probabilities are missing"))
    values = []
    for entry in entries:
        value = probability_or_reason(entry, "a class probability")
        if isinstance(value, str):
            return unusable(value)
        values.append(value)
    if abs(sum(values) - 1.0) > SUM_TOLERANCE:
        return unusable(f"the class probabilities add up to {sum(values):g}, not to 1")
    return ItemScore(complement(max(values)))
