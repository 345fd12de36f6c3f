"""Web server, worker and reconciler of the embedded default, as one thing that starts and stops together."""

import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from django.conf import settings
from django.db import close_old_connections

from annotation import maintenance
from annotation.errors import HypacError
from hypac_site.middleware import largest_body

log = logging.getLogger(__name__)

RECONCILE_SECONDS = 5.0
LOCAL = ("127.0.0.1", "localhost", "0.0.0.0", "::")  # noqa: S104 - only compared with
STOP_SECONDS = 15.0
# All queues, so that one worker serves the embedded default whatever backends a project uses.
QUEUES = "default,gpu"
PR_SET_PDEATHSIG = 1
# Without these waitress drops what the proxy says, and every request seems to come over plain HTTP.
BEHIND_PROXY = ["--trusted-proxy=*", "--trusted-proxy-headers=x-forwarded-proto x-forwarded-for"]
_libc = ctypes.CDLL(None)  # loaded here: nothing may be loaded between fork and exec


class ServeError(HypacError):
    """The servers cannot be started."""


@dataclass
class Child:
    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restarts: int = 0

    def start(self) -> None:
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            cwd=settings.BASE_DIR,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            # Ctrl-C reaches the supervisor alone, which then stops its children in order.
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        if self.process is None or not self.running:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("%s did not stop within %.0f s and is killed", self.name, STOP_SECONDS)
            self.process.kill()
            self.process.wait()


@dataclass
class Supervisor:
    """Starts the children, starts one again that died, and reconciles jobs while it waits."""

    host: str
    port: int
    threads: int = 8
    concurrency: int = 1
    children: list[Child] = field(default_factory=list)
    _reconciled_at: float = 0.0

    @property
    def address(self) -> str:
        host = "localhost" if self.host in LOCAL else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Start web server and worker, and return once the web server answers. Raises ServeError.

        The web server ends where its port is taken meanwhile; `require_free_port` says so in words.
        """
        web = web_command(host=self.host, port=self.port, threads=self.threads)
        worker = [sys.executable, "-m", "celery", "-A", "hypac_site", "--quiet", "worker", "-Q", QUEUES]
        worker += [
            "-c",
            str(self.concurrency),
            "--loglevel",
            "warning",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",  # an event to a broker that hangs would hold up the worker
        ]
        self.children = [Child("web server", web), Child("worker", worker)]
        for child in self.children:
            child.start()
        self._wait_until_healthy()

    def watch(self, seconds: float) -> None:
        """Look after the children and the jobs for so long."""
        until = time.monotonic() + seconds
        while True:
            self._tend()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.5))

    def stop(self) -> None:
        for child in reversed(self.children):
            child.stop()
        self.children = []

    def _tend(self) -> None:
        for child in self.children:
            if child.running:
                continue
            if time.monotonic() - child.started_at < 2 * (child.restarts + 1):
                continue  # a child that dies at once is given more and more time
            child.restarts += 1
            log.warning("The %s ended and is started again (%d).", child.name, child.restarts)
            child.start()
        if time.monotonic() - self._reconciled_at >= RECONCILE_SECONDS:
            self._reconciled_at = time.monotonic()
            close_old_connections()
            try:
                maintenance.run_maintenance()
            except Exception:
                log.exception("Jobs could not be reconciled; the next round tries again")

    def _wait_until_healthy(self, seconds: float = 300.0) -> None:
        until = time.monotonic() + seconds
        url = f"http://127.0.0.1:{self.port}/healthz"
        if self.host not in LOCAL:
            url = f"http://{self.host}:{self.port}/healthz"
        with httpx.Client(timeout=2, trust_env=False, headers={"Host": known_host()}) as client:
            while time.monotonic() < until:
                if not self.children[0].running:
                    self.stop()
                    raise ServeError("The web server ended while starting; what it printed above says why.")
                with contextlib.suppress(httpx.TransportError):
                    if client.get(url).status_code == 200:
                        return
                time.sleep(0.1)
        self.stop()
        raise ServeError(f"The web server did not answer at {url} within {seconds:.0f} s.")


@contextlib.contextmanager
def only_one(lock_file: Path) -> Iterator[None]:
    """Hold the lock of this state directory: two servers on one queue would get in each other's way."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(lock_file, "a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            other = handle.read().strip() or "another process"
            raise ServeError(f"HyPAC already runs on this data ({other}). Stop it first.") from None
        handle.truncate(0)
        handle.write(f"process {os.getpid()}")
        handle.flush()
        yield


def web_command(*, host: str, port: int, threads: int) -> list[str]:
    listen = [f"--listen={host}:{port}", f"--threads={threads}"]
    return [sys.executable, "-m", "waitress", *listen, *web_limits(), "hypac_site.wsgi:application"]


def web_limits() -> list[str]:
    """Options of waitress that follow from the settings."""
    options = [f"--max-request-body-size={largest_body()}"]
    if settings.SECURE_PROXY_SSL_HEADER:
        options += BEHIND_PROXY
    return options


def known_host() -> str:
    """A host name that the site answers to."""
    names = [name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    return names[0] if names else "localhost"


def interrupt_on_terminate() -> None:
    """Treat SIGTERM like Ctrl-C, so that both end through the same `finally` blocks."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def require_free_port(host: str, port: int) -> None:
    """Raise ServeError where nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:  # this one: no such port
            reason = getattr(error, "strerror", "") or str(error)
            raise ServeError(
                f"Port {port} of {host} cannot be used ({reason}). Choose another with --port."
            ) from None


def end_with_parent() -> None:
    """In a new child on Linux: be told to stop when the supervisor dies, even of SIGKILL."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
