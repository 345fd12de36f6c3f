"""The price list of a project: what models and machines cost, in one place.

Sources that name a line are charged by it. A run keeps the prices that it was started with.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import RestrictedError

from annotation.errors import ConflictError, InputError
from annotation.models import Project, User
from annotation.services import audit
from routing.core.costs import COSTS, Cost, CostError, read_prices
from routing.core.registry import UnknownNameError
from routing.models import ModelPrice, Source
from routing.services.opened import open_source
from routing.services.sources import USAGE_WORDS

MOST_CHARACTERS = 100


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
    name = name.strip()
    if not name or len(name) > MOST_CHARACTERS:
        raise InputError(f"A line needs a name of at most {MOST_CHARACTERS} characters.", where="name")
    function = _function(cost_function)
    stored = _read(function, prices)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        same_name = project.model_prices.filter(name=name)
        if (same_name.exclude(pk=price.pk) if price else same_name).exists():
            raise InputError("Another line of the price list has this name.", where="name")
        target = price or ModelPrice(project=project)
        sources = list(target.sources.select_for_update().order_by("position")) if price else []
        for source in sources:
            _refuse_unknown_usage(source, function)
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
    refusal = (
        f"{name} is the price of {', '.join(named_by) or 'a source'}. Give these sources another price first."
    )
    if named_by:
        raise ConflictError(refusal)
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
        raise ConflictError(refusal) from None


def _function(name: str) -> Cost:
    known = [entry for entry in COSTS.names() if entry != "flat"]
    try:
        function = COSTS.get(name)
    except UnknownNameError:
        function = None
    if function is None or function.name == "flat":
        also = " One price per label stands with the source itself." if function else ""
        raise InputError(
            f"A line counts by one of {', '.join(known)}, not by {name[:40]!r}.{also}", where="cost_function"
        )
    return function


def _read(function: Cost, prices: Mapping[str, Any]) -> dict[str, str]:
    try:
        read = read_prices(function, prices)
    except CostError as error:
        raise InputError(f"{str(error)[:1].upper()}{str(error)[1:]}.", where=error.where) from None
    return {key: f"{value:f}" for key, value in read.items()}


def _refuse_unknown_usage(source: Source, function: Cost) -> None:
    usage = open_source(source).usage
    if missing := [USAGE_WORDS[entry] for entry in function.needs if entry not in usage]:
        raise InputError(
            f"The answers of {source.name}, which is charged by this line, do not tell "
            f"{' and '.join(missing)}, which {function.title!r} needs.",
            where="cost_function",
        )
