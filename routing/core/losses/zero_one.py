"""The 0-1 loss: wrong or right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routing.core.losses.base import Loss, LossError


@dataclass(frozen=True)
class ZeroOne:
    """1 where the canonical values differ, else 0."""

    name: str = "zero_one"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return 0.0 if label == prediction else 1.0


@dataclass(frozen=True)
class ZeroOneKind:
    """`ZeroOne`; it takes no parameters."""

    name: str = "zero_one"
    summary: str = "A label is right or wrong."

    def make(self, params: Mapping[str, Any]) -> Loss:
        if params:
            raise LossError(f"the loss 'zero_one' takes no parameter {sorted(params)[0]!r}")
        return ZeroOne()
