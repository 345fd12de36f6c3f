"""What a process that was killed left in the temporary folder is removed; what one still uses is not."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from annotation.common import own_folders
from annotation.common.own_folders import HELD, OwnFolder, remove_abandoned

HOLDS = """
import fcntl, sys
held = open(sys.argv[1], "wb")
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(own_folders, "YOUNG_SECONDS", 0)
    return tmp_path


def test_what_a_killed_process_left_goes_and_nothing_else(folder) -> None:
    left, other = folder / "hypac-own-hub-x", folder / "hypac-metrics-x"
    for one in (left, other):
        one.mkdir()
        (one / "large").write_bytes(b"x")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(left / HELD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert remove_abandoned() == 0
        os.kill(process.pid, signal.SIGKILL)
    assert remove_abandoned() == 1
    assert (left.exists(), other.exists()) == (False, True)


def test_what_is_in_use_stays_and_ends_by_itself() -> None:
    with OwnFolder("hub") as name:
        OwnFolder("push").cleanup()
        assert remove_abandoned() == 0
        assert (Path(name) / HELD).exists()
    assert not Path(name).exists()


def test_one_that_is_only_being_made_stays(folder, monkeypatch) -> None:
    (folder / "hypac-own-hub-y").mkdir()
    monkeypatch.setattr(own_folders, "YOUNG_SECONDS", 60)
    assert remove_abandoned() == 0
    monkeypatch.setattr(own_folders, "YOUNG_SECONDS", 0)
    assert remove_abandoned() == 1


def test_a_link_leads_nowhere(folder) -> None:
    (folder / "kept").mkdir()
    (folder / "hypac-own-hub-z").symlink_to(folder / "kept")
    assert remove_abandoned() == 0
    assert (folder / "kept").exists()
