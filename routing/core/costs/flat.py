"""One price per label, whatever the item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Flat:
    """``prices["per_label"]``; raises ValueError where it is missing or negative."""

    name: str = "flat"

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        try:
            price = prices["per_label"]
        except KeyError:
            raise ValueError("a flat cost needs the price per label ('per_label')") from None
        if not price.is_finite() or price < 0:
            raise ValueError(f"the price per label must be a number of at least 0, not {price}")
        return price
