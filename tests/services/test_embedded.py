"""`manage.py serve` as a user starts it, and what happens when its worker is killed in the middle."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from testbed.servers import free_port, status_of
from tests.template_database import copy_sqlite

ROOT = Path(__file__).resolve().parents[2]
ROWS = 24_000
WORKER_PROCESSES = 2  # Celery's own and the one that runs the tasks
SET_UP = """
import django; django.setup()
import io, sys
from decimal import Decimal
from annotation.models import User
from annotation.common.files import store_file
from annotation.imports.upload import ColumnMapping, start_import
from annotation.projects.manage import ChoiceSpec, create_project
from routing.sources.manage import save_source
user = User.objects.create_user("manager")
project = create_project(user=user, name="Kill", choices=[ChoiceSpec("yes"), ChoiceSpec("no")])
with open(sys.argv[1], "rb") as file:
    stored = store_file(project=project, content=file, original_name="items.csv", media_type="text/csv")
mapping = ColumnMapping(id_column="id", text_column="text")
start_import(project=project, user=user, stored_file=stored, mapping=mapping)
"""
START_RUN = """
import django; django.setup()
from decimal import Decimal
from annotation.models import Project
from routing.runs.start import start_run
from routing.sources.manage import save_source
project = Project.objects.get()
user = project.created_by
for position, column in enumerate(("fast", "slow"), start=1):
    params = {"label_column": column, "confidence_column": "confidence"}
    save_source(project=project, user=user, name=column, backend="recorded", params=params,
                cost_per_label=Decimal(position), position=position)
