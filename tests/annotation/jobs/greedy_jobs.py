"""Kinds of jobs for a worker whose memory is limited."""

import subprocess
import sys
from typing import Any

from annotation.jobs import jobs
from annotation.jobs.context import JobContext

MEGABYTE = 1024**2


def greedy(context: JobContext) -> dict[str, Any]:
    """Keeps a part of its work, and then wants more than there is."""
    with context.chunk(done=1):
        pass
    held = []
    while True:
        held.append(bytearray(64 * MEGABYTE))


def modest(context: JobContext) -> dict[str, Any]:
    """Tells how much a program that it starts may have."""
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return {"bytes": len(bytearray(64 * MEGABYTE)), "limit": int(said)}


jobs.register("greedy", greedy, title="Greedy")
jobs.register("modest", modest, title="Modest")
