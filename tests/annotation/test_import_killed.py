"""A worker that is killed with SIGKILL in the middle of an import: nothing lost, nothing doubled."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.annotation.killed_worker import ROWS

ROOT = Path(__file__).resolve().parents[2]


def test_an_import_goes_on_where_its_worker_was_killed(tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}

    def ask(statement: str) -> tuple[int, ...]:
        with closing(sqlite3.connect(tmp_path / "hypac.sqlite3", timeout=30)) as database:
            return tuple(database.execute(statement).fetchone())

    kill_twice(environment | {"HYPAC_VAR": str(tmp_path)}, ask)


def kill_twice(environment: dict[str, str], ask: Callable[[str], tuple[int, ...]]) -> None:
    """The whole story in an installation of its own. `ask` gives the one row of a statement."""
    environment = environment | {
        "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
        "HYPAC_JOB_STALE_SECONDS": "1",
        "HYPAC_LOG_LEVEL": "ERROR",
    }

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(*arguments: str) -> str:
        process = start(*arguments)
        output, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
        return output

    finish("manage.py", "migrate", "--no-input", "--verbosity=0")
    module = ("-m", "tests.annotation.killed_worker")
    job = finish(*module, "prepare").split()[-1]

    done = 0
    kills = 0
    while kills < 2:
        worker = start(*module, "work", job)
        before = done
        while done <= before and worker.poll() is None:
            time.sleep(0.002)
            (done,) = ask("SELECT done FROM annotation_job")
        worker.kill()
        worker.communicate()
        done, items = ask("SELECT done, (SELECT count(*) FROM annotation_item) FROM annotation_job")
        assert before < done < ROWS  # it was killed in the middle,
        assert items == done - done // 10  # and what it said to be done was done
        kills += 1
        time.sleep(1.5)  # until its silence is taken for death

    outcome = json.loads(finish(*module, "work", job).splitlines()[-1])
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
        },
        "items": 2700,
        "positions": 2700,
        "problems": 329,
    }
