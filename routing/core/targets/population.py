"""`population`: the risk on new items from the same source, Definition 3.1 of the paper."""

from __future__ import annotations

from typing import ClassVar

from routing.core.exact import percent, plain
from routing.core.right import against, differs
from routing.core.targets.base import Promise, Target


class Population(Target):
    """R(theta) = E l(y, T_theta(x))."""

    name: ClassVar[str] = "population"
    title: ClassVar[str] = "New items from the same source"
    summary: ClassVar[str] = (
        "The probability that a new item from the same source gets a label that differs from what a person "
        "would give: for thresholds that will be used on items that arrive later."
    )
    finite: ClassVar[bool] = False

    def claim(self, promise: Promise) -> str:
        epsilon, odds = promise.epsilon, self._odds(promise)
        if promise.binary:
            return (
                "With these thresholds a new item from the same source gets a label that "
                f"{differs(promise.loss)} with probability at most {percent(epsilon)} "
                f"(epsilon = {plain(epsilon)}), {odds}."
            )
        return (
            f"With these thresholds the expected {against(promise.loss)} of a new item from the same "
            f"source is at most {plain(epsilon)} (epsilon), {odds}."
        )
