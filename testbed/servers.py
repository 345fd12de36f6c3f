"""PostgreSQL and Redis servers of the tests' own: on free loopback ports, in temporary folders.

They are started from installed programs and ended by the test run that started them; a server that was
running before is never touched. A command can be run with one:

    python -m testbed.servers postgres redis -- COMMAND ...

gives COMMAND the variables DATABASE_URL and CELERY_BROKER_URL.
"""

import argparse
import contextlib
import http.client
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg
import redis
from psycopg import sql

LOOPBACK = "127.0.0.1"
START_SECONDS = 180
STOP_SECONDS = 120
# Below those that systems give to outgoing connections and to whoever asks for any: such a one could be taken
# before its server listens on it.
PORTS = range(12_000, 32_000)


class ServerError(RuntimeError):
    """A server did not start or stop; the message ends with what it wrote."""


def free_port() -> int:
    """A TCP port on the loopback interface that was free a moment ago, and that hardly anybody else takes."""
    chance = random.SystemRandom()  # test processes that run beside each other must not choose the same
    while True:
        port = chance.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def status_of(url: str, *, seconds: float = 10) -> int | None:
    """What a server on this machine answers a GET with; None: nothing yet.

    For whoever asks again and again: `httpx.get` makes a TLS context each time, 20 ms of a processor.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=seconds)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@contextlib.contextmanager
def dead_port() -> Iterator[int]:
    """A TCP port on the loopback interface on which nobody listens, and that nobody else takes meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


class _Server:
    """One child process with a folder of its own, which outlives `stop` and `kill` and goes with `close`."""

    name: str
    address = LOOPBACK
    stop_signal = signal.SIGTERM
    start_seconds: float = START_SECONDS

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"hypac-{self.name}-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def ping(self) -> bool:
        raise NotImplementedError

    def popen_options(self) -> dict[str, Any]:
        return {}

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            # A session of its own: Ctrl-C goes to the test run, which then ends the server in order.
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self.popen_options(),
            )
        deadline = time.monotonic() + self.start_seconds
        while not self.ping():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"{self.name} did not start:\n{self.log_tail()}")
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Shut down in order."""
        self._end(self.stop_signal)

    def kill(self) -> None:
        """Shut down as by a power cut: nothing is flushed or told to clients."""
        self._end(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP, say: it hangs until SIGCONT."""
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerError(f"{self.name} had to be killed:\n{self.log_tail()}") from None

    def close(self) -> None:
        """Stop and remove the folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def log_tail(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else "(it wrote nothing)"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PostgresServer(_Server):
    """An empty PostgreSQL cluster with the superuser `hypac`, who needs no password.

    Started by root it runs as the system's `postgres` or `nobody`: PostgreSQL refuses to run as root.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": ends open sessions, then writes everything

    def __init__(self, binaries: Path) -> None:
        super().__init__()
        self.binaries = binaries
        self.data = self.folder / "data"

    @staticmethod
    def installed() -> Path | None:
        """Folder of the newest installed server's programs; None: there is none."""
        folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
        if on_path := shutil.which("postgres"):
            folders.append(Path(on_path).resolve().parent)
        folders = [folder for folder in folders if (folder / "initdb").exists()]
        return max(folders, key=_version, default=None)

    def popen_options(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        account = _account("postgres", "nobody")
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def start(self) -> None:
        if not self.data.exists():
            if account := self.popen_options():
                os.chown(self.folder, account["user"], account["group"])
            outcome = subprocess.run(
                [
                    *(str(self.binaries / "initdb"), "--pgdata", str(self.data), "--username=hypac"),
                    *("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
                ],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                cwd=self.folder,
                check=False,
                **self.popen_options(),
            )
            if outcome.returncode != 0:
                raise ServerError(f"initdb failed:\n{outcome.stdout}{outcome.stderr}")
        super().start()

    def kill(self) -> None:
        # PostgreSQL's own "immediate": no checkpoint, crash recovery at the next start. After a SIGKILL of
        # the parent its children would live on and keep the data folder locked.
        self._end(signal.SIGQUIT)

    def command(self) -> list[str]:
        options = {
            "listen_addresses": self.address,
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            # What a crash of the machine would lose is of no interest here.
            "fsync": "off",
            "full_page_writes": "off",
            # What tests roll back it would count as empty tables, and the next test's rows would be read one
            # by one: some took minutes.
            "autovacuum": "off",
        }
        settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *settings]

    def ping(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=20).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str) -> str:
        return f"postgres://hypac@{self.address}:{self.port}/{database}"


class RedisServer(_Server):
    """An empty Redis that keeps nothing on disk."""

    name = "redis"

    def __init__(self, program: Path) -> None:
        super().__init__()
        self.program = program

    @staticmethod
    def installed() -> Path | None:
        """The installed server program; None: there is none."""
        found = shutil.which("redis-server")
        return Path(found) if found else None

    def command(self) -> list[str]:
        options = {
            "--bind": self.address,
            "--protected-mode": "no",
            "--port": str(self.port),
            "--save": "",
            "--appendonly": "no",
            "--dir": str(self.folder),
        }
        return [str(self.program), *(part for pair in options.items() for part in pair)]

    def ping(self) -> bool:
        client = redis.Redis.from_url(self.url())
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()

    def url(self) -> str:
        return f"redis://{self.address}:{self.port}/0"


def create_database(server_url: str, name: str) -> str:
    """Make an empty database on the server that `server_url` names; returns its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def drop_database(server_url: str, name: str) -> None:
    """Remove a database, ending the sessions that are still open on it."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _account(*names: str) -> pwd.struct_passwd:
    for name in names:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError(
        f"PostgreSQL does not run as root, and the system has none of the users {', '.join(names)}."
    )


def _version(binaries: Path) -> tuple[int, ...]:
    """(15,) for /usr/lib/postgresql/15/bin; () for a folder whose name tells nothing."""
    return tuple(int(part) for part in binaries.parent.name.split(".") if part.isdigit())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.servers", description=__doc__)
    parser.add_argument("servers", nargs="+", choices=["postgres", "redis"])
    if "--" not in arguments or arguments[-1] == "--":
        parser.error("give the command to run after --")
    split = arguments.index("--")
    wanted = parser.parse_args(arguments[:split]).servers
    environment = dict(os.environ)
    with ExitStack() as stack:
        if "postgres" in wanted:
            if (binaries := PostgresServer.installed()) is None:
                parser.error("no PostgreSQL server is installed (Debian: apt install postgresql)")
            server = stack.enter_context(PostgresServer(binaries))
            environment["DATABASE_URL"] = create_database(server.url("postgres"), "hypac")
        if "redis" in wanted:
            if (program := RedisServer.installed()) is None:
                parser.error("no Redis server is installed (Debian: apt install redis-server)")
            environment["CELERY_BROKER_URL"] = stack.enter_context(RedisServer(program)).url()
        return subprocess.run(arguments[split + 1 :], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
