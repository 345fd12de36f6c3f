"""The database and the web server for benchmarks/load.py."""

import argparse
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def database(url: str, *, as_it_is: bool) -> Iterator[str]:
    """A new database on the server of `url`, dropped afterwards; or that database itself."""
    from testbed.servers import create_database, drop_database

    if as_it_is:
        yield url
        return
    name = f"hypac_load_{uuid.uuid4().hex[:8]}"
    try:
        yield create_database(url, name)
    finally:
        drop_database(url, name)


@contextmanager
def server(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], float]]]:
    """The address of a web server on this process's environment, and what asks for the seconds of processor
    time that it has taken.
    """
    from testbed.servers import free_port

    port = free_port()
    address = f"http://127.0.0.1:{port}"
    if options.web == "waitress":  # as `manage.py serve` starts it, without the worker
        command = ["waitress", f"--listen=127.0.0.1:{port}", f"--threads={options.threads}"]
    else:  # as docs/deployment.md starts it
        command = ["gunicorn", "-c", "python:hypac_site.gunicorn", f"--bind=127.0.0.1:{port}"]
        command += [f"--workers={options.processes}", f"--threads={options.threads}"]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, "hypac_site.wsgi:application"],
        cwd=ROOT,
        env=dict(os.environ),
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"{address}/healthz", process)
        yield address, lambda: processor_time(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def processor_time(pid: int) -> float:
    """Seconds that a process and its children have had so far (Linux); 0 where that cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_time(int(child)) for child in children)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit("The web server ended while it started.")
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    sys.exit("The web server did not answer within a minute.")
