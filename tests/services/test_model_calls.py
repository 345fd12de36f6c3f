"""`manage.py serve` with a model behind a server: a worker that is killed, told to end and told to pause
while calls are under way. Nothing is lost or doubled, and no more calls are paid twice than were under way.
"""

import os
import signal
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Condition

import pytest

from testbed.scripted_server import Request, ScriptedServer
from tests.services.test_embedded import Site, until
from tests.template_database import copy_sqlite

ITEMS = 240
STEP = 60
CONCURRENCY = 8
# One more for each four may wait to be asked, or to be stored (routing.sources.backends.concurrent).
IN_FLIGHT = 10
START = f"""
import django; django.setup()
import sys
from decimal import Decimal
from annotation.models import User
from annotation.projects.manage import ChoiceSpec, create_project
from routing.runs.start import start_run
from routing.sources.manage import save_source
from testbed.factories import make_items
user = User.objects.create_user("manager")
project = create_project(user=user, name="Calls", choices=[ChoiceSpec("cat"), ChoiceSpec("dog")])
make_items(project, [f"text number {{number}}" for number in range({ITEMS})])
params = {{"url": sys.argv[1], "model": "scripted", "concurrency": {CONCURRENCY}, "max_tokens": 8}}
save_source(project=project, user=user, name="Small", backend="openai_api", params=params,
            cost_per_label=Decimal("0.001"), cost_function="tokens", prices={{}})
start_run(project=project, user=user, epsilon=Decimal("0.2"), alpha=Decimal("0.2"), m=40, p=Decimal("0.9"),
          budget=Decimal(100000))
"""
STATE = "select state from annotation_job where kind = 'prepare_run'"
PAUSE = """
import django; django.setup()
import sys
from annotation.jobs import jobs
from annotation.models import Job
getattr(jobs, sys.argv[1])(job=Job.objects.get(kind="prepare_run"))
"""


class Gate:
    """Lets so many calls through; those after them wait for `open`."""

    def __init__(self, calls: int) -> None:
        self._limit, self._changed = calls, Condition()

    def __call__(self, request: Request) -> str:
        with self._changed:
            self._changed.wait_for(lambda: request.number <= self._limit, 600)
        return "cat"

    def open(self, calls: int) -> None:
        """Let so many more through."""
        with self._changed:
            self._limit += calls
            self._changed.notify_all()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate(STEP)
    yield gate
    gate.open(10**6)


@pytest.fixture
def server(gate: Gate) -> Iterator[ScriptedServer]:
    with ScriptedServer(gate) as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, server: ScriptedServer) -> Iterator[Site]:
    if not sys.platform.startswith("linux"):
        pytest.skip("finds the worker's processes in /proc")
    copy_sqlite(tmp_path / "hypac.sqlite3")
    site = Site(tmp_path, HYPAC_PRIVATE_HOSTS=f"127.0.0.1:{server.port}")
    try:
        until(site.healthy, 400)
        site.python(START, server.url)
        yield site
    finally:
        site.stop()


def stored(site: Site) -> int:
    return int(site.value("select count(*) from routing_prediction"))


def calls_are_under_way(site: Site, server: ScriptedServer, in_vain: int = 0) -> None:
    """Wait until the gate lets nothing more through: as many calls as may be are under way, what was answered
    before is stored, but for those whose worker was killed.
    """
    until(
        lambda: server.busy == CONCURRENCY and stored(site) == len(server.calls) - CONCURRENCY - in_vain,
        300,
        "calls under way",
    )
    assert stored(site) < ITEMS


def test_calls_under_way_are_all_that_a_run_can_lose(site, server, gate) -> None:
    calls_are_under_way(site, server)
    site.kill_worker()
    gate.open(STEP)
    # Another worker takes the run up, and what was under way is asked for again.
    calls_are_under_way(site, server, in_vain=CONCURRENCY)
    lost = "select coalesce(sum(calls), 0) from routing_reservation where state = 'lost'"
    known_as_lost = site.value(lost)
    assert CONCURRENCY <= known_as_lost <= IN_FLIGHT

    parents = [process for process in site.worker_processes() if parent_of(process) == site.process.pid]
    assert parents
    for process in parents:
        os.kill(process, signal.SIGTERM)
    gate.open(STEP)
    calls_are_under_way(site, server, in_vain=CONCURRENCY)  # none more: it stored them before it ended
    assert site.value(lost) == known_as_lost

    site.python(PAUSE, "pause")
    gate.open(10**6)
    until(lambda: site.value(STATE) == "paused", 120, "the pause")
    assert stored(site) == len(server.calls) - CONCURRENCY < ITEMS
    site.python(PAUSE, "resume")

    until(lambda: site.value("select state from routing_run") == "calibrating", 300, "the models")
    assert stored(site) == ITEMS
    assert site.value("select count(distinct item_id) from routing_prediction") == ITEMS
    assert site.value("select count(*) from routing_itemscore") == ITEMS
    paid = Decimal(str(site.value("select sum(amount) from routing_spend")))
    assert paid == Decimal(str(site.value("select sum(cost) from routing_prediction")))
    assert site.value("select sum(quantity) from routing_spend") == ITEMS
    assert site.value("select count(*) from routing_reservation where state = 'open'") == 0
    assert site.value(lost) == known_as_lost
    asked = [request.prompt for request in server.calls]
    assert len(set(asked)) == ITEMS
    assert len(asked) - ITEMS == CONCURRENCY


def parent_of(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
