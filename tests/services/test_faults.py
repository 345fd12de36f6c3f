"""benchmarks/faults.py with few kills: servers and workers of its own are killed, and nothing is lost.

All points of all jobs take minutes: they are left to the script.
"""

import subprocess
import sys

import pytest

from testbed.servers import PostgresServer, RedisServer
from tests.services.conftest import ROOT
from tests.support import missing

pytestmark = [pytest.mark.postgres, pytest.mark.redis]


def rows_of(*options: str) -> dict[str, dict[str, int]]:
    """The rows of its table by their fault; fails the test where one of them shows a loss."""
    if PostgresServer.installed() is None:
        missing("postgres", "No PostgreSQL server is installed.")
    if RedisServer.installed() is None:
        missing("redis", "No Redis server is installed.")
    if not sys.platform.startswith("linux"):
        pytest.skip("finds the worker's processes in /proc")
    command = [sys.executable, "benchmarks/faults.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    (_, *columns), *rows = lines
    found = {fault: dict(zip(columns, map(int, figures), strict=True)) for fault, *figures in rows}
    assert not any(row["lost"] or row["doubled"] or row["unexplained"] for row in found.values())
    return found


def test_a_killed_worker_loses_and_doubles_nothing() -> None:
    rows = rows_of("--faults", "kills", "--kills", "4", "--jobs", "prepare_run")
    killed = [row for name, row in rows.items() if name.startswith("prepare_run")]
    assert sum(row["times"] for row in killed) == 4
    # Calls were under way at some of the kills, and at the most those were made again.
    assert 0 < sum(row["extra"] for row in killed) <= sum(row["in flight"] for row in killed)


@pytest.mark.slow
def test_no_other_fault_loses_or_doubles_anything() -> None:
    rows = rows_of("--faults", *["twice", "broker", "database", "stale", "frozen"])
    assert len(rows) == 9
    assert all(row["times"] and row["jobs"] for row in rows.values())
    assert rows["every message four times, two workers"]["extra"] == 0
