"""The removal of a project on PostgreSQL, where what it meets locks rows, not the database."""

from pathlib import Path

import psycopg

from tests.annotation.installation import Installation
from tests.services.conftest import Site
from tests.services.test_removal_killed import kill_often


def test_a_removal_goes_on_where_its_worker_was_killed(migrated_url: str, tmp_path: Path) -> None:
    kill_often(Installation(tmp_path, url=migrated_url))


MAKE = """
from annotation.jobs import jobs
from annotation.models import Job, Project
from testbed.factories import make_items, make_project
project = make_project(name="Reviews")
make_items(project, 5)
jobs.enqueue(project=project, kind_name="import", params={})
Job.objects.update(state="running", claim_token="of a worker")
"""
DELETE = """
from annotation.models import Project
from annotation.projects.lifecycle import delete_project
project = Project.objects.get()
delete_project(project=project, actor=project.created_by, name="Reviews")
"""
REMOVE = """
from annotation.jobs import jobs
from annotation.models import Job
jobs.run(Job.objects.get(kind="remove_project").pk)
"""
ADD = """
INSERT INTO annotation_item
    (project_id, external_id, position, text, data, typed, fields, content_hash, created_at)
SELECT project_id, 'late', 99, text, data, typed, fields, 'late', created_at FROM annotation_item LIMIT 1
"""


def test_who_deletes_waits_for_no_chunk_that_is_under_way(postgres_site: Site) -> None:
    """The lock_timeout fails whoever waits; what the chunk adds after all goes with the rest."""
    postgres_site.manage("shell", "-c", MAKE)
    url = postgres_site.environment["DATABASE_URL"]
    impatient = Site({**postgres_site.environment, "PGOPTIONS": "-c lock_timeout=2s"})
    with psycopg.connect(url) as chunk:  # as JobContext.chunk: the job's row first, then what it adds
        chunk.execute("UPDATE annotation_job SET heartbeat_at = now()")
        chunk.execute(ADD)
        chunk.execute("SET CONSTRAINTS ALL IMMEDIATE")  # which locks the project, as its commit does
        impatient.manage("shell", "-c", DELETE)
        with psycopg.connect(url) as other:
            found = other.execute(
                "SELECT slug, deleting_at IS NOT NULL, (SELECT count(*) FROM annotation_membership)"
                " FROM annotation_project"
            ).fetchone()
            assert found == ("reviews", True, 0)  # its short name is held by the chunk
    postgres_site.manage("shell", "-c", REMOVE)
    with psycopg.connect(url) as after:
        left = after.execute(
            "SELECT (SELECT count(*) FROM annotation_project), (SELECT count(*) FROM annotation_item),"
            " (SELECT count(*) FROM annotation_job)"
        ).fetchone()
        assert left == (0, 0, 0)
