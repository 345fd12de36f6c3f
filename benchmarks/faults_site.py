"""What benchmarks/faults.py breaks: servers, a worker and two reconcilers of its own, and model servers that
answer only when they are told to.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from runner import ROOT, children_of

from testbed.hosts import until, worker_command
from testbed.scripted_replies import completion, model_list
from testbed.scripted_server import Reply, Request, ScriptedServer

_names = count(1)


# --- Models -------------------------------------------------------------------------------------------------


class Model:
    """A model server with a log of its calls. Held, it keeps every call waiting, and while `lists` is clear
    every question for its list of models.
    """

    def __init__(self, name: str, answer: Callable[[int], tuple[str, float]]) -> None:
        self.name = name
        self._answer = answer
        self._open = threading.Condition()
        self._left: int | None = None  # calls that are still answered; None: all
        self.lists = threading.Event()
        self.lists.set()
        self.waiting = self.lists_waiting = 0  # calls that wait now, and questions for the list of models
        self.calls: Counter[int] = Counter()  # begun, by item
        self.server = ScriptedServer(self._reply, models=[name])
        self.server.route("GET", "/v1/models", self._list)

    def hold(self, after: int = 0) -> None:
        """Answer so many calls more, and let the others wait."""
        with self._open:
            self._left = after

    def release(self) -> None:
        """Answer every call."""
        with self._open:
            self._left = None
            self._open.notify_all()

    def _list(self, _request: Request) -> Reply:
        self.lists_waiting += 1
        self.lists.wait()
        self.lists_waiting -= 1
        return Reply(body=model_list([self.name]))

    def _reply(self, request: Request) -> dict[str, Any]:
        number = int(re.findall(r"\d+", request.prompt)[-1])
        with self._open:
            self.calls[number] += 1
            self.waiting += 1
            self._open.wait_for(self._may_answer)
            self.waiting -= 1
        text, log_probability = self._answer(number)
        tokens = [(text, log_probability)]
        return completion(text, asked=request.body, model=self.server.models[0], tokens=tokens)

    def _may_answer(self) -> bool:
        if self._left:
            self._left -= 1
            return True
        return self._left is None


# --- The database -------------------------------------------------------------------------------------------

# Where a commit can be held. Before: the statement that inserts waits. At: the COMMIT waits.
GATED = (
    "annotation_item",
    "routing_prediction",
    "annotation_workbatch",
    "routing_certificate",
    "routing_route",
    "routing_delivery",
)
GATE = """
CREATE OR REPLACE FUNCTION faults_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN NULL; END $$;
"""
TRIGGERS = """
CREATE TRIGGER faults_before BEFORE INSERT ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION faults_gate({before});
CREATE CONSTRAINT TRIGGER faults_at AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION faults_gate({at});
"""


class Gates:
    """Advisory locks on which the triggers above wait while one is closed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = psycopg.connect(url, autocommit=True)

    def install(self) -> None:
        """Make the triggers, in a database whose tables are there."""
        self._connection.execute(GATE)
        for table in GATED:
            keys = {"before": key_of(table), "at": key_of(table, at_commit=True)}
            self._connection.execute(TRIGGERS.format(table=table, **keys))  # type: ignore[arg-type]

    def close(self, key: int) -> None:
        self._connection.execute("SELECT pg_advisory_lock(%s)", [key])

    def reached(self, key: int) -> bool:
        """Whether somebody waits before it."""
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
        row = self._connection.execute(query, [key]).fetchone()
        return bool(row and row[0])

    def unlock(self, key: int) -> None:
        self._connection.execute("SELECT pg_advisory_unlock(%s)", [key])

    def reconnect(self) -> None:
        """After the server was started again: all locks have gone with it."""
        self.end()
        self._connection = psycopg.connect(self._url, autocommit=True)

    def end(self) -> None:
        self._connection.close()


def key_of(table: str, *, at_commit: bool = False) -> int:
    return 7000 + 2 * GATED.index(table) + at_commit


# --- The worker ---------------------------------------------------------------------------------------------


class Worker:
    """A worker in a session of its own."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None
        self._seen: set[int] = set()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*worker_command(f"faults{next(_names)}@%h"), "--loglevel=warning"],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def child(self) -> int:
        """The process that does jobs, once it is there."""
        found = until(lambda: children_of(self.pid), "a child of the worker")
        self._seen.update(found)
        return int(found[0])

    def kill(self, victim: str) -> None:
        """SIGKILL the "child", the "parent" or "both"; a worker without a parent is started again."""
        child = self.child()
        if victim != "child":
            self.send(signal.SIGKILL)
            assert self.process is not None
            self.process.wait()
        if victim != "parent":
            _kill(child, *self.left_over())  # one without a parent may have the job
        if victim != "child":
            self.start()

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def send_child(self, number: signal.Signals) -> None:
        os.kill(self.child(), number)

    def left_over(self) -> list[int]:
        """Processes of workers that were killed and that live on."""
        now = set(children_of(self.pid)) if self.process and self.process.poll() is None else set()
        return [pid for pid in self._seen - now if _lives(pid)]

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self._seen.update(children_of(self.pid))
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        _kill(*filter(_lives, self._seen))


def _kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- Reconcilers --------------------------------------------------------------------------------------------


class Reconcilers:
    """Two at a time, as on two hosts."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        from django.db import connection

        from annotation.jobs import jobs

        while not self._end.wait(0.5):
            try:
                jobs.reconcile()
            except Exception:
                connection.close()  # the database is being started again
        connection.close()

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(10)
