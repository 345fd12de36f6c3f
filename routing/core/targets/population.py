"""`population`: the risk on new items from the same source, Definition 3.1 of the paper."""

from __future__ import annotations

from typing import ClassVar

from routing.core.messages import declare, gettext_noop
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


SAYS = {
    "population.differ": gettext_noop(
        "With these thresholds a new item from the same source gets a label that differs from the label "
        "that a person gave or would have given with probability at most %(share)s (epsilon = "
        "%(epsilon)s), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "population.loss": gettext_noop(
        "With these thresholds a new item from the same source gets a label that differs, by the loss "
        "'%(loss)s', from the label that a person gave or would have given with probability at most "
        "%(share)s (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw (alpha "
        "= %(alpha)s)."
    ),
    "population.mean": gettext_noop(
        "With these thresholds the expected loss '%(loss)s' against the label that a person gave or would "
        "have given of a new item from the same source is at most %(epsilon)s (epsilon), with probability "
        "at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
}
declare(SAYS)
