"""A web process ends statements that take too long, on SQLite as well, and says so."""

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection
from django.test import Client
from psycopg.errors import DeadlockDetected

from hypac_site import statement_limit
from hypac_site.statement_limit import was_ended
from testbed.factories import make_project

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="tests/services has that of PostgreSQL"),
]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def limited(settings, monkeypatch) -> Iterator[None]:
    """As in a web process. The test's connection is there already: what a new one gets is done to it."""
    settings.HYPAC_REQUEST_STATEMENT_SECONDS = 0.01
    monkeypatch.setattr(statement_limit, "STEPS", 1_000)
    wrappers = list(connection.execute_wrappers)
    statement_limit._watch(connection)
    yield
    connection.execute_wrappers[:] = wrappers
    connection.connection.set_progress_handler(None, 0)


def endless(*args: object, **kwargs: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(ENDLESS)


def test_a_statement_without_an_end_is_ended(limited) -> None:
    with pytest.raises(OperationalError) as raised:
        endless()
    assert was_ended(raised.value)
    assert not was_ended(OperationalError("no such table"))


def test_a_connection_opened_anew_keeps_what_else_watches_it(limited) -> None:
    def other(execute, *arguments):
        return execute(*arguments)

    connection.execute_wrappers.append(other)
    before = list(connection.execute_wrappers)
    statement_limit._watch(connection)
    assert connection.execute_wrappers == before
    with pytest.raises(OperationalError):
        endless()


def test_page_and_answer_say_that_it_took_too_long(limited, monkeypatch, caplog) -> None:
    project = make_project()
    client = Client()
    client.force_login(project.created_by)
    monkeypatch.setattr("annotation.projects.views.project_cards", endless)
    page = client.get("/")
    assert page.status_code == 503
    assert "took too long" in page.content.decode()
    assert page.headers["Retry-After"] == "30"
    monkeypatch.setattr("annotation.projects.api.projects_of", endless)
    answer = client.get("/api/v1/projects/")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert "stopped" in answer.json()["detail"]
    monkeypatch.setattr("routing.label_studio.views.check_named", endless)
    answer = client.get(f"/label-studio/{project.slug}/health")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert sum("took too long" in record.message for record in caplog.records) == 3


def test_other_errors_are_none_of_its(monkeypatch) -> None:
    project = make_project()
    client = Client(raise_request_exception=False)
    client.force_login(project.created_by)

    def broken(*args: object) -> None:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr("annotation.projects.views.project_cards", broken)
    assert client.get("/").status_code == 500


def test_what_gave_way_to_others_is_to_be_sent_again(monkeypatch, caplog) -> None:
    project = make_project()
    client = Client()
    client.force_login(project.created_by)

    def gives_way(*args: object, **kwargs: object) -> None:
        raise OperationalError("deadlock detected") from DeadlockDetected("deadlock detected")

    monkeypatch.setattr("annotation.projects.views.project_cards", gives_way)
    page = client.get("/")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "1")
    assert "send it again" in page.content.decode()
    monkeypatch.setattr("annotation.projects.api.projects_of", gives_way)
    answer = client.get("/api/v1/projects/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json()["code"] == "database_busy"
    assert sum("gave way" in record.message for record in caplog.records) == 2
