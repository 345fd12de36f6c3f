"""Prices as people give them, of sources and of lines of a price list."""

from collections.abc import Collection, Mapping
from typing import Any

from annotation.errors import InputError
from routing.core.costs import COSTS, SECONDS, TOKENS_IN, TOKENS_OUT, Cost, CostError, read_prices
from routing.core.registry import UnknownNameError

USAGE_WORDS = {
    TOKENS_IN: "how many tokens were read",
    TOKENS_OUT: "how many tokens were generated",
    SECONDS: "how long they took",
}


def cost_function(name: str) -> Cost:
    """Raises InputError where there is none of this name."""
    try:
        return COSTS.get(name)
    except UnknownNameError:
        raise InputError(
            f"There is no cost function {name[:40]!r}; choose one of {', '.join(COSTS.names())}.",
            where="cost_function",
        ) from None


def prices_as_stored(function: Cost, prices: Mapping[str, Any]) -> dict[str, str]:
    """Raises InputError, its `where` naming the price that cannot be used."""
    try:
        read = read_prices(function, prices)
    except CostError as error:
        raise InputError(f"{str(error)[:1].upper()}{str(error)[1:]}.", where=error.where) from None
    return {key: f"{value:f}" for key, value in read.items()}


def refuse_unknown_usage(function: Cost, usage: Collection[str], whose: str) -> None:
    """Raise InputError where `usage`, what the answers of the source `whose` tell, lacks what the prices
    would be multiplied with.
    """
    if missing := [USAGE_WORDS[entry] for entry in function.needs if entry not in usage]:
        raise InputError(
            f"The answers of {whose} do not tell {' and '.join(missing)}, which {function.title!r} needs. "
            "Name the column that does, if the data has one, or choose another way of counting.",
            where="cost_function",
        )
