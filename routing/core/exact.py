"""Exact decimals: an error budget that is off by one item is a wrong promise, so none uses floats."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor

from routing.core.messages import CoreError, declare, gettext_noop, say

Number = Decimal | int | str | float


class NumberError(CoreError):
    """What was given is no finite number."""


def to_decimal(value: Number) -> Decimal:
    """``value`` as a finite Decimal.

    A float is read through its shortest text form, so 0.05 means five hundredths and not the nearest binary
    fraction.

    Raises
    ------
    NumberError
        The value is no finite number.
    """
    if isinstance(value, bool):
        raise NumberError(say("number.none", value=repr(value)))
    text = repr(float(value)) if isinstance(value, float) else value
    try:
        number = Decimal(text)
    except (InvalidOperation, TypeError, ValueError) as error:
        raise NumberError(say("number.unreadable", value=repr(value))) from error
    if not number.is_finite():
        raise NumberError(say("number.infinite", value=repr(value)))
    return number


def to_fraction(value: Number) -> Fraction:
    """``value`` as an exact fraction, read as `to_decimal` reads it."""
    return Fraction(to_decimal(value))


def error_budget(epsilon: Number, pool_size: int) -> int:
    """E = floor(epsilon * N): how many items of a pool of ``pool_size`` may be wrong, computed exactly."""
    return floor(to_fraction(epsilon) * pool_size)


def plain(number: Decimal) -> str:
    """``number`` without an exponent and without trailing zeros, one text for one value: 5E-2 -> '0.05'."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"", "-0"} else text


def percent(number: Decimal) -> str:
    """A share as a percentage for sentences: 0.05 -> '5 %'."""
    return f"{plain(number * 100)} %"


SAYS = {
    "number.none": gettext_noop("%(value)s is not a number"),
    "number.unreadable": gettext_noop("%(value)s is not a number; write it like 0.05"),
    "number.infinite": gettext_noop("%(value)s is not a finite number"),
}
declare(SAYS)
