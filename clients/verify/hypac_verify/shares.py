"""Shares that are parameters of a loss."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

STEPS = 1_000


def share(given: object) -> Fraction | None:
    """A parameter above 0 and at most 1 with three decimals, exactly; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, str | int | float) or len(str(given)) > 20:
        return None
    try:
        value = Decimal(str(given))
        # Before a fraction is made of it: one of 1e999999999 takes for ever.
        steps = value * STEPS if Decimal(1) / STEPS <= value <= 1 else Decimal("0.5")
        return None if steps % 1 else Fraction(int(steps), STEPS)
    except (ArithmeticError, ValueError):
        return None
