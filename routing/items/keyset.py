"""Finding the rows of a page: along the order, as long as the filters let enough through, and from what the
filters find, where that is little.

A page of fifty rows must not rest on the guesses of a database about how often conditions hold together: one
that is wrong reads all rows instead of some hundred. So rows are read along the index of the order in
stretches, and the filters are asked about each stretch alone. Where a stretch of thousands brings no page
together, whatever the filters find is rare: it is looked for in all items, without an order, and sorted.
If it is neither, the walk goes on until its time is over, and the page says how far it came.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Func, Q, QuerySet, TextField, Value
from django.db.models.sql.compiler import SQLCompiler

from annotation.common.query_timeout import TookTooLongError, limit_query_time
from annotation.models import Item
from routing.items.filters import conditions, filtered
from routing.items.sorts import Key, Sort, rows_along, rows_beyond, sort_of
from routing.visibility import ViewPermission

# Rows that are read at once: at first, until enough are read to tell how many it takes, and at most.
FIRST, TELLING, LATER = 300, 1_500, 8_000
# So many are rare, and sorted at once.
FEW = 20_000
# How long a page looks for its rows, and of that for rare ones among all items.
SECONDS = 2.0
FEW_SECONDS = 1.0
# Few rows are looked up one by one, and not found in what an index for searching says of all.
LOOKED_UP = {"enable_bitmapscan": "off"}
# Of rows that are named one by one, not all rows in the order of an index.
UNORDERED = {"enable_indexscan": "off", "enable_indexonlyscan": "off"}

Row = tuple[Any, ...]


@dataclass(frozen=True)
class FoundRows:
    """Rows in the order of the walk: the item's id, then its key in the order.

    `more` says whether there may be others behind the last one; `cut` that time was over before there were
    enough, and `reached` is the key of the last row that was looked at then, None where there was none.
    """

    rows: list[Row]
    more: bool
    cut: bool = False
    reached: Key | None = None


def find_rows(
    permission: ViewPermission,
    filters: Mapping[str, str],
    sort: str,
    *,
    size: int,
    place: Key | None = None,
    back: bool = False,
    seconds: float | None = None,
) -> FoundRows:
    """The first `size` rows that the filters let through, from the beginning or behind `place`; with `back`
    those before it, the nearest first. It looks for `seconds` at most, else for SECONDS.

    Raises as `conditions` and `sort_of` do.
    """
    kind, _down = sort_of(sort)
    chosen = list(conditions(permission, filters).values())
    rows, order = rows_along(permission, sort, filters, back=back)
    values = rows.order_by(*order).values_list(kind.item, *kind.key)
    last: list[Row]
    start = None if place is None else rows_beyond(sort, place, back=back)
    until = time.monotonic() + (SECONDS if seconds is None else seconds)
    found: list[Row] = []
    reached: Key | None = None
    walked, looked = 0, False
    while True:
        # Without a filter all that is read of most orders is shown.
        plain = kind.walked is None and not chosen
        length = size + 1 if plain else _length(len(found), walked, size + 1, looked)
        left = until - time.monotonic()
        behind = values if start is None else values.filter(start)
        try:
            if left <= 0:
                raise TookTooLongError
            if length is None:
                looked = True
                few = _few(permission, kind, filters, min(FEW_SECONDS, left))
                if few is None:
                    continue
                with limit_query_time(FEW_SECONDS, **UNORDERED):
                    listed = kind.rows(permission).filter(AnyOf(kind.item, few)).order_by(*order)
                    listed = listed if start is None else listed.filter(start)
                    _add(found, listed.values_list(kind.item, *kind.key)[: size + 1])
                break
            with limit_query_time(left, **LOOKED_UP):
                _add(found, _let_through(permission, kind, chosen, behind, length)[: size + 1])
                last = list(behind[length - 1 : length]) if len(found) <= size else []
        except TookTooLongError:
            return FoundRows(found[:size], True, cut=True, reached=reached)
        if not last:
            break
        walked += length
        reached = last[0][1:]
        start = rows_beyond(sort, reached, back=back)
    return FoundRows(found[:size], len(found) > size)


def _add(found: list[Row], rows: Iterable[Row]) -> None:
    """What comes in between two queries moves an item on, so that it would be met once more."""
    known = {item for item, *_key in found}
    found += [row for row in rows if row[0] not in known]


def _length(found: int, walked: int, wanted: int, looked: bool) -> int | None:
    """How many rows to read next, after so many that brought so much; None for the moment to look for rare
    ones, which comes once.
    """
    if not walked:
        return FIRST
    needed = 3 * (wanted - found) * walked // (2 * max(found, 1))
    if walked < TELLING:
        return max(FIRST, min(needed, TELLING))
    if needed > LATER and not looked:
        return None
    return max(FIRST, min(needed, LATER))


def _let_through(
    permission: ViewPermission, kind: Sort, chosen: list[Q], behind: QuerySet[Any, Any], length: int
) -> list[Row]:
    """Of the next `length` rows those that are listed in this order, and that the filters let through."""
    if kind.walked is None and not chosen:
        return list(behind[:length])
    # With their limit inside, the database knows how few they are, and looks the rest up for each.
    rows = kind.rows(permission).filter(pk__in=behind.values("pk")[:length])
    if kind.lists_all:
        rows = rows.filter(*chosen)
    elif chosen:
        rows = rows.filter(item__in=Item.objects.filter(*chosen).order_by())
    order = behind.query.order_by
    return list(rows.order_by(*order).values_list(kind.item, *kind.key))


def _few(
    permission: ViewPermission, kind: Sort, filters: Mapping[str, str], seconds: float
) -> list[int] | None:
    """Ids of all items that the filters find, or that the order lists where there is no filter; None where
    they are many or are not found in time.
    """
    rows: QuerySet[Any, Any] = filtered(permission, filters, rare=True).values_list("pk", flat=True)
    if not filters:
        rows = kind.rows(permission).values_list(kind.item, flat=True)
    try:
        with limit_query_time(seconds):
            ids = list(rows.order_by()[: FEW + 1])
    except TookTooLongError:
        return None
    return ids if len(ids) <= FEW else None


class AnyOf(Func):
    """Whether a number is one of many: as one value, where Django's `__in` would make one of each."""

    output_field = BooleanField()
    conditional = True

    def __init__(self, field: str, numbers: list[int]) -> None:
        super().__init__(F(field), Value(json.dumps(numbers), output_field=TextField()))

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="%(expressions)s))", arg_joiner=" IN (SELECT value FROM json_each("
        )

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        (field, numbers) = self.get_source_expressions()
        sql, params = compiler.compile(field)
        return f"{sql} = ANY(%s::bigint[])", (*params, f"{{{numbers.value[1:-1]}}}")
