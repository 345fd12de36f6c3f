"""What a cost is, and how its prices are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from routing.core.messages import CoreError, Message, Term, declare, gettext_noop, say

TOKENS_IN, TOKENS_OUT, SECONDS = "tokens_in", "tokens_out", "seconds"
USAGE = {
    TOKENS_IN: gettext_noop("tokens read"),
    TOKENS_OUT: gettext_noop("tokens generated"),
    SECONDS: gettext_noop("seconds"),
}
"""What can be known about a call, two counts and a duration, with its words."""

MAGNITUDE = 12
"""A price has its first digit at most this many places before or after the point."""


class CostError(CoreError):
    """A cost that cannot be computed; ``where`` names the price or the usage at fault."""

    def __init__(self, said: Message, where: str) -> None:
        super().__init__(said)
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
        raise _refused(price, "cost.needed")
    if not value.is_finite() or value < 0:
        raise _refused(price, "cost.negative", value)
    if value and not -MAGNITUDE <= value.adjusted() <= MAGNITUDE:
        raise _refused(price, "cost.magnitude", value)
    if price.above_zero and value == 0:
        raise _refused(price, "cost.above_zero")
    return value


def _refused(price: Price, code: str, value: object = None) -> CostError:
    said = say(code, price=Term(price.title), value=str(value))
    return CostError(said, price.name)


def used(name: str, usage: Mapping[str, Decimal]) -> Decimal:
    """What the call used of ``name``; raises `CostError` where that is not known."""
    value = usage.get(name)
    words = Term(USAGE.get(name, name))
    if value is None:
        raise CostError(say("cost.usage_unknown", usage=words), name)
    if not value.is_finite() or value < 0:
        raise CostError(say("cost.usage_negative", usage=words, value=str(value)), name)
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
            said = say(
                "cost.price_unknown" if known else "cost.no_prices",
                cost=repr(cost.name),
                name=repr(str(name)[:40]),
                known=", ".join(known),
            )
            raise CostError(said, name)
        if value is None or value == "":
            continue
        if isinstance(value, bool | float):
            raise _refused(known[name], "cost.not_text")
        try:
            read[name] = Decimal(str(value).strip()) or Decimal(0)  # -0, too
        except InvalidOperation:
            raise _refused(known[name], "cost.no_number", repr(str(value)[:40])) from None
    for price in cost.prices:
        price_of(price, read)
    return read


SAYS = {
    "cost.needed": gettext_noop("the %(price)s is needed"),
    "cost.negative": gettext_noop("the %(price)s must be a number of at least 0, not %(value)s"),
    "cost.magnitude": gettext_noop("the %(price)s must be 0, or between 1e-12 and 1e12, not %(value)s"),
    "cost.above_zero": gettext_noop("the %(price)s must be above 0"),
    "cost.usage_unknown": gettext_noop("the number of %(usage)s is not known"),
    "cost.usage_negative": gettext_noop("the number of %(usage)s must be at least 0, not %(value)s"),
    "cost.price_unknown": gettext_noop("the cost function %(cost)s has no price %(name)s; it has %(known)s"),
    "cost.no_prices": gettext_noop("the cost function %(cost)s has no price %(name)s; it has none"),
    "cost.not_text": gettext_noop("the %(price)s must be written as text, such as '0.002'"),
    "cost.no_number": gettext_noop("the %(price)s must be a number such as 0.002, not %(value)s"),
}
declare(SAYS)
