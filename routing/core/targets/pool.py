"""`pool`: the share of wrong labels in the pool, as if nobody had labelled the asked items."""

from __future__ import annotations

from typing import ClassVar

from routing.core.exact import percent, plain
from routing.core.targets.base import Promise, Target


class Pool(Target):
    """T(theta) / N."""

    name: ClassVar[str] = "pool"
    title: ClassVar[str] = "The pool, without the calibration labels"
    summary: ClassVar[str] = (
        "The share of wrong labels as if nobody had labelled the calibration set: for comparing thresholds, "
        "or where those labels are to be left out."
    )
    finite: ClassVar[bool] = True

    def sentence(self, promise: Promise) -> str:
        epsilon, odds = promise.epsilon, self._odds(promise)
        if promise.binary:
            return (
                f"Even if the labels that people gave to the calibration set were left out, at most "
                f"{percent(epsilon)} of the labels of the pool are wrong (epsilon = {plain(epsilon)}), "
                f"{odds}."
            )
        return (
            f"Even if the labels that people gave to the calibration set were left out, the mean loss "
            f"'{promise.loss}' of the labels of the pool is at most {plain(epsilon)} (epsilon), {odds}."
        )
