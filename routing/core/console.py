"""Output of a command into a pipe that nobody reads to its end, as in ``... | head``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNREAD = 141
"""Exit code of a program that a closed pipe ends: 128 + 13, the number of SIGPIPE."""


@contextmanager
def unread_output() -> Iterator[None]:
    """End the program without a traceback, with the exit code `UNREAD`, where its reader has gone.

    Raises
    ------
    SystemExit
        The pipe behind the standard output is closed.
    """
    try:
        try:
            yield
        finally:
            # Here, for else the interpreter meets the closed pipe when it ends, and complains.
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(UNREAD) from None
