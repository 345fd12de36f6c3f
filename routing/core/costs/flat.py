"""One price per label, whatever the item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from routing.core.costs.base import Price, price_of
from routing.core.messages import gettext_noop

PER_LABEL = Price(
    "per_label", gettext_noop("price per label"), gettext_noop("What every label costs, short or long.")
)


@dataclass(frozen=True)
class Flat:
    """``per_label``, whatever was used."""

    name: str = "flat"
    title: str = gettext_noop("One price per label")
    summary: str = gettext_noop("Every label costs the same.")
    prices: tuple[Price, ...] = (PER_LABEL,)
    needs: tuple[str, ...] = ()

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        return price_of(PER_LABEL, prices)
