"""`population`: the risk on new items from the same source, Definition 3.1 of the paper."""

from __future__ import annotations

from typing import ClassVar

from routing.core.messages import gettext_noop
from routing.core.targets.base import Target


class Population(Target):
    """R(theta) = E l(y, T_theta(x))."""

    name: ClassVar[str] = "population"
    title: ClassVar[str] = gettext_noop("New items from the same source")
    summary: ClassVar[str] = gettext_noop(
        "The probability that a new item from the same source gets a label that differs from what a person "
        "would give: for thresholds that will be used on items that arrive later."
    )
    finite: ClassVar[bool] = False
