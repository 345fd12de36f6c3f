"""Values in a project file that no export writes: whatever is let in, no page ends in an error."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import models
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from annotation.models import Project, User
from hypac_site.portable.archive import opened
from hypac_site.portable.checking import Table, check, checked_row
from hypac_site.portable.shapes import SHAPES
from hypac_site.portable.tables import Model, fields_of, is_person, name_of, refers_to, rows_of, travelling
from hypac_site.portable.values import Wrong, row_in
from tests.annotation.projects.portable import Lines, forged, json_columns, lines_of, table_of
from tests.annotation.projects.test_portable_hostile import _made, good  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]

NESTED: Any = None
for _ in range(30):
    NESTED = [NESTED]
OF_JSON = (None, [], {}, "x", -1, 2**70, [{}], [[1]], {"x": [1]}, [None], {"x": None}, NESTED)
OF_TEXT = ("", "%(name)s {x} <b>", "\u202e../..")
OF_NUMBERS = (0, 2**31 - 1, 2**63 - 1)
# What these rows lead to is looked at by the names in addresses.
ROWS = {
    "item_id": "annotation.item",
    "job_id": "annotation.job",
    "file_id": "annotation.storedfile",
    "view_id": "routing.savedview",
    "held_id": "annotation.heldoutitem",
    "comment_id": "annotation.comment",
    "source_id": "routing.source",
    "price_id": "routing.modelprice",
    "delivery_id": "routing.delivery",
    "label_id": "annotation.label",
    "work_item_id": "annotation.workitem",
}


def test_every_json_column_has_a_shape() -> None:
    assert set(SHAPES) == json_columns()


def mutations(lines: Lines) -> Iterator[tuple[Model, str, Any]]:
    """Table, column and value, of every table that has a row."""
    for model in travelling():
        if not lines[table_of(model)]:
            continue
        for field in fields_of(model):
            if field.primary_key or is_person(field) or refers_to(field) is not None:
                continue
            values: tuple[Any, ...] = ()
            if isinstance(field, models.JSONField):
                values = (*OF_JSON, *inside(lines[table_of(model)][0][field.name]))
            elif isinstance(field, models.CharField | models.TextField):
                values = OF_TEXT
            elif isinstance(field, models.IntegerField):
                values = OF_NUMBERS
            for value in values:
                yield model, field.name, value


def inside(value: Any) -> Iterator[Any]:
    """The same with another value in one place."""
    if isinstance(value, dict):
        for name in value:
            for other in ([], {}, "x", 2**70, None):
                yield value | {name: other}
            yield {key: inner for key, inner in value.items() if key != name}
    elif isinstance(value, list) and value:
        yield from ([[] if place == 0 else one for place, one in enumerate(value)], [*value, {}])


def changed(good: Path, target: Path, mutated: list[tuple[Model, str, Any]]) -> Path:  # noqa: F811
    def change(all_: Lines) -> None:
        for model, column, value in mutated:
            all_[table_of(model)][0][column] = value

    return forged(good, target, change)


def let_in(good: Path) -> list[tuple[Model, str, Any]]:  # noqa: F811
    """Those that are not refused as their row is read."""
    lines, found = lines_of(good), []
    with opened(good) as archive:
        checked = check(archive)
    people = {person.name for person in checked.people}
    tables = {model: Table(model, people) for model in travelling()}
    for model, column, value in mutations(lines):
        row = lines[table_of(model)][0] | {column: value}
        try:
            row_in(json.dumps(row).encode())
            checked_row(tables[model], row, checked.maps)
        except Wrong:
            continue
        found.append((model, column, value))
    return found


def addresses(project: Project) -> Iterator[str]:
    """Of all pages and answers of the API about the project and the first rows of its tables."""
    parts = {"slug": project.slug, "number": 1, "which": 1, "name": "labels.jsonl"}
    for name, table in ROWS.items():
        (model,) = (one for one in travelling() if name_of(one) == table)
        if (row := rows_of(model, project.pk).order_by("pk").first()) is not None:
            parts[name] = row.pk
    for route in routes(get_resolver().url_patterns):
        names = re.findall(r"<\w+:(\w+)>", route)
        if "slug" in names and set(names) <= parts.keys():
            yield "/" + re.sub(r"<\w+:(\w+)>", lambda found: str(parts[found[1]]), route)


def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    for entry in patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from routes(entry.url_patterns, route)
        else:
            yield route


def faults(project: Project, user: User) -> list[str]:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    found = []
    for address in addresses(project):
        answer = client.get(address)
        if answer.status_code >= 500:
            found.append(f"{address}: {answer.status_code}")
        elif answer.streaming:
            try:
                b"".join(answer.streaming_content)
            except Exception as error:
                found.append(f"{address}: {error!r}")
    return found
