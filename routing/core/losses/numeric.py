"""`numeric`: a number is right within a tolerance, in exact decimals."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from routing.core.losses.base import Loss, LossError, amount, known_parameters, short
from routing.core.messages import declare, gettext_noop, say

NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
)
LONGEST = 1000
"""Characters of a number.  Longer ones, and exponents of more than three digits, are no answer anybody meant,
and exact arithmetic with them would not end."""
MINUS = str.maketrans({"\N{MINUS SIGN}": "-"})


@lru_cache(maxsize=4096)
def read_number(text: str) -> Fraction | None:
    """The number that ``text`` is, exactly; None where it is none.

    Decimal notation with an optional exponent; commas may group thousands ("1,234.5"), in groups of three
    only, so that a decimal comma is not read as a thousand.
    """
    text = unicodedata.normalize("NFKC", text).translate(MINUS).strip()
    if len(text) > LONGEST or not NUMBER.fullmatch(text):
        return None
    return Fraction(Decimal(text.replace(",", "")))


@dataclass(frozen=True)
class Numeric:
    """0 where |prediction - label| <= max(absolute, relative |label|), else 1.

    A prediction that is no number is wrong; a label of record that is none is an error.
    """

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    name: str = "numeric"
    bound: float = 1.0
    binary: bool = True
    quick: bool = True

    @property
    def transitive(self) -> bool:
        """Not with a tolerance: 0 and 0.8 are each within 0.5 of 0.4, and not of each other."""
        return not self.absolute and not self.relative

    def __call__(self, label: str, prediction: str) -> float:
        truth = read_number(label)
        if truth is None:
            raise LossError(say("numeric.no_number", label=short(label)))
        value = read_number(prediction)
        if value is None:
            return 1.0
        tolerance = max(Fraction(self.absolute), Fraction(self.relative) * abs(truth))
        return 0.0 if abs(value - truth) <= tolerance else 1.0


@dataclass(frozen=True)
class NumericKind:
    """`Numeric` with its two tolerances."""

    name: str = "numeric"
    title: str = gettext_noop("A number within a tolerance")
    summary: str = gettext_noop(
        "A number is right if it is close enough to the label, however it is written."
    )
    suits: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(
        default_factory=lambda: {
            "absolute": gettext_noop("largest difference that still counts as right (default 0)"),
            "relative": gettext_noop("the same as a share of the label: 0.01 is 1 % (default 0)"),
        }
    )

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return Numeric(amount(params, "absolute", "0"), amount(params, "relative", "0"))


SAYS = {
    "numeric.no_number": gettext_noop(
        "the label %(label)s is not a number; correct it, or choose the loss 'exact_match'"
    ),
}
declare(SAYS)
