"""The web servers as processes of their own, on the database of a test."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from hypac_site.supervisor import BEHIND_PROXY, web_command
from testbed.servers import free_port
from tests.services.conftest import ROOT


@contextlib.contextmanager
def serving(server: str, environment: dict[str, str], folder: Path) -> Iterator[int]:
    """The port of "waitress", as `manage.py serve` starts it, or of "gunicorn" with one process."""
    port = free_port()
    command = web_command(host="127.0.0.1", port=port, threads=4)
    if server == "gunicorn":
        command = [sys.executable, "-m", "gunicorn", "-c", "python:hypac_site.gunicorn", "hypac_site.wsgi"]
    elif environment.get("HYPAC_BEHIND_PROXY") == "1":
        command[-1:-1] = BEHIND_PROXY
    own = {"HYPAC_WEB_BIND": f"127.0.0.1:{port}", "WEB_CONCURRENCY": "1", "PYTHONPATH": str(ROOT)}
    log = folder / "web.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(command, cwd=ROOT, env=environment | own, stdout=lines, stderr=lines)
    try:
        while not _healthy(port):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def _healthy(port: int) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=10).status_code == 200
    return False
