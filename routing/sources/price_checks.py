"""Prices as people give them, of sources and of lines of a price list."""

from collections.abc import Collection, Mapping
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from routing.core.costs import COSTS, SECONDS, TOKENS_IN, TOKENS_OUT, Cost, CostError, read_prices
from routing.core.registry import UnknownNameError
from routing.core_language import refusal_in_words

USAGE_WORDS = {
    TOKENS_IN: gettext_lazy("how many tokens were read"),
    TOKENS_OUT: gettext_lazy("how many tokens were generated"),
    SECONDS: gettext_lazy("how long they took"),
}


def cost_function(name: str) -> Cost:
    """Raises InputError where there is none of this name."""
    try:
        return COSTS.get(name)
    except UnknownNameError:
        raise InputError(
            _("There is no cost function %(name)r; choose one of %(names)s.")
            % {"name": name[:40], "names": ", ".join(COSTS.names())},
            where="cost_function",
        ) from None


def prices_as_stored(function: Cost, prices: Mapping[str, Any]) -> dict[str, str]:
    """Raises InputError, its `where` naming the price that cannot be used."""
    try:
        read = read_prices(function, prices)
    except CostError as error:
        raise InputError(refusal_in_words(error), where=error.where) from None
    return {key: f"{value:f}" for key, value in read.items()}


def refuse_unknown_usage(function: Cost, usage: Collection[str], whose: str) -> None:
    """Raise InputError where `usage`, what the answers of the source `whose` tell, lacks what the prices
    would be multiplied with.
    """
    if missing := [str(USAGE_WORDS[entry]) for entry in function.needs if entry not in usage]:
        raise InputError(
            _(
                "The answers of %(whose)s do not tell %(names)s, which %(function)r needs. Name the "
                "column that does, if the data has one, or choose another way of counting."
            )
            % {"whose": whose, "names": f" {_('and')} ".join(missing), "function": function.title},
            where="cost_function",
        )
