"""Locks on a project, on PostgreSQL: no two who take them wait for each other."""

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from annotation.common import audit
from annotation.errors import UnderWayError
from annotation.imports.undo import start_undo
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import Job, Project, WorkItem
from annotation.projects.lifecycle import archive_project
from testbed.factories import make_items, make_project
from tests.annotation.imports.test_imports import BY_TEXT, CSV, import_file, storage, store
from tests.annotation.people.test_account_locks import waits_for_a_lock

__all__ = ["storage"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one lock for all who write"),
    pytest.mark.database,
]
ROOT = Path(__file__).resolve().parents[3]


def beside(pool: ThreadPoolExecutor, act: Callable[[], Any]) -> Future[Any]:
    """Begin it in another session; it has come to its end, or waits for a lock."""

    def run() -> Any:
        try:
            return act()
        finally:
            connection.close()

    begun, until = pool.submit(run), time.monotonic() + 60
    while not (begun.done() or waits_for_a_lock()) and time.monotonic() < until:
        time.sleep(0.02)
    return begun


def test_an_import_is_taken_back_while_a_chunk_of_another_is_stored() -> None:
    """Both have one key. The chunk adds items, which refer to the project, and changes its columns."""
    project = make_project()
    first = import_file(project, store(project, CSV), BY_TEXT)
    second = jobs.enqueue(project=project, kind_name="import", params={}, unique_key="import")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Job.objects.filter(pk=second.pk).update(state="running", heartbeat_at=Now())
            make_items(project, 1)
            undo = beside(pool, lambda: start_undo(job=first, user=project.created_by))
            Project.objects.filter(pk=project.pk).update(columns=["id"])
        with pytest.raises(UnderWayError):
            undo.result(60)
    assert project.items.count() == 4


def test_a_project_is_archived_while_an_answer_is_stored() -> None:
    project = make_project()
    ids = [item.pk for item in make_items(project, 1)]
    queue.create_batch(project=project, item_ids=ids, blind=False, priority=1, entropy=1)
    assert queue.claim(project=project, user=project.created_by)
    held = WorkItem.objects.filter(batch__project=project)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            held.update(lease_token="answered")
            archived = beside(pool, lambda: archive_project(project=project, actor=project.created_by))
            audit.record(project=project, actor=project.created_by, action="label.given")
        archived.result(60)
    assert held.get().state == "open"


def test_locks_on_projects_are_spelled_once() -> None:
    """`select_related("project")` without `of` locks the project, too, with all of its key."""
    other = re.compile(
        r"Project\.objects\.select_for_update\(\)|select_for_update\((no_key=True)?\)\.select_rel"
    )
    sources = [path for app in ("annotation", "routing") for path in (ROOT / app).rglob("*.py")]
    found = [path.name for path in sources if other.search(path.read_text())]
    assert found == ["locks.py"]
