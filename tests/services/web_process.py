"""The web servers as processes of their own, on the database of a test."""

import contextlib
from collections.abc import Iterator

from hypac_site.supervisor import BEHIND_PROXY, web_command
from testbed.web_server import WebServer


@contextlib.contextmanager
def serving(server: str, environment: dict[str, str]) -> Iterator[int]:
    """The port of "waitress", as `manage.py serve` starts it, or of "gunicorn" with one process."""
    running = WebServer(environment=environment | {"WEB_CONCURRENCY": "1"})
    command = web_command(host="127.0.0.1", port=running.port, threads=4)
    if server == "gunicorn":
        command[1:] = ["-m", "gunicorn", "-c", "python:hypac_site.gunicorn", "hypac_site.wsgi"]
    elif environment.get("HYPAC_BEHIND_PROXY") == "1":
        command[-1:-1] = BEHIND_PROXY
    running.arguments = tuple(command[1:])
    with running:
        yield running.port
