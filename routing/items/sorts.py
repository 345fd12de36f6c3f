"""Orders of the table of items. Pages go on from a key and never count rows that come before (no OFFSET).

Each order walks along an index and lists what has a key in it: by uncertainty the items with a score, by the
newest label or the time spent those with a label that may be seen. `item_walk` does the walking.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item, Label
from routing.core.every_score.chain import FIRST_SCORE
from routing.items.filters import PERSON, HiddenError, score_in
from routing.models import PoolItem
from routing.runs.covered_items import covered_items
from routing.visibility import ViewPermission

Key = tuple[Any, ...]
DEFAULT = "position"


@dataclass(frozen=True)
class Sort:
    """`rows` gives the rows that are listed; `item` names the item in them, `key` what they are in the order
    of, together unique; `types` are the types of its parts.

    `walked` gives the rows that are read along the index, where those that are listed are only some of them;
    the last part of the key is theirs then.
    """

    rows: Callable[[ViewPermission], QuerySet[Any]]
    item: str
    key: tuple[str, ...]
    types: tuple[type, ...]
    walked: Callable[[], QuerySet[Any]] | None = None

    @property
    def lists_all(self) -> bool:
        return self.item == "pk"


def _items(permission: ViewPermission) -> QuerySet[Item]:
    return permission.project.items.all()


def _scores(permission: ViewPermission) -> QuerySet[PoolItem]:
    if permission.run is None:
        raise HiddenError(_("Items cannot be put in the order of their uncertainty now."), where="sort")
    return covered_items(permission.run).filter(u__isnull=False)


def _newest_labels(permission: ViewPermission) -> QuerySet[Any]:
    labels = permission.labels().filter(item__project=permission.project)
    newer = permission.labels().filter(item=OuterRef("item"), pk__gt=OuterRef("pk"))
    # Not as NOT EXISTS: PostgreSQL would join all labels. This is looked up row by row along the index.
    return labels.alias(newer=Subquery(newer.order_by().values("pk")[:1])).filter(newer__isnull=True)


def _all_labels() -> QuerySet[Any]:
    return Label.objects.all()


def _times(permission: ViewPermission) -> QuerySet[Any]:
    return _newest_labels(permission).filter(lead_time_ms__isnull=False)


def _all_times() -> QuerySet[Any]:
    return Label.objects.filter(lead_time_ms__isnull=False)


SORTS: dict[str, Sort] = {
    "position": Sort(_items, "pk", ("position",), (int,)),
    "name": Sort(_items, "pk", ("external_id",), (str,)),
    "u": Sort(_scores, "item_id", ("u", "v", "pk"), (float, int, int)),
    "label": Sort(_newest_labels, "item_id", ("pk",), (int,), _all_labels),
    "time": Sort(_times, "item_id", ("lead_time_ms", "pk"), (int, int), _all_times),
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


def rows_along(
    permission: ViewPermission, sort: str, filters: Mapping[str, str], *, back: bool = False
) -> tuple[QuerySet[Any], list[str]]:
    """The rows to walk along, and their order; with `back` the other way round."""
    kind, down = sort_of(sort)
    rows = kind.rows(permission) if kind.walked is None else kind.walked()
    if "u" in kind.key:
        rows = rows.filter(*_bounds(permission, filters))
    return rows, [f"-{name}" if down != back else name for name in kind.key]


def _bounds(permission: ViewPermission, filters: Mapping[str, str]) -> Iterator[Q]:
    """What filters say of the uncertainty, so that a walk along it begins where there is something.

    The thresholds send items with greater keys further: what a source answers or what was sent to it lies
    below its own threshold, and what was sent past another one above that.
    """
    if "u_from" in filters:
        yield Q(u__gte=score_in(filters["u_from"], "u_from"))
    if "u_to" in filters:
        yield Q(u__lte=score_in(filters["u_to"], "u_to"))
    thresholds = []
    if permission.run and permission.delivers and permission.run.certificate.shape == FIRST_SCORE:
        thresholds = permission.run.certificate.thresholds
    sent, by = filters.get("sent", ""), filters.get("by", "")
    passed_on = 0.0
    for position, threshold in enumerate(thresholds, 1):
        u = 0.0 if threshold is None else float(threshold["u"])
        # A source may also answer what one before it was sent and could not.
        passed_on = max(passed_on, u)
        if by == str(position):
            yield Q(u__lte=passed_on)
        if sent == str(position):
            yield Q(u__lte=u)
        elif sent == PERSON or (sent.isdigit() and int(sent) > position):
            yield Q(u__gte=u)


def rows_beyond(sort: str, key: Key, *, back: bool) -> Q | Any:
    """The rows after a place, or before it."""
    kind, down = sort_of(sort)
    on = down == back
    if len(key) == 1:
        return Q(**{f"{kind.key[0]}__{'gt' if on else 'lt'}": key[0]})
    lookup = TupleGreaterThan if on else TupleLessThan
    return lookup(Tuple(*(F(name) for name in kind.key)), key)


def key_of(sort: str, cursor: str | None) -> Key | None:
    """The place that a text from an address names; None where it names none."""
    kind, _down = sort_of(sort)
    try:
        key = json.loads(cursor) if cursor and len(cursor) < 2_000 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(key, list) or len(key) != len(kind.types):
        return None
    return tuple(key) if all(map(_fits, key, kind.types)) else None


def cursor_of(key: Sequence[Any]) -> str:
    """A place in the table as it stands in an address."""
    return json.dumps(list(key), ensure_ascii=False, separators=(",", ":"))


def place_of(permission: ViewPermission, sort: str, item_id: int) -> Key | None:
    """The place of one item in this order; None where it has none."""
    kind, _down = sort_of(sort)
    key: Key | None = kind.rows(permission).filter(**{kind.item: item_id}).values_list(*kind.key).first()
    return key


def _fits(value: Any, type_: type) -> bool:
    if type_ is str:
        return (
            isinstance(value, str) and "\0" not in value and not any(0xD800 <= ord(c) < 0xE000 for c in value)
        )
    if isinstance(value, float):
        return type_ is float and isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
