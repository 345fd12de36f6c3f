"""Which import a job that brought a file from a bucket takes for its own."""

import io
from typing import Any

import pytest

from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.fetching import fetch
from annotation.imports.upload import start_import
from annotation.jobs.context import tried_again_at
from annotation.models import Job, Project, StoredFile
from testbed.factories import make_project
from testbed.object_store import Bucket
from tests.services.test_connections import CSV, connected, done

pytestmark = pytest.mark.django_db


def fetched(project: Project, store: Bucket, **fields: Any) -> Job:
    store.client.put_object(Bucket=store.name, Key="data.csv", Body=CSV.encode())
    mapping = ColumnMapping(id_column="id", text_column="text")
    return fetch(
        connection=connected(project, store),
        user=project.created_by,
        key="data.csv",
        mapping=mapping,
        **fields,
    )


def test_an_import_of_the_same_bytes_by_somebody_else_is_another(bucket):
    project = make_project()
    job = done(fetched(project, bucket, add_duplicates=True))
    Job.objects.filter(kind="import").delete()
    # The worker died before its import was stored, and a colleague imports the same file, shown otherwise.
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
    other = start_import(
        project=project,
        user=project.created_by,
        stored_file=StoredFile.objects.get(pk=job.result["file"]),
        mapping=ColumnMapping(text_column="id"),
    )
    done(other)
    job = done(job)
    assert job.state == Job.State.DONE, job.error
    assert job.result["import"] != other.pk
    own = Job.objects.get(pk=job.result["import"])
    assert (own.params["id_column"], own.params["text_column"]) == ("id", "text")


def test_beside_another_import_it_waits_as_long_as_that_takes(bucket, settings):
    project = make_project()
    content = io.BytesIO(b"text\nbusy\n")
    file = store_file(project=project, content=content, original_name="busy.csv", media_type="text/csv")
    busy = start_import(
        project=project, user=project.created_by, stored_file=file, mapping=ColumnMapping(text_column="text")
    )
    job = fetched(project, bucket)
    for _attempt in range(settings.HYPAC_JOB_MAX_ATTEMPTS + 2):
        job = done(job)
        assert job.state == Job.State.QUEUED
        assert "begins by itself" in job.error
        assert tried_again_at(job) is not None
    assert Job.objects.filter(kind="import").count() == 1
    done(busy)
    job = done(job)
    assert (job.state, job.error) == (Job.State.DONE, "")
    assert done(Job.objects.get(pk=job.result["import"])).result["added"] == 40
    assert project.items.count() == 41


def test_its_own_import_is_not_started_twice(bucket):
    project = make_project()
    job = done(fetched(project, bucket))
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
    for _finished in (False, True):
        again = done(job)
        assert again.result["import"] == Job.objects.get(kind="import").pk
        done(Job.objects.get(kind="import"))
        Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
