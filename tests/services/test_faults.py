"""benchmarks/faults.py with few kills: servers and workers of its own are killed, and nothing is lost.

All points of all jobs take minutes: they are left to the script.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.servers import PostgresServer, RedisServer
from tests.services.conftest import ROOT
from tests.support import missing

pytestmark = [pytest.mark.postgres, pytest.mark.redis]


def rows_of(folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    """The rows of its table by their fault; fails the test where one of them shows a loss."""
    if PostgresServer.installed() is None:
        missing("postgres", "No PostgreSQL server is installed.")
    if RedisServer.installed() is None:
        missing("redis", "No Redis server is installed.")
    if not sys.platform.startswith("linux"):
        pytest.skip("finds the worker's processes in /proc")
    written = folder / "rows.json"
    command = [sys.executable, "benchmarks/faults.py", *options, "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["fault"]: row for row in json.loads(written.read_text())}
    assert not any(
        row["lost"] or row["doubled"] or row["unexplained"] or row["wrong"] for row in rows.values()
    )
    return rows


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "--faults", "kills", "--kills", "4", "--jobs", "prepare_run")
    killed = [row for name, row in rows.items() if name.startswith("prepare_run")]
    assert sum(row["times"] for row in killed) == 4
    # Calls were under way at some of the kills, and at the most those were made again.
    assert 0 < sum(row["extra"] for row in killed) <= sum(row["in_flight"] for row in killed)


@pytest.mark.slow
def test_no_other_fault_loses_or_doubles_anything(tmp_path: Path) -> None:
    others = "twice broker unacknowledged database stale frozen poison terminate cancel"
    rows = rows_of(tmp_path, "--faults", *others.split())
    assert len(rows) == 13
    assert all(row["times"] and row["jobs"] for row in rows.values())
    assert rows["every message four times, two workers"]["extra"] == 0
    assert rows["worker told to end in its calls"]["extra"] == 0
