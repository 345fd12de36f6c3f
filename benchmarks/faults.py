"""What faults do to background work, in a table: killed workers, doubled messages, a broker or a database
that goes away, workers that freeze. For each: what was lost and what is there twice. It should be 0 and 0.

    .venv/bin/python benchmarks/faults.py                          (50 kills, and every other fault once)
    .venv/bin/python benchmarks/faults.py --faults kills --kills 5

PostgreSQL, Redis and two model servers are its own, on free ports. The model servers count their calls and
answer when they are told to; commits wait at triggers that are in this database alone. So each kill lands
where it is meant to. A real Celery worker (a parent and a child) does the work, two reconcilers run side by
side. Small projects go the whole way: import, predictions of two models, calibration set, analysis, routing
with the second model's band, delivery.

`extra` are calls for items that had been asked for before, `in flight` the most that a fault may cost: calls
under way, or answered and not committed, when it happened. `unexplained` are extra calls for any other item.
A ledger that differs from the predictions is told below the table. Ends with 1 where anything was lost,
doubled, or is unexplained.
"""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import quote

from faults_site import Gates, Model, Reconcilers, Worker
from runner import Table, installation, parser_of

from testbed.hosts import until
from testbed.servers import PostgresServer, RedisServer, create_database

if TYPE_CHECKING:
    from faults_world import Row, World

    from annotation.models import Job

STALE_SECONDS = 3
PATIENCE = 120
# A worker's session that does nothing inside a transaction for so long is ended: a frozen one lets go.
IDLE_MILLISECONDS = 5000
FAULTS = ["kills", "twice", "broker", "database", "stale", "frozen"]


class Bench:
    """Servers, model servers, a worker and reconcilers, all of its own."""

    def __init__(self, stack: ExitStack) -> None:
        programs = PostgresServer.installed(), RedisServer.installed()
        if not all(programs):
            sys.exit("PostgreSQL and Redis have to be installed (Debian: postgresql, redis-server).")
        self.postgres = stack.enter_context(PostgresServer(programs[0]))
        self.redis = stack.enter_context(RedisServer(programs[1]))
        database = create_database(self.postgres.url("postgres"), "hypac")
        environment = {
            "CELERY_BROKER_URL": self.redis.url(),
            "HYPAC_PRIVATE_HOSTS": "127.0.0.1",
            "HYPAC_JOB_STALE_SECONDS": str(STALE_SECONDS),
            "HYPAC_LOG_LEVEL": "WARNING",
            "HYPAC_CACHE_URL": "",
        }
        self.log = stack.enter_context(installation(database, **environment)) / "worker.log"
        options = quote(f"-c jit=off -c idle_in_transaction_session_timeout={IDLE_MILLISECONDS}")
        # Of workers: a migration may take longer.
        os.environ["DATABASE_URL"] = f"{database}?options={options}"
        logging.disable(logging.WARNING)  # of this process, which nudges while the broker is away
        self.gates = Gates(database)
        stack.callback(self.gates.end)
        self.gates.install()
        from faults_world import fast, slow

        self.models = [Model("fast", fast), Model("slow", slow)]
        for model in self.models:
            stack.enter_context(model.server)
        self.worker = self.new_worker(stack)
        self.reconcilers = Reconcilers()
        stack.callback(self.reconcilers.stop)

    def new_worker(self, stack: ExitStack) -> Worker:
        worker = Worker(self.log)
        stack.callback(worker.stop)
        worker.start()
        return worker

    def way(self, world: "World") -> dict[str, Callable[[], "Job"]]:
        """The jobs of a world in their order, each with what starts it."""
        urls = {model.name: model.server.url for model in self.models}
        return {
            "import": world.start_import,
            "prepare_run": lambda: world.start_run(urls),
            "analyse_run": world.start_analysis,
            "route_run": world.start_routing,
            "deliver_run": world.start_delivery,
        }

    def token(self, job: "Job") -> str:
        """Of the worker that has the job now; "" where none has it."""
        job.refresh_from_db()
        return job.claim_token

    def said(self, words: str) -> int:
        """How often workers wrote so."""
        return self.log.read_text(errors="replace").count(words)

    def state(self, job: "Job") -> str:
        """Raises AssertionError where it failed or was cancelled."""
        job.refresh_from_db()
        assert job.state not in (job.State.FAILED, job.State.CANCELLED), f"{job.kind}: {job.error}"
        return job.state

    def alive(self, job: "Job") -> bool:
        """Raises AssertionError where the job has ended, though it should still be under way."""
        assert self.state(job) != job.State.DONE, f"{job.kind} has ended too early"
        return True

    def finish(self, job: "Job") -> None:
        until(lambda: self.state(job) == job.State.DONE, f"{job.kind} to be done", PATIENCE)


def rows_of(bench: Bench, options: argparse.Namespace) -> Iterator["Row"]:
    import faults_others
    from faults_kills import kills

    for name in options.faults:
        began = time.monotonic()
        if name == "kills":
            yield from kills(bench, options.kills, only=options.jobs)
        else:
            yield from getattr(faults_others, name)(bench)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    parser = parser_of(__doc__, kills=(50, "how often a worker is killed"))
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS, metavar="FAULT")
    parser.add_argument("--jobs", nargs="+", default=[], help="kinds of job that are killed (default: all)")
    options = parser.parse_args()
    columns = ("times", "jobs", "lost", "doubled", "calls", "extra", "in_flight", "unexplained")
    rows = []
    with ExitStack() as stack:
        bench = Bench(stack)
        table = Table("fault", *(name.replace("_", " ") for name in columns))
        try:
            for row in rows_of(bench, options):
                table.row(row.fault, *(getattr(row, name) for name in columns))
                rows.append(row)
        except AssertionError as error:
            print(f"\n{error}\n\n{bench.log.read_text(errors='replace')[-6000:]}", file=sys.stderr)
            return 1
    for row in rows:
        for wrong in row.wrong:
            print(f"{row.fault}: {wrong}")
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
