"""Shares that are parameters: above 0 and at most 1, with three decimals."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from routing.core.exact import NumberError, to_decimal
from routing.core.losses.base import LossError
from routing.core.messages import declare, gettext_noop, say

STEPS = 1_000
"""With more of them areas times shares would not fit into 64 bits."""
SMALLEST = Decimal(1) / STEPS


def share(params: Mapping[str, Any], name: str, default: str) -> Fraction:
    """The parameter, exactly; raises `LossError` where it is no such share."""
    try:
        value = to_decimal(params.get(name, default))
    except NumberError as error:
        raise LossError(say("loss.parameter", name=repr(name), error=error.said)) from error
    # Before a fraction is made of it: one of 1e999999999 takes for ever.
    steps = value * STEPS if SMALLEST <= value <= 1 else Decimal("0.5")
    if steps % 1:
        raise LossError(say("loss.share", name=repr(name), value=str(params.get(name, default))))
    return Fraction(int(steps), STEPS)


SAYS = {
    "loss.share": gettext_noop(
        "the parameter %(name)s must be above 0 and at most 1, with at most three decimals, not %(value)s"
    ),
}
declare(SAYS)
