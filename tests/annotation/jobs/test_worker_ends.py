"""How the processes of a worker learn that it is to end."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.database

# Children that do nothing but look are killed, wherever they are in it. Then the worker says that it ends.
KILLED_WHILE_LOOKING = """
import os, signal, time
from hypac_site import celery
for _ in range(10):
    if (pid := os.fork()) == 0:
        while True:
            celery.is_ending()
    time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
if (pid := os.fork()) == 0:
    while not celery.is_ending():
        time.sleep(0.001)
    os._exit(0)
assert not celery.is_ending()
celery._let_go()
assert celery.is_ending()
os.waitpid(pid, 0)
"""


def test_a_process_that_is_killed_while_it_looks_stops_nobody() -> None:
    subprocess.run([sys.executable, "-c", KILLED_WHILE_LOOKING], check=True, timeout=300)
