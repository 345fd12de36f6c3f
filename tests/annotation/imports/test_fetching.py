"""Files that a job reads from a bucket: what needs no bucket to go wrong (the rest is in tests/services)."""

import pytest

from annotation.jobs import jobs
from annotation.models import Connection, Job
from testbed.factories import make_project


@pytest.mark.django_db
def test_a_connection_that_was_deleted_before_its_turn_is_told() -> None:
    project = make_project()
    connection = Connection.objects.create(
        project=project,
        name="store",
        endpoint="http://127.0.0.1:1",
        bucket="data",
        created_by=project.created_by,
    )
    params = {"connection": connection.pk, "key": "data.csv", "mapping": None}
    job = jobs.enqueue(project=project, kind_name="fetch", params=params)
    connection.delete()
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "connection_gone")
