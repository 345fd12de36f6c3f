"""Project files as they are compared and forged."""

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.db import connection, models

from annotation.jobs import jobs
from annotation.models import (
    Job,
    Project,
    StoredFile,
    User,
)
from hypac_site.portable.exporting import export_project
from hypac_site.portable.ids import rewritten
from hypac_site.portable.importing import import_project
from hypac_site.portable.manifest import NAME, PEOPLE
from hypac_site.portable.tables import Model, fields_of, is_person, name_of, refers_to, rows_of, travelling

# --- Numbers that are told apart ----------------------------------------------------------------------------


def numbers_from(start: int) -> None:
    """Have new rows of all tables get numbers from there on."""
    with connection.cursor() as cursor:
        for model in travelling():
            table = model._meta.db_table
            if connection.vendor == "postgresql":
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)",
                    [connection.ops.quote_name(table), start],
                )
                continue
            cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [start, table])
            if not cursor.rowcount:
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, start])


# --- Files --------------------------------------------------------------------------------------------------


Lines = dict[str, list[dict[str, Any]]]


def lines_of(path: Path) -> Lines:
    """The rows of each table of a project file, and the people."""
    with zipfile.ZipFile(path) as content:
        return {
            name: [json.loads(line) for line in content.read(name).splitlines()]
            for name in content.namelist()
            if name.endswith(".jsonl")
        }


class Places:
    """`Ids` by which every row has its place in its table for a number, and people the given names."""

    def __init__(self, lines: Lines, names: dict[str, str]) -> None:
        self._places = {
            model: {row["id"]: place for place, row in enumerate(lines[table_of(model)], 1)}
            for model in travelling()
        }
        self._names = names
        self._people = {row["number"]: row["name"] for row in lines[PEOPLE]}

    def new(self, model: Model, old: int) -> int:
        if model is User:
            return sorted(self._names.values()).index(self._names[self._people[old]])
        return self._places[model].get(old, 0) if model in self._places else 0

    def near(self, model: Model, old: int, *, up: bool) -> int:
        return self.new(model, old)

    def person(self, name: str) -> str:
        return self._names.get(name, name)

    def slug(self, slug: str) -> str:
        return "slug"


def table_of(model: Model) -> str:
    return f"tables/{name_of(model)}.jsonl"


def alike(lines: Lines, names: dict[str, str]) -> Lines:
    """Rows as two files of one project have them alike, whatever the numbers. `names` are what the people of
    the file are called in both.
    """
    places, told = Places(lines, names), {}
    for model in travelling():
        rows = []
        for row in lines[table_of(model)]:
            made = rewritten(model, row, places)
            for field in fields_of(model):
                value = made[field.name]
                if value is None:
                    continue
                if is_person(field):
                    made[field.name] = names[value]
                elif (other := refers_to(field)) is not None:
                    made[field.name] = places.new(other, value)
            rows.append(made | {"id": places.new(model, row["id"])})
        told[table_of(model)] = rows
    return told


Change = Callable[[Lines], None]


def forged(
    path: Path, target: Path, change: Change, *, manifest: Callable[[dict[str, Any]], None] | None = None
) -> Path:
    """The same file with other rows, and a manifest that fits them: as somebody makes it who knows how."""
    lines = lines_of(path)
    change(lines)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        told = json.loads(old.read(NAME))
        for entry in old.infolist():
            if entry.filename == NAME:
                continue
            content = old.read(entry)
            if entry.filename in lines:
                rows = lines[entry.filename]
                content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
                (part,) = [part for part in told["parts"] if part["name"] == entry.filename]
                part |= {"rows": len(rows), "bytes": len(content), "sha256": sha256(content).hexdigest()}
            new.writestr(entry, content, compress_type=entry.compress_type)
        if manifest is not None:
            manifest(told)
        new.writestr(NAME, json.dumps(told))
    return target


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)
    else:
        yield str(value)


@cache
def json_columns() -> frozenset[str]:
    """All JSON columns of tables that travel."""
    return frozenset(
        f"{name_of(model)}.{field.name}"
        for model in travelling()
        for field in fields_of(model)
        if isinstance(field, models.JSONField)
    )


def rows_there(project: Project) -> dict[Model, int]:
    return {model: rows_of(model, project.pk).count() for model in travelling()}


# --- Out and in ---------------------------------------------------------------------------------------------

# What has other words where it came in: random keys, files that name items by number, what the trail adds.
KEYS = {"idempotency_key", "key"}


def carried(project: Project, folder: Path, **options: Any) -> Project:
    """Out, and in again beside it."""
    path = folder / f"{project.slug}.zip"
    path.unlink(missing_ok=True)
    export_project(slug=project.slug, target=path)
    options = {"owner": project.created_by.username, "slug": f"{project.slug}-b"} | options
    return import_project(path=path, **options).project


def compare(first: Path, second: Path, made: dict[str, str]) -> None:
    """Every table of both files, row by row; `made` are what people of the first are called in the second."""
    here = alike(lines_of(first), {one["name"]: one["name"] for one in lines_of(first)[PEOPLE]})
    back = {new: old for old, new in made.items()}
    there_lines = lines_of(second)
    names = {one["name"]: back.get(one["name"], one["name"]) for one in there_lines[PEOPLE]}
    there = alike(there_lines, names)
    given = {row["given"] for row in here["tables/routing.delivery.jsonl"]}
    for model in travelling():
        name = table_of(model)
        rows, others = here[name], there[name]
        if name_of(model) in ("annotation.auditevent", "annotation.membership"):
            others = others[: len(rows)]  # the import itself, and the owner
        assert len(rows) == len(others), name
        for row, other in zip(rows, others, strict=True):
            for one in (row, other):
                for key in (
                    KEYS & one.keys() if name_of(model) in ("annotation.label", "routing.spend") else ()
                ):
                    one[key] = re.sub("[0-9]+", "", one[key])
                if model is StoredFile and one["id"] in given:
                    one["sha256"] = ""
                if model is Project:
                    one["slug"] = ""
            assert row == other, name


def done(project: Project, kind: str) -> Job:
    """The newest job of a kind, done as a worker would."""
    job = project.jobs.filter(kind=kind).order_by("-id")[0]
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    return job
