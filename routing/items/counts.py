"""How many items a table lists: counted up to a number, above it told from a sample."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from annotation.common.query_timeout import TookTooLongError, limit_query_time
from routing.items.filters import conditions
from routing.items.sorts import DEFAULT, Sort, sort_of
from routing.visibility import ViewPermission

# Above it nobody counts.
COUNTED = 10_000
# Places that are looked at where there are more, and how many of them the filters have to let through for an
# estimate: its standard error is then a fifth at most.
SAMPLE = 4_000
ENOUGH = 25
# A filter that finds little may have to look at all items for it.
COUNT_SECONDS = 3.0


@dataclass(frozen=True)
class Total:
    """A number of items: exact, or estimated ("about"), or the least that it is ("more"), or "unknown"."""

    count: int
    kind: str = "exact"


def table_total(permission: ViewPermission, *, filters: Mapping[str, str], sort: str = DEFAULT) -> Total:
    """How many items a table lists: exact up to COUNTED, above it about how many, from a random sample that
    is the same each time; "more" where the sample tells too little, and on PostgreSQL "unknown" where
    counting takes longer than COUNT_SECONDS.
    """
    kind, _down = sort_of(sort)
    chosen = list(conditions(permission, filters).values())
    last = permission.project.items.order_by("-position").values_list("position", flat=True).first()
    places = 0 if last is None else last + 1
    hits = 0
    try:
        with limit_query_time(COUNT_SECONDS):
            if places > COUNTED:
                # Positions count from 0; only items that were deleted are missing among them.
                drawn = random.Random(f"{permission.project.pk} {sorted(filters.items())}").sample(  # noqa: S311
                    range(places), min(SAMPLE, places)
                )
                hits = _listed(permission, kind, chosen, drawn).count()
                if hits >= ENOUGH and _of_all(hits, places) > 2 * COUNTED:
                    return Total(_of_all(hits, places), "about")
            count = _listed(permission, kind, chosen, None).values("pk")[: COUNTED + 1].count()
    except TookTooLongError:
        about = _of_all(hits, places)
        return Total(about, "about") if hits >= ENOUGH else Total(0, "unknown")
    if count <= COUNTED:
        return Total(count)
    return Total(COUNTED, "more")


def _of_all(hits: int, places: int) -> int:
    """With two digits, which is what a sample can say; all of it exactly."""
    if hits == min(SAMPLE, places):
        return places
    return int(float(f"{hits / min(SAMPLE, places) * places:.2g}"))


def _listed(
    permission: ViewPermission, kind: Sort, chosen: list[Q], drawn: list[int] | None
) -> QuerySet[Any]:
    """What the table lists, of all items or of those in these places."""
    items = permission.project.items.filter(*chosen).order_by()
    if drawn is not None:
        items = items.filter(position__in=drawn)
    if kind.lists_all:
        return items
    rows = kind.rows(permission).order_by()
    return rows.filter(item__in=items) if chosen or drawn is not None else rows