start_run(project=project, user=user, epsilon=Decimal("0.05"), alpha=Decimal("0.05"), m=300, p=Decimal("0.9"))
"""


class Site:
    """An installation of its own, in a folder, with its server as a child process."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.port = free_port()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HYPAC_", "DJANGO_"))
        }
        for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
            kept.pop(name, None)
        self.environment = kept | {
            "HYPAC_VAR": str(folder),
            "HYPAC_JOB_STALE_SECONDS": "5",
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "PYTHONPATH": str(ROOT),
            **environment,
        }
        command = [sys.executable, "manage.py", "serve", "--port", str(self.port)]
        with open(folder / "serve.log", "ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # Tests run in the background may be told to ignore Ctrl-C, and children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def healthy(self) -> bool:
        assert self.process.poll() is None, (self.folder / "serve.log").read_text()
        return status_of(f"http://127.0.0.1:{self.port}/healthz") == 200

    def python(self, code: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def value(self, query: str, *values: Any) -> Any:
        with contextlib.closing(
            sqlite3.connect(f"file:{self.folder / 'hypac.sqlite3'}?mode=ro", uri=True, timeout=30)
        ) as database:
            return database.execute(query, values).fetchone()[0]

    def worker_processes(self) -> list[int]:
        """Ids of the worker's processes, parent and child, found by their command line and folder."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes()
                    environment = (entry / "environ").read_bytes().split(b"\0")
                    if b"celery" in command and f"HYPAC_VAR={self.folder}".encode() in environment:
                        found.append(int(entry.name))
        return found

    def kill_worker(self) -> None:
        victims = self.worker_processes()
        assert victims
        for process in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_worker_during(self, code: str, *arguments: str, once: Callable[[], Any]) -> None:
        """Run `code`, and kill the worker when `once` holds. Until then it works in short turns and stands
        still while it is looked at: on a slow machine, too, it is not killed too late.
        """
        until(lambda: len(self.worker_processes()) == WORKER_PROCESSES, 300, "the worker")
        victims = self.worker_processes()

        def tell(what: signal.Signals) -> None:
            for process in victims:
                os.kill(process, what)

        # Not awaited while the worker stands still: it may hold a lock that the code needs.
        with subprocess.Popen(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, env=self.environment
        ) as caller:
            end = time.monotonic() + 300
            while not once():
                tell(signal.SIGCONT)
                assert time.monotonic() < end, "the work did not begin"
                time.sleep(0.05)
                tell(signal.SIGSTOP)
            tell(signal.SIGKILL)
        assert caller.returncode == 0

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not sys.platform.startswith("linux"):
        pytest.skip("finds the worker's processes in /proc")
    copy_sqlite(tmp_path / "hypac.sqlite3")
    site = Site(tmp_path)
    try:
        until(site.healthy, 400)
        yield site
    finally:
        site.stop()


def until(condition: Callable[[], Any], seconds: float, what: str = "") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what or condition}"
        time.sleep(0.1)


def test_a_killed_worker_loses_and_doubles_nothing(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    lines = (
        f"id{i},text number {i},yes,{'no' if i % 9 == 0 else 'yes'},{i % 1000 / 1000}" for i in range(ROWS)
    )
    file.write_text("id,text,fast,slow,confidence\n" + "\n".join(lines) + "\n")

    imported = "select count(*) from annotation_job where done > 0"
    site.kill_worker_during(SET_UP, str(file), once=lambda: site.value(imported))
    assert site.value("select state from annotation_job") != "done", "killed too late"
    until(lambda: site.value("select state from annotation_job") == "done", 300, "import")
    assert site.value("select count(distinct external_id) from annotation_item") == ROWS
    assert site.value("select count(*) from annotation_item") == ROWS
    assert site.value("select max(position) from annotation_item") == ROWS - 1

    predicted = "select count(*) from routing_prediction"
    site.kill_worker_during(START_RUN, once=lambda: site.value(predicted))
    assert site.value("select state from routing_run") == "preparing", "killed too late"
    until(lambda: site.value("select state from routing_run") == "calibrating", 300, "models")
    fast = site.value("select id from routing_source where position = 1")
    query = "select count(distinct item_id) from routing_prediction where source_id = ?"
    assert site.value(query, fast) == ROWS
    assert site.value("select count(*) from routing_prediction where source_id = ?", fast) == ROWS
    # One prediction, one payment: the ledger says what the rows say, to the cent.
    paid = site.value("select sum(amount) from routing_spend")
    assert float(paid) == float(site.value("select sum(cost) from routing_prediction"))
    assert site.value("select sum(quantity) from routing_spend") == site.value(
        "select count(*) from routing_prediction"
    )
    assert site.value("select count(*) from annotation_workitem") == site.value("select n from routing_draw")


def test_serve_ends_its_children_and_says_why_it_cannot_start(site: Site) -> None:
    # The first time takes minutes on a slow machine: not in silence.
    assert (site.folder / "serve.log").read_text().startswith("Preparing the database")
    twin = [sys.executable, "manage.py", "serve", "--port", str(free_port())]
    second = subprocess.run(
        twin, cwd=ROOT, env=site.environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert second.returncode != 0
    assert "already runs on this data" in second.stderr

    # Told at once, before minutes go into the database.
    other = site.environment | {"HYPAC_VAR": str(site.folder / "other")}
    taken = [sys.executable, "manage.py", "serve", "--port", str(site.port)]
    third = subprocess.run(
        taken, cwd=ROOT, env=other, capture_output=True, text=True, timeout=300, check=False
    )
    assert third.returncode != 0
    assert third.stdout == ""
    assert f"Port {site.port}" in third.stderr
    assert "--port" in third.stderr

    site.process.send_signal(signal.SIGINT)
    assert site.process.wait(120) == 0
    until(lambda: not site.worker_processes(), 60, "the worker to end")


def test_it_runs_under_a_name_of_its_own_behind_a_proxy(tmp_path: Path) -> None:
    copy_sqlite(tmp_path / "hypac.sqlite3")
    site = Site(
        tmp_path,
        DJANGO_ALLOWED_HOSTS=".labels.example.org",
        HYPAC_HTTPS="1",
        HYPAC_BEHIND_PROXY="1",
        HYPAC_MAX_UPLOAD_BYTES="1000000",
    )
    try:
        until(lambda: "HyPAC runs at" in (tmp_path / "serve.log").read_text() or site.process.poll(), 400)
        with httpx.Client(base_url=f"http://127.0.0.1:{site.port}", timeout=60) as client:
            named = {"Host": "labels.example.org"}
            assert client.get("/healthz", headers=named).status_code == 200
            assert client.get("/login/", headers=named).status_code == 301
            assert client.get("/login/", headers={**named, "X-Forwarded-Proto": "https"}).status_code == 200
            # Refused before the web server has read it, so that no disk fills up.
            assert client.post("/login/", headers=named, content=b"x" * 3_000_000).status_code == 413
    finally:
        site.stop()
