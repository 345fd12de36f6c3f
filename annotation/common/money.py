"""How programs are told amounts of money: as text, exactly."""

from decimal import Decimal
from typing import Any, overload

from rest_framework import serializers


@overload
def in_full(amount: Decimal) -> str: ...
@overload
def in_full(amount: None) -> None: ...
def in_full(amount: Decimal | None) -> str | None:
    """The amount without an exponent, with the two places of most currencies, and with more where it has
    them: 8 -> "8.00", 0.0000120 -> "0.000012". A price per label has many.
    """
    if amount is None:
        return None
    whole, _, places = format(amount or Decimal(0), "f").partition(".")  # -0 is no amount
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"


class MoneyField(serializers.DecimalField):
    """Of an answer; what is taken in has a field of its own, with bounds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_digits=None, decimal_places=None, read_only=True, **options)

    def to_representation(self, value: Any) -> str:
        return in_full(Decimal(value))
