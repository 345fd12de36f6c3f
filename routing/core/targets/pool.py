"""`pool`: the share of the pool's labels that differ from people's, had nobody labelled the asked items."""

from __future__ import annotations

from typing import ClassVar

from routing.core.messages import declare, gettext_noop
from routing.core.targets.base import Target


class Pool(Target):
    """T(theta) / N."""

    name: ClassVar[str] = "pool"
    title: ClassVar[str] = gettext_noop("The pool, without the calibration labels")
    summary: ClassVar[str] = gettext_noop(
        "The share of labels that differ from what a person would give, as if nobody had labelled the "
        "calibration set: for comparing thresholds, or where those labels are to be left out."
    )
    finite: ClassVar[bool] = True


SAYS = {
    "pool.differ": gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of "
        "the labels of the pool differ from the label that a person gave or would have given (epsilon = "
        "%(epsilon)s), with probability at least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "pool.loss": gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, at most %(share)s of "
        "the labels of the pool differ, by the loss '%(loss)s', from the label that a person gave or would "
        "have given (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw "
        "(alpha = %(alpha)s)."
    ),
    "pool.mean": gettext_noop(
        "Even if the labels that people gave to the calibration set were left out, the mean loss "
        "'%(loss)s' against the label that a person gave or would have given of the labels of the pool is "
        "at most %(epsilon)s (epsilon), with probability at least %(odds)s over the random draw (alpha = "
        "%(alpha)s)."
    ),
}
declare(SAYS)
