"""What a cost is, and how its prices are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

TOKENS_IN, TOKENS_OUT, SECONDS = "tokens_in", "tokens_out", "seconds"
USAGE = (TOKENS_IN, TOKENS_OUT, SECONDS)
"""What can be known about a call: tokens read, tokens generated (a count each), duration in seconds."""

MAGNITUDE = 12
"""A price has its first digit at most this many places before or after the point."""


class CostError(ValueError):
    """A cost that cannot be computed; ``where`` names the price or the usage at fault."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


@dataclass(frozen=True)
class Price:
    """A price that a cost function needs: its name, a few words, one sentence, and what holds if it is not
    given (None: it must be).
    """

    name: str
    title: str
    summary: str
    default: Decimal | None = None
    above_zero: bool = False


class Cost(Protocol):
    """Cost of one label, in the currency of the project, from the prices of its source and what the call
    used.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """A few words for a list of choices."""

    @property
    def summary(self) -> str:
        """One plain sentence for somebody who has to choose."""

    @property
    def prices(self) -> tuple[Price, ...]: ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The entries of `USAGE` without which it cannot be computed."""

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        """Raises `CostError` where a price or a usage is missing, negative or no number."""


def price_of(price: Price, prices: Mapping[str, Decimal]) -> Decimal:
    """The price among ``prices``, or its default; raises `CostError` where there is none that can be used."""
    value = prices.get(price.name, price.default)
    if value is None:
        raise CostError(f"the {price.title} is needed", price.name)
    if not value.is_finite() or value < 0:
        raise CostError(f"the {price.title} must be a number of at least 0, not {value}", price.name)
    if value and not -MAGNITUDE <= value.adjusted() <= MAGNITUDE:
        raise CostError(f"the {price.title} must be 0, or between 1e-12 and 1e12, not {value}", price.name)
    if price.above_zero and value == 0:
        raise CostError(f"the {price.title} must be above 0", price.name)
    return value


def used(name: str, usage: Mapping[str, Decimal]) -> Decimal:
    """What the call used of ``name``; raises `CostError` where that is not known."""
    value = usage.get(name)
    words = {TOKENS_IN: "tokens read", TOKENS_OUT: "tokens generated", SECONDS: "seconds"}.get(name, name)
    if value is None:
        raise CostError(f"the number of {words} is not known", name)
    if not value.is_finite() or value < 0:
        raise CostError(f"the number of {words} must be at least 0, not {value}", name)
    return value


def read_prices(cost: Cost, stored: Mapping[str, Any]) -> dict[str, Decimal]:
    """Prices as text or whole numbers -> decimals, without those that are empty.

    Floats are refused: 0.1 is not a tenth. Raises `CostError`, whose ``where`` names the price, also for one
    that the cost function does not know, that is missing, or that is negative.
    """
    known = {price.name: price for price in cost.prices}
    read = {}
    for name, value in stored.items():
        if name not in known:
            knows = f"it has {', '.join(known)}" if known else "it has none"
            raise CostError(f"the cost function {cost.name!r} has no price {str(name)[:40]!r}; {knows}", name)
        if value is None or value == "":
            continue
        if isinstance(value, bool | float):
            raise CostError(f"the {known[name].title} must be written as text, such as '0.002'", name)
        try:
            read[name] = Decimal(str(value).strip())
        except InvalidOperation:
            raise CostError(
                f"the {known[name].title} must be a number such as 0.002, not {str(value)[:40]!r}", name
            ) from None
    for price in cost.prices:
        price_of(price, read)
    return read
