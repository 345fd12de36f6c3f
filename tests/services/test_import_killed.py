"""A worker that is killed with SIGKILL in the middle of an import: nothing lost, nothing doubled."""

import json
import time
from pathlib import Path

from tests.annotation.installation import Installation
from tests.annotation.jobs.killed_worker import ROWS


def test_an_import_goes_on_where_its_worker_was_killed(tmp_path: Path) -> None:
    kill_twice(Installation(tmp_path))


def kill_twice(here: Installation) -> None:
    module = ("-m", "tests.annotation.jobs.killed_worker")
    job = here.finish(*module, "prepare").split()[-1]

    done = 0
    kills = 0
    while kills < 2:
        worker = here.start(*module, "work", job)
        before = done
        while done <= before and worker.poll() is None:
            time.sleep(0.002)
            (done,) = here.row("SELECT done FROM annotation_job")
        worker.kill()
        worker.communicate()
        done, items = here.row("SELECT done, (SELECT count(*) FROM annotation_item) FROM annotation_job")
        assert before < done < ROWS  # it was killed in the middle,
        assert items == done - done // 10  # and what it said to be done was done
        kills += 1
        time.sleep(1.5)  # until its silence is taken for death

    outcome = json.loads(here.finish(*module, "work", job).splitlines()[-1])
    assert outcome == {
        "finished": True,
        "state": "done",
        "result": {
            "added": 2700,
            "already_there": 0,
            "problems": 300,
            "duplicates": 29,
            "positions": [[0, 2699]],  # each chunk behind the one before, across both kills
            "columns": ["id", "text"],
            "labels": 0,
            "labels_unread": 0,
        },
        "items": 2700,
        "positions": 2700,
        "problems": 329,
    }
