"""How PostgreSQL plans for rows that came a moment ago, long before it looks at their tables by itself."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from annotation.common.bulk import copy_rows
from hypac_site.portable.exporting import export_project
from hypac_site.portable.importing import import_project
from routing.common.sql import analyse_tables
from routing.models import Source
from testbed.factories import make_items, make_project
from testbed.worlds import make_world

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is asked for no such look"),
    pytest.mark.database,
]


def statements(do: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as asked:
        do()
    return [entry["sql"] for entry in asked]


def looked_at(asked: list[str]) -> list[str]:
    return [found[1] for one in asked if (found := re.fullmatch(r'ANALYZE \(SKIP_LOCKED\) "(\w+)"', one))]


def test_an_import_is_planned_without_knowledge_of_its_rows(tmp_path: Path) -> None:
    """A thousand items took 50 s, 48 of them in the one statement that adds up what answers cost. Nor does it
    look at tables: nobody else could until its end.
    """
    world = make_world(200)
    world.complete()
    file = tmp_path / "project.zip"
    export_project(slug=world.project.slug, target=file)
    asked = statements(lambda: import_project(path=file, owner=world.manager.username, slug="other"))
    computed = [place for place, one in enumerate(asked) if one.startswith('SELECT SUM("routing_prediction"')]
    assert asked.index("SET LOCAL enable_nestloop = off") < min(computed)
    assert looked_at(asked) == []


def test_few_new_rows_are_left_to_postgres_and_many_are_not() -> None:
    project = make_project()
    make_items(project, ["one"])

    def sources(first: int, count: int) -> None:
        rows = ((project.pk, place, f"Model {place}", "recorded") for place in range(first, first + count))
        copy_rows(Source, ("project", "position", "name", "backend"), rows)

    sources(1, 1000)
    analyse_tables(Source)
    assert looked_at(statements(lambda: analyse_tables(Source, new=149))) == []
    assert looked_at(statements(lambda: analyse_tables(Source, new=151))) == ["routing_source"]
    sources(2000, 12_000)
    analyse_tables(Source)
    assert looked_at(statements(lambda: analyse_tables(Source, new=999))) == []
    assert looked_at(statements(lambda: analyse_tables(Source, new=1001))) == ["routing_source"]


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_somebody_else_who_looks_at_the_same_tables() -> None:
    def look() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET statement_timeout = '10s'")
            analyse_tables(Source)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        analyse_tables(Source)
        pool.submit(look).result()
