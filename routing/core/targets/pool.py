"""`pool`: the share of the pool's labels that differ from people's, had nobody labelled the asked items."""

from __future__ import annotations

from typing import ClassVar

from routing.core.exact import percent, plain
from routing.core.right import against, differ
from routing.core.targets.base import Promise, Target


class Pool(Target):
    """T(theta) / N."""

    name: ClassVar[str] = "pool"
    title: ClassVar[str] = "The pool, without the calibration labels"
    summary: ClassVar[str] = (
        "The share of labels that differ from what a person would give, as if nobody had labelled the "
        "calibration set: for comparing thresholds, or where those labels are to be left out."
    )
    finite: ClassVar[bool] = True

    def claim(self, promise: Promise) -> str:
        epsilon, odds = promise.epsilon, self._odds(promise)
        if promise.binary:
            return (
                f"Even if the labels that people gave to the calibration set were left out, at most "
                f"{percent(epsilon)} of the labels of the pool {differ(promise.loss)} "
                f"(epsilon = {plain(epsilon)}), {odds}."
            )
        return (
            f"Even if the labels that people gave to the calibration set were left out, the mean "
            f"{against(promise.loss)} of the labels of the pool is at most {plain(epsilon)} (epsilon), "
            f"{odds}."
        )
