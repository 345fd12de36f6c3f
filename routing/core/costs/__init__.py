"""What one label of a source costs.  A new way to count is one file and one line."""

from __future__ import annotations

from routing.core.costs.api_price import ApiPrice
from routing.core.costs.base import SECONDS, TOKENS_IN, TOKENS_OUT, Cost, CostError, Price, read_prices
from routing.core.costs.flat import Flat
from routing.core.costs.time import Time
from routing.core.costs.tokens import PEOPLE_TOKENS, Tokens
from routing.core.registry import Registry

COSTS: Registry[Cost] = Registry("cost", Flat(), Tokens(), ApiPrice(), Time())

__all__ = [
    "COSTS",
    "PEOPLE_TOKENS",
    "SECONDS",
    "TOKENS_IN",
    "TOKENS_OUT",
    "Cost",
    "CostError",
    "Price",
    "read_prices",
]
