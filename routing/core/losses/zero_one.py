"""The 0-1 loss: wrong or right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.losses.base import Loss, known_parameters
from routing.core.messages import gettext_noop


@dataclass(frozen=True)
class ZeroOne:
    """1 where the stored values differ, else 0."""

    name: str = "zero_one"
    bound: float = 1.0
    binary: bool = True
    transitive: bool = True
    quick: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return 0.0 if label == prediction else 1.0

    def many(self, labels: Sequence[str], predictions: Sequence[str]) -> Floats:
        """Losses (n,) of n pairs."""
        return np.array([a != b for a, b in zip(labels, predictions, strict=True)], dtype=np.float64)


@dataclass(frozen=True)
class ZeroOneKind:
    """`ZeroOne`; it takes no parameters."""

    name: str = "zero_one"
    title: str = gettext_noop("Right or wrong")
    summary: str = gettext_noop(
        "A label is right or wrong: the two must be the same, character by character."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return ZeroOne()
