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
from hypac_site.portable.importing import import_project
from hypac_site.portable.shapes import DEEPEST, SHAPES
from hypac_site.portable.tables import Model, fields_of, is_person, name_of, refers_to, rows_of, travelling
from hypac_site.portable.values import Wrong, row_in
from tests.annotation.projects.portable import Lines, forged, json_columns, lines_of, table_of
from tests.annotation.projects.test_portable_hostile import _made, good  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

NESTED: Any = None
for _ in range(DEEPEST + 1):
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


# What follows from other rows, or is held by the database: one such value has the whole file refused.
FOLLOWING = {
    *("routing.certificate", "routing.commitment", "routing.delivery", "routing.deliveryfile"),
    *("routing.draw", "routing.drawitem", "routing.ledgerentry", "routing.pilotitem", "routing.poolitem"),
    *("routing.prediction", "routing.itemscore", "routing.route", "routing.run", "routing.runsource"),
    *("annotation.label", "annotation.storedfile"),
}


@pytest.mark.database
def test_what_is_let_in_breaks_no_page(good: Path, tmp_path: Path) -> None:  # noqa: F811
    """One value for each column of JSON that may be any, all in one file."""
    found = let_in(good)
    of_json = {f"{name_of(model)}.{column}" for model, column, _value in found} & json_columns()
    assert len(of_json) > 30
    last = {
        (model, column): (model, column, value)
        for model, column, value in found
        if name_of(model) not in FOLLOWING and f"{name_of(model)}.{column}" in of_json
    }
    project = import_project(
        path=changed(good, tmp_path / "p.zip", list(last.values())), owner="owner-here", slug="m"
    ).project
    assert faults(project, User.objects.get(username="owner-here")) == []


REFUSED: dict[str, tuple[Any, ...]] = {
    "annotation.item.data": ([], {"x": 1}, {"x": None}),
    "annotation.item.fields": ([["a"]], [["a", 1]], [{}]),
    "annotation.item.typed": ([], "x", 1, NESTED, {"x": NESTED}),
    "annotation.label.value": (1, {}, None, [1], True),
    "annotation.project.columns": ([[]], ["a", 1], {}),
    "annotation.project.loss": ("unknown",),
    "routing.certificate.messages": ([], "x"),
    "routing.certificate.shape": ("\u202e" * 21,),
    "routing.certificate.thresholds": ("x", {}, [{"u": 1}], [{"u": "x", "v": 0}], [{"u": 0.5, "v": 2**64}]),
    "routing.run.bound": ("unknown",),
    "routing.run.invalid_reasons": ([{}], [{"code": 1, "params": {}, "words": ""}]),
    "routing.run.loss": ("unknown",),
    "routing.run.rule": ("unknown",),
    "routing.run.score": ("unknown",),
    "routing.run.tally": ([], {}, {"sent": "x", "answers": [], "saving": None}),
    "routing.runsource.cost_function": ("unknown",),
    "routing.sentanswer.answer": ([], "x", {}, {"label": 1}, {"label": "x", "cost": "NaN"}),
    "routing.source.backend": ("unknown", ""),
    "routing.source.params": ({}, {"unknown": 1}, {"label_column": []}),
    "routing.source.prices": ({"per_token": []}, {"x": "NaN"}),
    "routing.sourcerevision.fields": ([1], {}, [[]]),
    "routing.sourcetry.rows": ([{}], [1], "x"),
}


@pytest.mark.parametrize("column", REFUSED)
def test_what_no_page_could_show_is_refused(good: Path, column: str) -> None:  # noqa: F811
    table, _dot, name = column.rpartition(".")
    (model,) = (one for one in travelling() if name_of(one) == table)
    row = lines_of(good)[table_of(model)][0]
    with opened(good) as archive:
        checked = check(archive)
    reader = Table(model, {person.name for person in checked.people})
    assert checked_row(reader, row, checked.maps)
    for value in REFUSED[column]:
        with pytest.raises(Wrong):
            checked_row(reader, row | {name: value}, checked.maps)
