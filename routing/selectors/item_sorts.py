"""Orders of the table of items. Pages go on from a key and never count rows that come before (no OFFSET).

Each order walks along an index and lists what has a key in it: by uncertainty the items with a score, by the
newest label or the time spent those with a label that may be seen.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item
from routing.models import PoolItem
from routing.selectors.item_filters import HiddenError
from routing.selectors.visibility import Sight

Key = tuple[Any, ...]
DEFAULT = "position"


@dataclass(frozen=True)
class Sort:
    """`rows` gives the rows to walk along; `item` names the item in them, `key` what they are in the order
    of, together unique; `types` are the types of its parts.
    """

    rows: Callable[[Sight], QuerySet[Any]]
    item: str
    key: tuple[str, ...]
    types: tuple[type, ...]

    @property
    def lists_all(self) -> bool:
        return self.item == "pk"


def _items(sight: Sight) -> QuerySet[Item]:
    return sight.project.items.all()


def _scores(sight: Sight) -> QuerySet[PoolItem]:
    if sight.run is None:
        raise HiddenError(_("Items cannot be put in the order of their uncertainty now."), where="sort")
    return PoolItem.objects.filter(run=sight.run, u__isnull=False)


def _newest_labels(sight: Sight) -> QuerySet[Any]:
    labels = sight.labels().filter(item__project=sight.project)
    newer = sight.labels().filter(item=OuterRef("item"), pk__gt=OuterRef("pk"))
    # Not as NOT EXISTS: PostgreSQL would join all labels. This is looked up row by row along the index.
    return labels.alias(newer=Subquery(newer.order_by().values("pk")[:1])).filter(newer__isnull=True)


def _times(sight: Sight) -> QuerySet[Any]:
    return _newest_labels(sight).filter(lead_time_ms__isnull=False)


SORTS: dict[str, Sort] = {
    "position": Sort(_items, "pk", ("position",), (int,)),
    "name": Sort(_items, "pk", ("external_id",), (str,)),
    "u": Sort(_scores, "item_id", ("u", "v", "pk"), (float, int, int)),
    "label": Sort(_newest_labels, "item_id", ("pk",), (int,)),
    "time": Sort(_times, "item_id", ("lead_time_ms", "pk"), (int, int)),
}
# With a minus sign: the other way round.
NAMES = tuple(f"{sign}{name}" for name in SORTS for sign in ("", "-"))


def sort_of(name: str) -> tuple[Sort, bool]:
    """The order of this name, and whether it goes down. Raises InputError for an unknown one."""
    if name not in NAMES:
        raise InputError(
            _("There is no such order; choose one of %(names)s.") % {"names": ", ".join(NAMES)}, where="sort"
        )
    return SORTS[name.removeprefix("-")], name.startswith("-")


def ordered(
    sight: Sight, items: QuerySet[Item], sort: str, *, filtered: bool
) -> tuple[QuerySet[Any], list[str]]:
    """The rows to walk along, narrowed down to `items`, and their order.

    `filtered` is False where `items` are all of the project's.
    """
    kind, down = sort_of(sort)
    rows: QuerySet[Any] = items if kind.lists_all else kind.rows(sight)
    if filtered and not kind.lists_all:
        rows = rows.filter(item__in=items)
    return rows, [f"-{name}" if down else name for name in kind.key]


def beyond(sort: str, cursor: str, *, back: bool) -> Q | Any | None:
    """The rows after a place, or before it; None where the text names no place."""
    kind, down = sort_of(sort)
    key = _read(kind, cursor)
    if key is None:
        return None
    on = down == back
    if len(key) == 1:
        return Q(**{f"{kind.key[0]}__{'gt' if on else 'lt'}": key[0]})
    lookup = TupleGreaterThan if on else TupleLessThan
    return lookup(Tuple(*(F(name) for name in kind.key)), key)


def cursor_of(key: Sequence[Any]) -> str:
    """A place in the table as it stands in an address."""
    return json.dumps(list(key), ensure_ascii=False, separators=(",", ":"))


def place_of(sight: Sight, sort: str, item_id: int) -> str:
    """The place of one item in this order; "" where it has none."""
    kind, _down = sort_of(sort)
    key = kind.rows(sight).filter(**{kind.item: item_id}).values_list(*kind.key).first()
    return cursor_of(key) if key else ""


def _read(kind: Sort, cursor: str) -> Key | None:
    try:
        key = json.loads(cursor) if len(cursor) < 2_000 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(key, list) or len(key) != len(kind.types):
        return None
    return tuple(key) if all(map(_fits, key, kind.types)) else None


def _fits(value: Any, type_: type) -> bool:
    if type_ is str:
        return (
            isinstance(value, str) and "\0" not in value and not any(0xD800 <= ord(c) < 0xE000 for c in value)
        )
    if isinstance(value, float):
        return type_ is float and isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
