"""The queue on PostgreSQL under real concurrency: threads with a connection each, and two servers' clocks."""

import json
import subprocess
import sys

from tests.annotation.hammer import check
from tests.services.conftest import ROOT, Site


def test_workers_that_label_at_once(postgres_site: Site) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "tests.annotation.hammer", "threads", "60", "20"],
        cwd=ROOT,
        env=postgres_site.environment,
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout.splitlines()[-1])
    check(found, asked=90, people=18)


def test_single_looks_into_the_queue_are_not_compiled(postgres_site: Site) -> None:
    show = (
        "from django.db import connection as c; k = c.cursor(); k.execute('show jit'); print(k.fetchone()[0])"
    )
    assert postgres_site.manage("shell", "--no-imports", "-c", show).split()[-1] == "off"


def test_leases_end_by_the_clock_of_the_database(postgres_site: Site) -> None:
    """The clock of this server is an hour fast, and that of the next one an hour slow."""
    script = """
from datetime import timedelta
from unittest.mock import patch
from django.utils import timezone
from annotation import queue
from testbed.factories import add_member, make_items, make_project
project = make_project()
ann, ben = add_member(project), add_member(project)
ids = [item.pk for item in make_items(project, 1)]
queue.create_batch(project=project, item_ids=ids, blind=False, priority=1, entropy=1)
right = timezone.now
def clock(hours):
    return patch.object(timezone, "now", lambda: right() + timedelta(hours=hours))
with clock(-1):
    task = queue.claim(project=project, user=ann)
with clock(1):
    assert queue.claim(project=project, user=ben) is None
    queue.heartbeat(user=ann, work_item_id=task.work_item.pk, token=task.token)
with clock(-1):
    assert queue.claim(project=project, user=ben) is None
    queue.release(user=ann, work_item_id=task.work_item.pk, token=task.token)
    assert queue.claim(project=project, user=ben) is not None
print("held")
"""
    assert postgres_site.manage("shell", "--no-imports", "-c", script).split()[-1] == "held"
