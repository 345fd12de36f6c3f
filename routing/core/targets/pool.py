"""`pool`: the share of the pool's labels that differ from people's, had nobody labelled the asked items."""

from __future__ import annotations

from typing import ClassVar

from routing.core.messages import gettext_noop
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
