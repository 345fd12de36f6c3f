"""The price list of a project: what models and machines cost, in one place.

Sources that name a line are charged by it. A run keeps the prices that it was started with.
"""

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.db.models import RestrictedError
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common import audit, limits
from annotation.common.locks import locked_project
from annotation.common.one_line import checked_line
from annotation.errors import ConflictError, InputError
from annotation.models import Project, User
from routing.core.costs import COSTS, SECONDS, TOKENS_IN, TOKENS_OUT, Cost, CostError, read_prices
from routing.core.registry import UnknownNameError
from routing.core_language import refusal_in_words
from routing.models import ModelPrice, Source
from routing.sources.backend_for import backend_for

MOST_CHARACTERS = 100
USAGE_WORDS = {
    TOKENS_IN: gettext_lazy("how many tokens were read"),
    TOKENS_OUT: gettext_lazy("how many tokens were generated"),
    SECONDS: gettext_lazy("how long they took"),
}


def save_price(
    *,
    project: Project,
    user: User | None,
    name: str,
    cost_function: str,
    prices: Mapping[str, Any],
    price: ModelPrice | None = None,
) -> ModelPrice:
    """Add a line, or change `price` and with it the sources that name it. Prices are given as text.

    What a label costs on average, which plans reckon with, stays as each source says it. Raises InputError
    where a field cannot be used (`where` names it: a field, or a price), also where a source that names the
    line does not tell what the new way of counting needs.
    """
    name = checked_line(name, where="name")
    if not name or len(name) > MOST_CHARACTERS:
        raise InputError(
            _("A line needs a name of at most %(most_characters)s characters.")
            % {"most_characters": MOST_CHARACTERS},
            where="name",
        )
    function = _function(cost_function)
    stored = prices_as_stored(function, prices)
    with transaction.atomic():
        locked_project(project.pk)
        same_name = project.model_prices.filter(name=name)
        if (same_name.exclude(pk=price.pk) if price else same_name).exists():
            raise InputError(_("Another line of the price list has this name."), where="name")
        if price is None:
            limits.refuse_more(
                ModelPrice.objects.filter(project=project),
                limits.PRICES,
                _("A price list has at most %(most)s lines. Delete one first."),
                code="too_many_prices",
            )
        target = price or ModelPrice(project=project)
        sources = list(target.sources.select_for_update(no_key=True).order_by("position")) if price else []
        for source in sources:
            whose = _("%(source)s, which is charged by this line,") % {"source": source.name}
            refuse_unknown_usage(function, backend_for(source).usage, whose)
        target.name, target.cost_function, target.prices = name, function.name, stored
        target.save()
        Source.objects.filter(price=target).update(cost_function=function.name, prices=stored)
        audit.record(
            project=project,
            actor=user,
            action="price.changed" if price else "price.added",
            target=f"price:{target.pk}",
            data={
                "name": name,
                "cost_function": function.name,
                "prices": stored,
                "sources": [source.name for source in sources],
            },
        )
    return target


def delete_price(*, price: ModelPrice, user: User | None) -> None:
    """Remove a line. Raises ConflictError where a source names it."""
    pk, name, project = price.pk, price.name, price.project
    named_by = list(price.sources.order_by("position").values_list("name", flat=True))
    refusal = _("%(name)s is the price of %(names)s. Give these sources another price first.") % {
        "name": name,
        "names": ", ".join(named_by) or _("a source"),
    }
    if named_by:
        raise ConflictError(refusal, code="price_in_use")
    try:
        with transaction.atomic():
            price.delete()
            audit.record(
                project=project,
                actor=user,
                action="price.deleted",
                target=f"price:{pk}",
                data={"name": name},
            )
    except RestrictedError:  # a source has been given it just now
        raise ConflictError(refusal, code="price_in_use") from None


def _function(name: str) -> Cost:
    function = cost_function_named(name)
    if function.name == "flat":
        known = [entry for entry in COSTS.names() if entry != "flat"]
        raise InputError(
            _(
                "A line counts by one of %(names)s, not by 'flat'. One price per label stands with "
                "the source itself."
            )
            % {"names": ", ".join(known)},
            where="cost_function",
        )
    return function


def cost_function_named(name: str) -> Cost:
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
