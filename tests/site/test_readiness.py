"""/readyz tells which part of an installation cannot be used, and nothing that is nobody's business."""

import json
import logging
from collections.abc import Iterator

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from hypac_site import readiness

pytestmark = pytest.mark.database


@pytest.fixture(autouse=True)
def looked_at_anew(tmp_path, settings) -> Iterator[None]:
    settings.MEDIA_ROOT = tmp_path
    for part in readiness._parts.values():
        part.looked_at = -1e9
    yield
    for part in readiness._parts.values():
        part.looked_at = -1e9


def ask(query: str = "") -> tuple[int, dict[str, object]]:
    answer = Client().get(f"/readyz{query}")
    return answer.status_code, json.loads(answer.content)


@pytest.mark.django_db
class TestReadiness:
    def test_all_is_well(self) -> None:
        status, found = ask()
        assert status == 200
        assert found == {
            "ready": True,
            "database": "ok",
            "migrations": "ok",
            "broker": "ok",
            "storage": "ok",
        }
        assert default_storage.listdir("ready")[1] == [], "what was written to try the storage is gone"

    def test_a_migration_that_is_not_applied(self) -> None:
        MigrationRecorder(connection).record_unapplied("annotation", "0001_initial")
        status, found = ask()
        assert status == 503
        assert found["migrations"] == "failing"
        assert found["database"] == "ok"

    def test_a_migration_of_a_newer_version_does_no_harm(self) -> None:
        MigrationRecorder(connection).record_applied("annotation", "9999_of_tomorrow")
        assert ask()[0] == 200

    def test_a_database_that_cannot_be_brought_up_to_date(self) -> None:
        MigrationRecorder(connection).record_applied("annotation", "0002_task_types_and_pauses")
        assert ask()[1]["migrations"] == "failing"

    def test_a_storage_that_cannot_be_written(self, tmp_path, settings) -> None:
        blocked = tmp_path / "blocked"
        blocked.write_text("no folder")
        settings.MEDIA_ROOT = blocked
        status, found = ask()
        assert (status, found["storage"]) == (503, "failing")

    def test_a_broker_that_is_down(self, settings, monkeypatch, caplog) -> None:
        secret = "redis://:hunter2@127.0.0.1:1/0"
        monkeypatch.setattr(
            readiness.app,
            "connection_for_write",
            lambda **options: readiness.app.connection(secret, **options),
        )
        with caplog.at_level(logging.WARNING):
            status, found = ask()
        assert (status, found["broker"], found["ready"]) == (503, "failing", False)
        assert "broker" in caplog.text, "whoever runs the server learns why"
        assert "hunter2" not in caplog.text + json.dumps(found)
        status, found = ask("?without=broker")
        assert (status, "broker" in found) == (200, False)

    def test_asking_often_costs_no_more(self, monkeypatch, django_assert_num_queries) -> None:
        for part in readiness._parts.values():
            monkeypatch.setattr(part, "seconds", 3600.0)
        ask()
        with django_assert_num_queries(0):
            for _ in range(5):
                assert ask()[0] == 200


def test_a_database_that_is_down(monkeypatch) -> None:
    def refuse() -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(readiness._parts["database"], "check", refuse)
    status, found = ask("?without=migrations")
    assert (status, found["database"]) == (503, "failing")
