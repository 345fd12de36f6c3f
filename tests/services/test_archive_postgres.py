"""Archiving a project on PostgreSQL at the moment at which work begins in it."""

from tests.services.conftest import Site

# Each way the second one is looked at until it waits for the first one's transaction, or has gone past it.
AT_ONCE = """
import threading, time
from django.db import connection, transaction
from annotation.jobs import jobs
from annotation.errors import ConflictError
from annotation.models import Job, Project
from annotation.projects.lifecycle import archive_project
from testbed.factories import make_project

def import_of(project):
    return jobs.enqueue(project=project, kind_name="import", params={})

def archive(project):
    archive_project(project=Project.objects.get(pk=project.pk), actor=project.created_by)

def failed(project):
    job = import_of(project)
    Job.objects.update(state="failed")
    return job

def waits():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted"
                       " AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
        return cursor.fetchone()[0]

def at_once(first, second):
    told = []
    def other():
        try:
            second()
        except ConflictError as error:
            told.append(str(error))
        finally:
            connection.close()
    thread = threading.Thread(target=other)
    with transaction.atomic():
        first()
        thread.start()
        until = time.monotonic() + 60
        while thread.is_alive() and not waits() and time.monotonic() < until:
            time.sleep(0.01)
    thread.join(60)
    print("told:", *told)

for begin in ("import", "retry"):
    for archived_first in (False, True):
        project = make_project()
        job = failed(project) if begin == "retry" else None
        ways = [lambda: jobs.retry(job=job) if job else import_of(project), lambda: archive(project)]
        at_once(*(reversed(ways) if archived_first else ways))
        unfinished = Job.objects.filter(project=project, state="queued").count()
        project.refresh_from_db()
        print("left:", unfinished, project.archived_at is not None)
        Job.objects.all().delete()
"""


def test_a_project_is_archived_or_work_begins_in_it_not_both(postgres_site: Site) -> None:
    told = postgres_site.manage("shell", "--no-imports", "-c", AT_ONCE).splitlines()
    begun_first = ["The import is not finished", "left: 1 False"]
    archived_first = ["This project is archived", "left: 0 True"]
    expected = [*begun_first, *archived_first] * 2
    assert len(told) == len(expected)
    assert [words for words, line in zip(expected, told, strict=True) if words not in line] == [], told


IMPORT_AND_UNDO = """
import io, threading
from django.db import connection
from annotation.jobs import jobs
from annotation.errors import ConflictError
from annotation.models import Job
from annotation.common.files import store_file
from annotation.imports.undo import start_undo
from annotation.imports.upload import ColumnMapping, start_import
from testbed.factories import make_project

project = make_project()

def begin(number):
    content = io.BytesIO(b'{"id": "%d", "text": "text %d"}\\n' % (number, number))
    stored = store_file(project=project, content=content, original_name=f"{number}.jsonl", media_type="a/b")
    mapping = ColumnMapping(id_column="id", text_column="text")
    return start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping)

first = begin(1)
jobs.run(first.pk)
first.refresh_from_db()
asks, undone = threading.Event(), threading.Event()
refuse_closed = jobs.refuse_closed

def late(project_id):
    if threading.current_thread() is second:
        asks.set()
        undone.wait(20)
    return refuse_closed(project_id)

jobs.refuse_closed = late

def other():
    try:
        begin(2)
    except ConflictError as error:
        print("told:", error)
    finally:
        connection.close()

second = threading.Thread(target=other)
second.start()
asks.wait(60)
start_undo(job=first, user=project.created_by)
undone.set()
second.join(60)
print(*Job.objects.order_by("id").values_list("kind", "state"))
"""


def test_an_import_that_begins_while_one_is_taken_back_is_told_so(postgres_site: Site) -> None:
    told = postgres_site.manage("shell", "--no-imports", "-c", IMPORT_AND_UNDO).splitlines()
    assert told[-1] == "('import', 'done') ('import_undo', 'queued')", told
    assert "already under way" in told[-2], told
