"""`measured_elsewhere`: a loss that the team's own program measures; it comes with the labelled rows.

Nothing here can compute it, so that nobody may ask it for a pair of texts: what was measured stands in
`CalibrationRow.losses`, and `routing.core.calibration.losses_of_answers` reads it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from routing.core.losses.base import Loss, LossError, flag, known_parameters
from routing.core.messages import declare, gettext_noop, say

NAME = "measured_elsewhere"
LONGEST = 200
"""Characters that say what measures."""


@dataclass(frozen=True)
class MeasuredElsewhere:
    """In [0, 1], or 0 and 1 alone where it says so.

    ``measure`` says which program measures, in which version: it is fixed with the plan, before any label.
    """

    measure: str
    binary: bool = False
    name: str = NAME
    bound: float = 1.0
    quick: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        """Raises `LossError`, whatever the two are."""
        raise LossError(say("elsewhere.not_here", measure=self.measure))

    def allows(self, value: float) -> bool:
        """Whether this can have been measured."""
        return isfinite(value) and (value in (0, 1) if self.binary else 0 <= value <= 1)


@dataclass(frozen=True)
class MeasuredElsewhereKind:
    """`MeasuredElsewhere` with what measures it."""

    name: str = NAME
    title: str = gettext_noop("Measured by the team's own program")
    summary: str = gettext_noop(
        "For values that HyPAC cannot compare: once the calibration set is labelled, a program of yours gets "
        "each label with the models' answers, and gives the loss of each answer, from 0 to 1."
    )
    suits: tuple[str, ...] = ("long_text", "code", "boxes", "masks")
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "measure": gettext_noop(
                "which program measures, and its version: a line that the certificate repeats (needed)"
            ),
            "binary": gettext_noop("whether it gives 0 and 1 alone (default false)"),
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        measure = params.get("measure")
        if not isinstance(measure, str) or not measure.strip() or not measure.isprintable():
            raise LossError(say("elsewhere.measure", most=LONGEST))
        if len(measure) > LONGEST:
            raise LossError(say("elsewhere.measure", most=LONGEST))
        return MeasuredElsewhere(measure, flag(params, "binary", False))


SAYS = {
    "elsewhere.not_here": gettext_noop(
        "this loss is measured by the team's own program (%(measure)s), and cannot be computed here"
    ),
    "elsewhere.measure": gettext_noop(
        "the parameter 'measure' must say, in one line of at most %(most)s characters, which program "
        "measures the losses, in which version"
    ),
}
declare(SAYS)
