"""One price per label, whatever the item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from routing.core.costs.base import Price, price_of

PER_LABEL = Price("per_label", "price per label", "What every label costs, short or long.")


@dataclass(frozen=True)
class Flat:
    """``per_label``, whatever was used."""

    name: str = "flat"
    title: str = "One price per label"
    summary: str = "Every label costs the same."
    prices: tuple[Price, ...] = (PER_LABEL,)
    needs: tuple[str, ...] = ()

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        return price_of(PER_LABEL, prices)
