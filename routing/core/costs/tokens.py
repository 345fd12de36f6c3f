"""The paper's token-based cost: the number of tokens that the model generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from routing.core.costs.base import TOKENS_OUT, Price, price_of, used
from routing.core.messages import gettext_noop

PEOPLE_TOKENS = 32_768
"""What a label by a person costs in the paper: the largest number of new tokens that is allowed."""
PER_TOKEN = Price(
    "per_token",
    gettext_noop("price of a token"),
    gettext_noop("With 1, costs are counted in tokens."),
    default=Decimal(1),
)


@dataclass(frozen=True)
class Tokens:
    """``per_token`` * n_out; with a price of 1 the unit of all costs is the generated token, and a person
    costs `PEOPLE_TOKENS` (the paper, experiments, cost functions).
    """

    name: str = "tokens"
    title: str = gettext_noop("Generated tokens")
    summary: str = gettext_noop("Each token that the model generates counts; what it reads is free.")
    prices: tuple[Price, ...] = (PER_TOKEN,)
    needs: tuple[str, ...] = (TOKENS_OUT,)

    def __call__(self, *, prices: Mapping[str, Decimal], usage: Mapping[str, Decimal]) -> Decimal:
        return price_of(PER_TOKEN, prices) * used(TOKENS_OUT, usage)
