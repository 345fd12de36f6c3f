"""A confidence or an uncertainty that came with the prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routing.core.scores.base import ItemScore, number_or_reason, unusable


@dataclass(frozen=True)
class Recorded:
    """The recorded ``uncertainty``, else 1 - the recorded ``confidence``; both in [0, 1]."""

    name: str = "recorded"

    def __call__(self, prediction: Mapping[str, object]) -> ItemScore:
        uncertainty = prediction.get("uncertainty")
        if uncertainty is not None and uncertainty != "":
            value = number_or_reason(uncertainty, "the recorded uncertainty")
            return unusable(value) if isinstance(value, str) else ItemScore(value + 0.0)
        value = number_or_reason(prediction.get("confidence"), "the recorded confidence")
        return unusable(value) if isinstance(value, str) else ItemScore(1.0 - value)
