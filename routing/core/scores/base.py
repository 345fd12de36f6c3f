"""What a score is, and what becomes of an answer that has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Protocol


@dataclass(frozen=True)
class ItemScore:
    """Uncertainty of one prediction: ``u`` in [0, 1], and why it is 1 where no usable score exists ('' if it
    does).
    """

    u: float
    reason: str = ""

    @property
    def usable(self) -> bool:
        return not self.reason


class Score(Protocol):
    """Computes U from what is stored of one prediction; never calls a model, never raises on a bad value."""

    @property
    def name(self) -> str: ...

    def __call__(self, prediction: Mapping[str, object]) -> ItemScore: ...


def unusable(reason: str) -> ItemScore:
    """U = 1, the most uncertain there is, with the reason."""
    return ItemScore(1.0, reason)


def number_or_reason(value: object, what: str) -> float | str:
    """``value`` as a float in [0, 1], or the reason why it is none.  Text such as "0.93" is a number."""
    if value is None or value == "":
        return f"{what} is missing"
    if isinstance(value, bool):
        return f"{what} is not a number: {value!r}"
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return f"{what} is not a number: {str(value)[:40]!r}"
    if isnan(number):
        return f"{what} is NaN"
    if not 0.0 <= number <= 1.0:
        return f"{what} is outside [0, 1]: {number:g}"
    return number
