"""On PostgreSQL no statement of a web request goes on for longer than the setting says; those of jobs and
commands, and downloads, do.
"""

from dataclasses import replace

from tests.services.conftest import Site

SETTING = """
from django.db import connection, transaction
from annotation.common.query_timeout import limit_query_time
def setting():
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return cursor.fetchone()[0]
"""
WEB = "import hypac_site.wsgi\n" + SETTING
PAGES = (
    WEB
    + """
import os, psycopg
from django.test import Client
from django.urls import reverse
from annotation.common.snapshot import in_snapshot
from testbed.factories import make_items, make_project
project = make_project()
make_items(project, 3)
client = Client(headers={"host": "localhost"})
client.force_login(project.created_by)
with transaction.atomic():
    with limit_query_time(60):
        print(setting())
    print(setting())
with in_snapshot(lambda: iter([setting()])) as found:
    print(*found)
with psycopg.connect(os.environ["DATABASE_URL"]) as other:
    other.execute("LOCK TABLE annotation_choice IN ACCESS EXCLUSIVE MODE")
    page = client.get(f"/projects/{project.slug}/settings/")
    said = "took too long" in page.content.decode()
    print(page.status_code, page["Content-Type"], page["Retry-After"], said)
    answer = client.get(f"/api/v1/projects/{project.slug}/")
    print(answer.status_code, answer["Content-Type"], answer.json()["detail"])
print(client.get(f"/api/v1/projects/{project.slug}/").status_code)
lines = b"".join(client.get(reverse("api_item_lines", args=[project.slug]))).count(b"\\n")
print(lines)
"""
)


def shell(site: Site, script: str, **environment: str) -> list[str]:
    limited = replace(site, environment={**site.environment, **environment})
    return limited.manage("shell", "--no-imports", "-c", script).split("\n")


def test_a_request_whose_statement_is_ended_says_so_and_downloads_go_on(postgres_site: Site) -> None:
    lines = shell(postgres_site, PAGES, HYPAC_REQUEST_STATEMENT_SECONDS="1")
    assert lines[:3] == ["1min", "1s", "0"]
    assert lines[3] == "503 text/html; charset=utf-8 30 True"
    assert lines[4].startswith("503 application/problem+json The database took too long")
    assert lines[5:7] == ["200", "3"]


def test_only_web_processes_have_the_limit(postgres_site: Site) -> None:
    show = "print(setting())"
    assert shell(postgres_site, SETTING + show)[0] == "0"
    assert shell(postgres_site, WEB + show)[0] == "30s"
    assert shell(postgres_site, WEB + show, HYPAC_REQUEST_STATEMENT_SECONDS="0")[0] == "0"
    own = f"{postgres_site.environment['DATABASE_URL']}?options=-c%20statement_timeout%3D5000"
    assert shell(postgres_site, WEB + show, DATABASE_URL=own)[0] == "5s"
