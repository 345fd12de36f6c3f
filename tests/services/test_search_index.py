"""The index for searching on PostgreSQL, and pages that the database ends after a time."""

from tests.services.conftest import Site

# What a search asks is told from the plan that PostgreSQL makes when it may not read the whole table.
SEARCH = """
from django.db import connection
from annotation.models import Item
from testbed.factories import make_project
project = make_project()
from routing.items.filters import conditions
from routing.visibility import view_permission
from annotation.permissions import access_to
permission = view_permission(project, access_to(project.created_by, project.slug))
with connection.cursor() as cursor:
    cursor.execute("SET enable_seqscan = off; SET enable_indexscan = off")
    print(Item.objects.filter(conditions(permission, {"q": "some words"})["q"]).explain())
"""

TIMEOUT = """
from django.db import connection, transaction
from annotation.common.query_timeout import TookTooLongError, limit_query_time
def setting(name):
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return cursor.fetchone()[0]
with transaction.atomic():
    with limit_query_time(60, enable_bitmapscan="off"):
        print(setting("statement_timeout"), setting("enable_bitmapscan"))
    print(setting("statement_timeout"), setting("enable_bitmapscan"))
    try:
        with limit_query_time(0.05), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")
    except TookTooLongError:
        print("too long,", setting("statement_timeout"))
"""


def test_the_search_index_is_made_used_and_dropped(postgres_site: Site) -> None:
    assert "There is none" in postgres_site.manage("search_index", "--drop")
    assert "Made" in postgres_site.manage("search_index", "--create")
    assert "there already" in postgres_site.manage("search_index", "--create")
    assert "item_search" in postgres_site.manage("shell", "--no-imports", "-c", SEARCH)
    assert "Dropped" in postgres_site.manage("search_index", "--drop")


def test_a_query_that_takes_too_long_is_ended_and_settings_end_with_it(postgres_site: Site) -> None:
    lines = postgres_site.manage("shell", "--no-imports", "-c", TIMEOUT).split("\n")
    assert lines[:3] == ["1min off", "0 on", "too long, 0"]
