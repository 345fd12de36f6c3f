"""The paper's API-based cost: one price for tokens read, another for tokens generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from routing.core.costs.base import TOKENS_IN, TOKENS_OUT, Price, price_of, used
from routing.core.messages import gettext_noop

PRICE_IN = Price(
    "input", gettext_noop("price of the input tokens"), gettext_noop("For as many tokens as stated below.")
)
PRICE_OUT = Price(
    "output", gettext_noop("price of the output tokens"), gettext_noop("For as many tokens as stated below.")
)
PER = Price(
    "per_tokens",
    gettext_noop("number of tokens that the prices are for"),
    gettext_noop("1000000 for prices per million tokens, 1000 for prices per thousand."),
    default=Decimal(1_000_000),
    above_zero=True,
)


@dataclass(frozen=True)
class ApiPrice:
    """(``input`` * n_in + ``output`` * n_out) / ``per_tokens`` (the paper, experiments, cost functions)."""

    name: str = "api_price"
    title: str = gettext_noop("Price list of an API")
    summary: str = gettext_noop(
        "Tokens that are read and tokens that are generated each have a price, as API providers charge."
    )
    prices: tuple[Price, ...] = (PRICE_IN, PRICE_OUT, PER)
    needs: tuple[str, ...] = (TOKENS_IN, TOKENS_OUT)

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        read = price_of(PRICE_IN, prices) * used(TOKENS_IN, usage)
        generated = price_of(PRICE_OUT, prices) * used(TOKENS_OUT, usage)
        return (read + generated) / price_of(PER, prices)
