"""The table of items: one page of it, read by keys, without the texts and the imported columns.

Nothing that would spoil a blind label leaves this module: all of it goes through `ViewPermission`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.db.models.functions import Substr

from annotation.common.query_timeout import TookTooLongError, limit_query_time
from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.labelling.label_queries import label_in_words
from annotation.labelling.labels_of_record import record_values
from annotation.models import Item, Project
from annotation.permissions import Access
from routing.items.counts import Total, table_total
from routing.items.filters import conditions
from routing.items.keyset import find_rows
from routing.items.sorts import DEFAULT, cursor_of, key_of, place_of
from routing.labels.all_items import rows_of
from routing.labels.columns import PERSON, DeliveryContext
from routing.runs.covered_items import covered_items, covered_routes
from routing.runs.expert.report import source_names
from routing.visibility import ViewPermission, view_permission

MAX_SIZE = 200
EXCERPT = 300
NEIGHBOUR_SECONDS = 0.3
IN_THE_WAY_SECONDS = 0.5


@dataclass(frozen=True)
class ItemRow:
    """One line of the table. None where there is nothing, or nothing that may be seen.

    Attributes
    ----------
    label, label_name
        What a delivery would hold now, in its stored form and in words.
    colors
        Those of the choices in that label.
    given_by, annotator
        "person" or the name of the source that gave it; of a person also their name.
    reason
        Why a delivery would hold no label, where one could be made.
    uncertainty : float
        Score of the first source of the shown run, in [0, 1].
    routed_to
        Name of the source that the thresholds sent it to; "" for people.
    flags
        Number of open flags.
    labelled_at, seconds
        When a person gave the newest label, and how long they were at it.
    """

    id: int
    position: int
    external_id: str
    excerpt: str
    erased: bool
    image: Any
    label: Value | None = None
    label_name: str | None = None
    colors: tuple[str, ...] = ()
    given_by: str | None = None
    annotator: str | None = None
    reason: str | None = None
    uncertainty: float | None = None
    routed_to: str | None = None
    flags: int = 0
    labelled_at: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Page:
    """`next` and `previous` are places to go on from (`after`, `before`), None at an end.

    `blind` says that uncertainty, answers and routes are missing because they may not be seen now, or not by
    this person; `cut` that not all items were looked at in time: there may be more on this page.
    """

    rows: list[ItemRow]
    next: str | None
    previous: str | None
    total: Total
    blind: bool
    cut: bool = False


def item_rows(
    project: Project,
    access: Access,
    *,
    filters: Mapping[str, str] | None = None,
    sort: str = DEFAULT,
    after: str | None = None,
    before: str | None = None,
    size: int = 50,
    run: int | None = None,
) -> Page:
    """A page of items: those after a place, or those before one.

    `filters` are names and values of item_filters.FILTERS, `sort` one of item_sorts.NAMES, `run` the number
    of the run whose scores and routes are shown (else the newest).
    Labels of batches that are still blind count as not there, so that no filter tells who is being asked for
    what. Raises InputError for an unknown filter, value or order, and its HiddenError for one that may not be
    used now.
    """
    return table_page(
        view_permission(project, access, run=run),
        filters=filters,
        sort=sort,
        after=after,
        before=before,
        size=size,
    )


def table_page(
    permission: ViewPermission,
    *,
    filters: Mapping[str, str] | None = None,
    sort: str = DEFAULT,
    after: str | None = None,
    before: str | None = None,
    size: int = 50,
    count: bool = True,
) -> Page:
    """As `item_rows`, for whoever has the permission already. Without `count` the total is only the least
    that it must be, where there is more than one page; `table_total` tells it.
    """
    filters = filters or {}
    size = max(1, min(size, MAX_SIZE))
    place = key_of(sort, before)
    back = place is not None
    place = place or key_of(sort, after)
    found = find_rows(permission, filters, sort, size=size, place=place, back=back)
    rows = found.rows[::-1] if back else found.rows
    if back:
        more_back, more_on = found.more, True
    else:
        more_back, more_on = place is not None, found.more
    first, last = (rows[0][1:], rows[-1][1:]) if rows else (found.reached, found.reached)
    if found.cut:
        # The next page goes on where this one stopped looking, not behind the last one that it found.
        first, last = (found.reached or first, last) if back else (first, found.reached or last)
    return Page(
        rows=_rows(permission, [item for item, *_key in rows]),
        next=cursor_of(last) if last and more_on else None,
        previous=cursor_of(first) if first and more_back else None,
        total=(
            table_total(permission, filters=filters, sort=sort)
            if count and (more_back or more_on)
            else Total(len(rows), "more" if more_back or more_on else "exact")
        ),
        blind=not permission.output,
        cut=found.cut,
    )


def neighbours(
    permission: ViewPermission, item: Item, *, filters: Mapping[str, str], sort: str
) -> tuple[int | None, int | None]:
    """Ids of the items before and after this one in a filtered and sorted table; None at its ends, where they
    are not found in time, and both where the item has no place in that order.
    """
    place = place_of(permission, sort, item.pk)
    if place is None:
        return None, None
    before, after = (
        find_rows(permission, filters, sort, size=1, place=place, back=back, seconds=NEIGHBOUR_SECONDS).rows
        for back in (True, False)
    )
    return before[0][0] if before else None, after[0][0] if after else None


def blocking_filters(permission: ViewPermission, filters: Mapping[str, str]) -> list[str]:
    """Where no item passes all filters: those of which one alone may be taken away, and some do, as far as
    that is found in time.
    """
    known = conditions(permission, filters)
    found = []
    for left_out in known:
        rest = [condition for name, condition in known.items() if name != left_out]
        try:
            with limit_query_time(IN_THE_WAY_SECONDS):
                if permission.project.items.filter(*rest).order_by().exists():
                    found.append(left_out)
        except TookTooLongError:
            continue
    return found


def _rows(permission: ViewPermission, ids: list[int]) -> list[ItemRow]:
    # Of the text only its beginning, and nothing of the imported columns.
    items = {
        item.pk: item
        for item in Item.objects.filter(pk__in=ids)
        .select_related("image")
        .only("external_id", "position", "created_at", "erased_at", "project_id", "image__sha256")
        .annotate(excerpt=Substr("text", 1, EXCERPT))
    }
    flags = dict(
        permission.comments()
        .filter(item__in=ids, is_flag=True, resolved_at__isnull=True)
        .values_list("item")
        .annotate(count=Count("pk"))
        .order_by()
    )
    labels = permission.labels().filter(item__in=ids).order_by("pk")
    newest: dict[int, dict[str, Any]] = {
        label["item"]: dict(label) for label in labels.values("item", "created_at", "lead_time_ms")
    }
    found = []
    for row in _with_labels(permission, [items[pk] for pk in ids if pk in items]):
        label = newest.get(row.id, {})
        spent = label.get("lead_time_ms")
        found.append(
            replace(
                row,
                flags=flags.get(row.id, 0),
                labelled_at=label.get("created_at"),
                seconds=None if spent is None else spent / 1000,
            )
        )
    return found


def _with_labels(permission: ViewPermission, items: list[Any]) -> Iterable[ItemRow]:
    choices = list(permission.project.choices.values_list("key", "name", "color"))
    replaced = replaced_labels(permission.project)
    names = replaced.with_names({key: name for key, name, _color in choices})
    colors = {key: color for key, _name, color in choices}
    colors |= {key: colors[last] for key, last in replaced.merged.items() if last in colors}
    ids = [item.pk for item in items]
    run = permission.run
    titles = titles_of_sources(permission)
    routes: dict[int, int] = {}
    scores: dict[int, float | None] = {}
    if run is not None:
        routes = dict(covered_routes(run).filter(item__in=ids).values_list("item_id", "position"))
        scores = dict(covered_items(run).filter(item__in=ids).values_list("item_id", "u"))
    labelled = _delivered(permission, items) if permission.delivers else _by_people(permission, ids)
    for item in items:
        label = labelled.get(item.pk, {})
        value, shown = label.get("label"), label.pop("label_name", None)
        position = routes.get(item.pk)
        yield ItemRow(
            id=item.pk,
            position=item.position,
            external_id=item.external_id,
            excerpt=item.excerpt,
            erased=item.erased_at is not None,
            image=item.image,
            label_name=None if value is None else label_in_words(value if shown is None else shown, names),
            colors=_colors(value, colors),
            uncertainty=scores.get(item.pk),
            routed_to=None if position is None else titles.get(position, ""),
            **label,
        )


def _colors(value: Value | None, colors: Mapping[str, str]) -> tuple[str, ...]:
    keys = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(colors[key] for key in keys if key in colors)


def titles_of_sources(permission: ViewPermission) -> dict[int, str]:
    """Names by position of the sources of the shown run; of people alone none is needed."""
    models = [item.source.name for item in permission.run_sources]
    if permission.run is None or not permission.run.by_expert:
        return dict(enumerate(models, start=1))
    return {
        place: name for place, name in enumerate(source_names(models), start=1) if place != len(models) + 1
    }


def _delivered(permission: ViewPermission, items: list[Any]) -> dict[int, dict[str, Any]]:
    """What a delivery of the shown run would hold."""
    if permission.run is None:
        return {}
    return {
        item.pk: {
            "label": row.label,
            "label_name": row.label_name,
            "given_by": row.source,
            "annotator": row.annotator,
            "reason": row.reason,
        }
        for item, row in zip(items, rows_of(DeliveryContext.of(permission.run), items), strict=True)
    }


def _by_people(permission: ViewPermission, ids: list[int]) -> dict[int, dict[str, Any]]:
    unsettled = set(permission.in_open_calibration(ids))  # settled by a correction since
    return {
        item: {
            "label": record.value,
            "given_by": PERSON,
            "annotator": ", ".join(label.annotator.get_username() for label in record.labels),
        }
        for item, record in record_values(permission.project, ids, hidden=permission.hidden).items()
        if item not in unsettled
    }
