"""A worker that is killed with SIGKILL in the middle of a project's removal: it goes on to the end."""

import json
import time
from pathlib import Path

from tests.annotation.installation import Installation

KILLS = 2


def test_a_removal_goes_on_where_its_worker_was_killed(tmp_path: Path) -> None:
    kill_often(Installation(tmp_path))


def kill_often(here: Installation) -> None:
    module = ("-m", "tests.annotation.projects.killed_removal")
    job = here.finish(*module, "prepare").split()[-1]
    far = f"SELECT done FROM annotation_job WHERE id = {int(job)}"  # noqa: S608

    done = 0
    for _ in range(KILLS):
        worker = here.start(*module, "work", job)
        before = done
        while worker.poll() is None:
            (done,) = here.row(far)
            if done >= before + 40:
                break
            time.sleep(0.002)
        worker.kill()
        worker.communicate()
        (done,) = here.row(far)
        assert done > before  # it was killed in the middle, and goes on where it was
        time.sleep(1.5)  # until its silence is taken for death

    here.finish(*module, "work", job)
    outcome = json.loads(here.finish(*module, "count").splitlines()[-1])
    # The other project with its owner, two labels and the event of its making; two of this one's end.
    assert outcome == {
        "left": {"Project": 1, "Item": 7, "Choice": 2, "Membership": 1, "AuditEvent": 3},
        "files": 0,
    }
