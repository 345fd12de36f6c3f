"""How much memory a process of a worker may take: a job that wants more fails, and the machine stays up.

The limit is of what a process may write to (RLIMIT_DATA on Linux), not of addresses: libraries reserve many
times of those. It is the soft one, so that a program that is started with a limit of its own sets that.
"""

import contextlib
import importlib.util
import logging
import os
import resource
import sys
import threading
from pathlib import Path

log = logging.getLogger(__name__)

LEAST_MEGABYTES = 1024
MEGABYTE = 1024**2
# Of a thread that Python starts: room for functions that call each other as often as Python lets them (a
# thousand times, in C as well), and for 512 calls of a model at a time beside the rest of a process.
STACK = 512 * 1024
# What a control group allows: of version 2, of version 1.
GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def default_megabytes() -> int:
    """Half of the memory of the machine or its container, 1 GiB at least. None (0) where vLLM is installed:
    a model in the worker's own process takes what the operator has planned for it.
    """
    if importlib.util.find_spec("vllm") is not None:
        return 0
    return max(_memory() // 2 // MEGABYTE, LEAST_MEGABYTES)


def most_resident(megabytes: int) -> int | None:
    """Kilobytes in memory from which a process is replaced after its job: what it took it may keep."""
    return megabytes * 1024 * 3 // 4 or None


def limit(megabytes: int) -> None:
    """Of this process, and of those that it starts; 0: none."""
    if not megabytes:
        return
    most = megabytes * MEGABYTE
    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    _keep_stacks_small()
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    except (ValueError, OSError):
        log.warning("This system sets no limit to the memory of a worker.", exc_info=True)


def _keep_stacks_small() -> None:
    """The limit counts each thread's stack, 8 MB as a rule, whatever is used of it. Python 3.13 alone lets
    functions in C call each other ten thousand times without looking at the stack: there it stays.
    """
    if sys.version_info[:2] != (3, 13):
        threading.stack_size(STACK)


def _memory() -> int:
    """Bytes of memory that there are."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in GROUPS:
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            found = min(found, int(path.read_text()))
    return found
