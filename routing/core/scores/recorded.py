"""A confidence or an uncertainty that came with the prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from routing.core.messages import gettext_noop
from routing.core.scores.base import ItemScore, Score, complement, number_or_reason, refuse_unknown, unusable


@dataclass(frozen=True)
class Recorded:
    """The recorded ``uncertainty``, else 1 - the recorded ``confidence``; both in [0, 1]."""

    name: str = "recorded"
    title: str = gettext_noop("Recorded confidence")
    summary: str = gettext_noop(
        "The uncertainty that came with the data, or 1 minus the confidence that did."
    )
    reads: tuple[str, ...] = ("uncertainty", "confidence")
    parameters: ClassVar[Mapping[str, str]] = {}

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        return recorded


def recorded(prediction: Mapping[str, object]) -> ItemScore:
    """The score of one prediction."""
    uncertainty = prediction.get("uncertainty")
    if uncertainty is not None and uncertainty != "":
        value = number_or_reason(uncertainty, "the recorded uncertainty")
        return unusable(value) if isinstance(value, str) else ItemScore(value + 0.0)
    value = number_or_reason(prediction.get("confidence"), "the recorded confidence")
    return unusable(value) if isinstance(value, str) else ItemScore(complement(value))
