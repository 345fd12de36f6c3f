"""`population`: the risk on new items from the same source, Definition 3.1 of the paper."""

from __future__ import annotations

from typing import ClassVar

from routing.core.exact import percent, plain
from routing.core.targets.base import Promise, Target


class Population(Target):
    """R(theta) = E l(y, T_theta(x))."""

    name: ClassVar[str] = "population"
    title: ClassVar[str] = "New items from the same source"
    summary: ClassVar[str] = (
        "The probability that a new item from the same source gets a wrong label: for thresholds that will "
        "be used on items that arrive later."
    )
    finite: ClassVar[bool] = False

    def sentence(self, promise: Promise) -> str:
        epsilon, odds = promise.epsilon, self._odds(promise)
        if promise.binary:
            return (
                f"With these thresholds a new item from the same source gets a wrong label with probability "
                f"at most {percent(epsilon)} (epsilon = {plain(epsilon)}), {odds}."
            )
        return (
            f"With these thresholds the expected loss '{promise.loss}' of a new item from the same source is "
            f"at most {plain(epsilon)} (epsilon), {odds}."
        )
