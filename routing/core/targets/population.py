"""`population`: the risk on new items from the same source, Definition 3.1 of the paper."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from routing.core.exact import percent, plain
from routing.core.targets.base import Target


class Population(Target):
    """R(theta) = E l(y, T_theta(x))."""

    name: ClassVar[str] = "population"
    title: ClassVar[str] = "New items from the same source"
    summary: ClassVar[str] = (
        "The probability that a new item from the same source gets a wrong label: for thresholds that will be "
        "used on items that arrive later."
    )
    finite: ClassVar[bool] = False

    def sentence(self, epsilon: Decimal, alpha: Decimal) -> str:
        return (
            f"With these thresholds a new item from the same source gets a wrong label with probability at "
            f"most {percent(epsilon)} (epsilon = {plain(epsilon)}), {self._odds(epsilon, alpha)}."
        )
