"""Every item of the project in the order of import with the label that is delivered for it, in constant
memory.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from django.db.models import TextField
from django.db.models.functions import Cast

from annotation.models import Item
from routing.delivery.base import Page, Row
from routing.delivery.facts import PERSON as PERSON
from routing.delivery.facts import columns_of
from routing.delivery.frame import Frame as Frame
from routing.delivery.snapshot import in_snapshot
from routing.models import Run

READ = 500
"""Items are read so many at a time: a cell may be large."""
PAGE = 5_000
PAGE_CHARACTERS = 8_000_000
"""A page ends with so many items, or with so much of what was imported."""


@contextmanager
def delivered_pages(run: Run) -> Iterator[tuple[Run, Iterator[Page]]]:
    """The run and all items of its project, as they stood at one moment."""
    with in_snapshot(lambda: _read(run.pk)) as found:
        # The first is the run, all others are pages.
        yield cast(Run, next(found)), cast(Iterator[Page], found)


def delivered_rows(run: Run) -> Iterator[tuple[Mapping[str, str], Row]]:
    """Original columns and delivered label, item by item."""
    with delivered_pages(run) as (_, pages):
        for page in pages:
            yield from zip(page.originals, page.rows(), strict=True)


def _read(run_id: int) -> Iterator[Run | Page]:
    run = Run.objects.select_related("project", "certificate").get(pk=run_id)
    yield run
    frame = Frame.of(run)
    for items in _items(run):
        ids, external_ids, data = zip(*items, strict=True)
        originals = json.loads(f"[{','.join(data)}]")
        yield Page(originals, columns_of(frame, ids, external_ids))


def _items(run: Run) -> Iterator[list[tuple[int, str, str]]]:
    """Key, external id and data as JSON text, by stretches of the position and not by an open cursor. Where
    a page ends depends on nothing but the items.
    """
    rows = run.project.items.order_by("position").values_list(
        "pk", "external_id", Cast("data", TextField()), "position"
    )
    page: list[tuple[int, str, str]] = []
    last, characters = -1, 0
    while read := list(rows.filter(position__gt=last)[:READ]):
        last = read[-1][3]
        page += [row[:3] for row in read]
        characters += sum(len(row[2]) for row in read)
        if len(page) >= PAGE or characters >= PAGE_CHARACTERS:
            yield page
            page, characters = [], 0
    if page:
        yield page


def rows_of(frame: Frame, items: Sequence[Item]) -> Iterator[Row]:
    """What a delivery would now hold of each of these items; reads neither their texts nor their data."""
    columns = columns_of(frame, [item.pk for item in items], [item.external_id for item in items])
    empty: list[dict[str, Any]] = [{} for _ in items]
    return Page(empty, columns).rows()
