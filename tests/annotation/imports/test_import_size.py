"""What keeps imports of a million rows bounded: problems, duplicates, queries, and a second start."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.imports import check as import_check, job as import_job
from annotation.imports.check import check_import
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.delimited import Delimited
from annotation.imports.rows import candidate_of, known_items
from annotation.imports.upload import start_import
from annotation.jobs import context as job_context, jobs
from annotation.models import Job, Project
from testbed.factories import make_project
from tests.annotation.imports.test_importers import read
from tests.annotation.imports.test_imports import (
    BY_TEXT,
    counts,
    import_file,
    problems_of,
    result,
    storage,
    store,
)

__all__ = ["storage"]
pytestmark = pytest.mark.django_db
# Of every kind: no text, another row's text, too few cells, an id that is there with other content.
MIXED = "id,text\na,\nb,one\nc\nd,one\nb,two\ne,\nf,one\ng\n,x\n"


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.mark.parametrize("chunk", [1, 2, 4, 5000])
def test_problems_are_told_in_the_order_of_the_file(project, monkeypatch, chunk) -> None:
    monkeypatch.setattr(import_job, "CHUNK_ROWS", chunk)
    job = import_file(project, store(project, MIXED), BY_TEXT)
    assert counts(job) == result(3, problems=6, duplicates=2)
    lines = [int(where.split(",")[0].removeprefix("line ")) for where, _message in problems_of(job)]
    assert lines == [2, 4, 5, 6, 7, 8, 9, 10]


def test_the_check_names_the_first_problems_in_that_order(project) -> None:
    check = check_import(stored_file=store(project, MIXED), mapping=BY_TEXT, format_name="csv_comma")
    assert [where.split(",")[0] for where, _message in check.problems] == [
        "line 2", "line 4", "line 6", "line 7", "line 9",
    ]  # fmt: skip


def test_only_so_many_problems_are_kept_and_all_are_counted(project, monkeypatch) -> None:
    monkeypatch.setattr(job_context, "MAX_PROBLEMS", 5)
    monkeypatch.setattr(import_job, "CHUNK_ROWS", 4)
    content = "id,text\nx,good\n" + "".join(f"{n},\n" for n in range(20))
    job = import_file(project, store(project, content), BY_TEXT)
    assert counts(job) == result(1, problems=20)
    assert [where for where, _message in problems_of(job)] == [
        f"line {n}, column “text”" for n in range(3, 8)
    ]


def test_one_text_in_all_rows_is_looked_up_once(project) -> None:
    content = "id,text\n" + "".join(f"{n},the same\n" for n in range(300))
    job = import_file(project, store(project, content), BY_TEXT)
    assert counts(job) == result(300, duplicates=299)
    assert problems_of(job)[-1][1] == "Added, but it has the same content as the item “0”."
    (row,) = read("csv", "id,text\n300,the same\n")
    candidate = candidate_of(1, row, BY_TEXT)
    with CaptureQueriesContext(connection) as queries:
        known, twins = known_items(project, [candidate])  # type: ignore[list-item]
    assert known == {}
    (twin,) = twins.values()  # whichever the database meets first
    assert twin in {str(n) for n in range(300)}
    assert len(queries) == 2


@pytest.mark.parametrize("rows", [40, 400])
def test_a_chunk_takes_as_many_queries_whatever_its_size(project, rows) -> None:
    content = "id,text\n" + "".join(f"{n},text {n}\n" for n in range(rows))
    stored = store(project, content)
    job = start_import(project=project, user=project.created_by, stored_file=stored, mapping=BY_TEXT)
    with CaptureQueriesContext(connection) as queries:
        jobs.run(job.pk)
    assert project.items.count() == rows
    assert len(queries) < 30


def test_one_that_goes_on_does_not_check_the_file_again(project, monkeypatch) -> None:
    monkeypatch.setattr(import_job, "CHUNK_ROWS", 2)
    content = "id,text\n" + "".join(f"{n},text {n}\n" for n in range(7))
    stored = store(project, content)
    job = start_import(project=project, user=project.created_by, stored_file=stored, mapping=BY_TEXT)
    real = import_job._insert

    def stopped(*arguments: object) -> int:
        start = real(*arguments)  # type: ignore[arg-type]
        jobs.cancel(job=job)
        return start

    with monkeypatch.context() as patch:
        patch.setattr(import_job, "_insert", stopped)
        jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.done, job.total, project.items.count()) == (2, 7, 2)
    jobs.retry(job=job)
    monkeypatch.setattr(Delimited, "count", None, raising=False)
    assert jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.done, counts(job)) == (Job.State.DONE, 7, result(7))


def test_short_rows_without_end_are_not_all_read_on_the_page(project, monkeypatch) -> None:
    monkeypatch.setattr(import_check, "QUICK_ROWS", 50)
    content = "text\n" + "a\n" * 1000
    check = check_import(
        stored_file=store(project, content),
        mapping=ColumnMapping(text_column="text"),
        format_name="csv_comma",
    )
    assert (check.rows, check.whole) == (50, False)
