"""The 0-1 loss: wrong or right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ZeroOne:
    """1 where the canonical values differ, else 0."""

    name: str = "zero_one"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return 0.0 if label == prediction else 1.0
