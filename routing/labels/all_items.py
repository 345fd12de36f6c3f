"""Every item of the project in the order of import with the label that is delivered for it, in constant
memory.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, cast

from django.db.models import F, Q, TextField, Value
from django.db.models.functions import Cast

from annotation.common.ranges import of_items
from annotation.common.snapshot import in_snapshot
from annotation.models import Item
from annotation.projects.label_studio_config import config_of
from annotation.task_types import TASK_TYPES
from routing.labels.columns import DeliveryContext, columns_of
from routing.labels.kinds import Kinds
from routing.labels.page import ADDED, OF_SOME_RUNS, DeliveryInfo, Page, Row
from routing.models import Run

READ = 500
"""Items are read so many at a time: a cell may be large."""
PAGE = 5_000
PAGE_CHARACTERS = 8_000_000
"""A page ends with so many items, or with so much of what was imported."""


Conditions = Callable[[Run], Sequence[Q]]
"""Which items are wanted, asked of the run as it stands at the moment that is read."""


@contextmanager
def delivery_of(
    run: Run, *, texts: bool = False, kinds: bool = False, conditions: Conditions | None = None
) -> Iterator[tuple[Run, DeliveryInfo, Iterator[Page]]]:
    """The run, what is known before its rows, and all items of its project, as they stood at one moment; with
    `conditions` those that all of them let through, while a page may be empty then.

    `texts` and `kinds`: whether the pages are to have their texts, and `DeliveryInfo` the kinds of the
    columns, for which all items are read once more.
    """
    with in_snapshot(lambda: _read(run.pk, texts=texts, kinds=kinds, conditions=conditions)) as found:
        # First the run and what is known, all others are pages.
        yield cast(Run, next(found)), cast(DeliveryInfo, next(found)), cast(Iterator[Page], found)


def _read(
    run_id: int, *, texts: bool, kinds: bool, conditions: Conditions | None
) -> Iterator[Run | DeliveryInfo | Page]:
    run = Run.objects.select_related("project", "certificate").get(pk=run_id)
    yield run
    context = DeliveryContext.of(run)
    yield DeliveryInfo(
        columns=run.project.columns,
        task_type=run.project.task_type,
        choices=context.choices if TASK_TYPES[run.project.task_type].has_choices else {},
        replaced=context.replaced,
        sources=[run_source.source.name for run_source in context.run_sources],
        name=f"{run.project.slug}-run{run.number}",
        kinds=_kinds(run) if kinds else {},
        label_config=config_of(run.project),
        added=_added(run),
    )
    chosen = conditions(run) if conditions else ()
    erased = set(run.project.items.filter(erased_at__isnull=False).values_list("pk", flat=True))
    for items in _items(run, texts=texts):
        looked_at = len(items)
        if chosen and not (items := _let_through(run, items, chosen)):
            yield Page((), dict.fromkeys(ADDED, ()), looked_at=looked_at)
            continue
        ids, external_ids, data, typed, seen, _positions = zip(*items, strict=True)
        originals, values = _parsed(data, typed)
        columns = columns_of(context, ids, external_ids)
        gone = [pk in erased for pk in ids] if erased else []
        yield Page(originals, columns, values, seen if texts else (), ids, looked_at, gone)


def _added(run: Run) -> list[str]:
    """Our columns in a delivery of the run; not those that none of its rows could have something in."""
    return [name for name in ADDED if name not in OF_SOME_RUNS or getattr(run, OF_SOME_RUNS[name])]


def _let_through(run: Run, items: list["_Item"], chosen: Sequence[Q]) -> list["_Item"]:
    """Page by page, so that whatever the conditions are, no query looks through more than a page."""
    among = of_items("pk", [item[0] for item in items])
    found = set(run.project.items.filter(among).filter(*chosen).values_list("pk", flat=True))
    return [item for item in items if item[0] in found]


def _kinds(run: Run) -> dict[str, str]:
    """Where no cell of any item came as anything but text, nothing has to be looked at."""
    kinds = Kinds()
    if run.project.items.filter(typed__isnull=False).exists():
        for items in _items(run):
            _, _, data, typed, _, _ = zip(*items, strict=True)
            originals, values = _parsed(data, typed)
            kinds.add(Page(originals, {}, values).values)
    return kinds.of_columns()


def _parsed(
    data: Sequence[str], typed: Sequence[str | None]
) -> tuple[list[dict[str, Any]], list[dict[str, Any] | None]]:
    originals = json.loads(f"[{','.join(data)}]")
    values = json.loads(f"[{','.join(text or 'null' for text in typed)}]") if any(typed) else []
    return originals, values


_Item = tuple[int, str, str, str | None, str, int]
DATA, TYPED = itemgetter(2), itemgetter(3)


def _items(run: Run, *, texts: bool = False) -> Iterator[list[_Item]]:
    """Key, external id, data and typed values as JSON text, what people see if asked for, and the position;
    by stretches of it and not by an open cursor. Where a page ends depends on nothing but the items.
    """
    rows = run.project.items.order_by("position").values_list(
        "pk",
        "external_id",
        Cast("data", TextField()),
        Cast("typed", TextField()),
        F("text") if texts else Value(""),
        "position",
    )
    page: list[_Item] = []
    last, characters = -1, 0
    while read := list(rows.filter(position__gt=last)[:READ]):
        last = read[-1][5]
        page += read
        characters += sum(map(len, map(DATA, read))) + sum(map(len, filter(None, map(TYPED, read))))
        if len(page) >= PAGE or characters >= PAGE_CHARACTERS:
            yield page
            page, characters = [], 0
    if page:
        yield page


def rows_of(context: DeliveryContext, items: Sequence[Item]) -> Iterator[Row]:
    """What a delivery would now hold of each of these items; reads neither their texts nor their data."""
    columns = columns_of(context, [item.pk for item in items], [item.external_id for item in items])
    empty: list[dict[str, Any]] = [{} for _ in items]
    return Page(empty, columns).rows()
