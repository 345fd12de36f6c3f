"""The faults beside plain kills. Each function yields rows of the table."""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import redis
from django.db import connection, transaction
from faults_kills import Calls
from faults_site import key_of
from faults_world import CONCURRENCY, Row, World, check

from annotation.models import Job
from annotation.tasks import run_job
from routing.models import Reservation
from testbed.hosts import until

if TYPE_CHECKING:
    from faults import Bench

ANSWERED = 8


class Scene:
    """A world to be broken, one fault after the other; in the end its facts and calls go into the rows."""

    def __init__(self, bench: "Bench", faults: Sequence[str]) -> None:
        self.bench, self.fast = bench, bench.models[0]
        self.rows = [Row(fault) for fault in faults]
        self.row = self.rows[0]
        self.world = World.make()
        self.calls = Calls(bench.models, self.world)
        self.way = bench.way(self.world)

    def end(self) -> list[Row]:
        self.calls.fault(None)
        self.rows[-1].calls += self.calls.total()
        for row in self.rows:
            check(self.world, row)
        return self.rows

    def next(self, times: int = 0) -> None:
        """What is done from here on belongs to the next row, as do so many faults without calls."""
        self.row = self.rows[self.rows.index(self.row) + 1]
        self.row.times = times

    def fault(self) -> None:
        """The fault of the row happens now."""
        self.calls.fault(self.row)
        self.row.times += 1

    def done(self, job: Job) -> None:
        self.bench.finish(job)
        self.row.jobs += 1

    def held(self, kind: str, table: str, *, at_commit: bool = False) -> Job:
        """The job, which waits before it stores this, or in the commit."""
        gates, key = self.bench.gates, key_of(table, at_commit=at_commit)
        gates.close(key)
        job = self.way[kind]()
        until(lambda: gates.reached(key), f"{kind} to store what it has")
        return job

    def in_calls(self) -> Job:
        """A run whose first model has answered some items, all stored, and is at work on others."""
        self.done(self.way["import"]())
        with transaction.atomic():
            job = self.way["prepare_run"]()
            self.fast.hold(ANSWERED)
        until(
            lambda: (
                self.bench.alive(job)
                and self.fast.waiting >= CONCURRENCY
                and self.world.predictions() == ANSWERED
            ),
            "calls under way",
        )
        return job

    def rest(self) -> None:
        for name in ("analyse_run", "route_run", "deliver_run"):
            self.done(self.way[name]())


Rows = Callable[["Bench"], list[Row]]


def fault(*names: str) -> Callable[[Callable[["Bench", Scene], None]], Rows]:
    """The rows with these names of the scene in which a function breaks something."""

    def of(play: Callable[["Bench", Scene], None]) -> Rows:
        def rows(bench: "Bench") -> list[Row]:
            scene = Scene(bench, names)
            try:
                play(bench, scene)
            finally:
                for model in bench.models:
                    model.release()
            return scene.end()

        return rows

    return of


# --- Messages and their broker ------------------------------------------------------------------------------


@fault("every message four times, two workers")
def twice(bench: "Bench", scene: Scene) -> None:
    """Every message comes four times, to two workers."""
    with ExitStack() as stack:
        bench.new_worker(stack)
        scene.calls.fault(scene.row)
        for start in scene.way.values():
            with transaction.atomic():
                job = start()
                for _ in range(3):
                    transaction.on_commit(lambda job=job: run_job.delay(job.pk))
            scene.done(job)
            run_job.delay(job.pk)
            scene.row.times += 4
        scene.row.in_flight = 0


@fault(
    "broker killed under a job at work",
    "job queued while the broker is away",
    "job queued while the broker hangs",
    "broker emptied while a job waits",
)
def broker(bench: "Bench", scene: Scene) -> None:
    """Redis is killed under a job at work, is away while a job is queued, and loses a message."""
    server = bench.redis
    job = scene.in_calls()
    scene.fault()
    server.kill()
    scene.fast.release()
    scene.done(job)  # it needs no broker
    scene.next(times=1)
    job = scene.way["analyse_run"]()
    server.start()
    scene.done(job)
    scene.next(times=1)
    server.send(signal.SIGSTOP)
    job = scene.way["route_run"]()  # nobody waits for the broker for long
    time.sleep(12)  # for longer than the worker does
    server.send(signal.SIGCONT)
    scene.done(job)
    scene.next(times=1)
    bench.worker.stop()
    job = scene.way["deliver_run"]()
    with redis.Redis.from_url(server.url()) as client:
        until(lambda: client.llen("default"), "the message in Redis")
        client.flushall()
    bench.worker.start()
    scene.done(job)


# --- The database -------------------------------------------------------------------------------------------


@fault("database killed while a model is asked", "database killed inside a transaction")
def database(bench: "Bench", scene: Scene) -> None:
    """PostgreSQL is ended at once, as by a power cut: while a model is asked, and inside a transaction."""
    job = scene.in_calls()
    scene.fault()
    _restart(bench)
    scene.fast.release()
    scene.done(job)
    scene.done(scene.way["analyse_run"]())
    scene.next()
    job = scene.held("route_run", "routing_route")
    scene.fault()
    _restart(bench)
    scene.done(job)
    job = scene.held("deliver_run", "routing_delivery", at_commit=True)
    scene.row.times += 1
    _restart(bench)
    scene.done(job)


def _restart(bench: "Bench") -> None:
    bench.postgres.kill()
    time.sleep(1)
    bench.postgres.start()
    connection.close()
    bench.gates.reconnect()


# --- Workers ------------------------------------------------------------------------------------------------


@fault("worker frozen in its calls, another takes over")
def stale(bench: "Bench", scene: Scene) -> None:
    """SIGSTOP while a model is asked, for longer than anybody waits: another worker finishes the job."""
    _freeze(bench, scene, scene.in_calls(), scene.fast.release)


@fault("worker frozen inside a transaction")
def frozen(bench: "Bench", scene: Scene) -> None:
    """The same inside a transaction, which holds locks that the other one needs."""
    job = scene.in_calls()
    key = key_of("routing_prediction")
    bench.gates.close(key)
    scene.fast.release()
    until(lambda: bench.gates.reached(key), "answers to be stored")
    _freeze(bench, scene, job, lambda: bench.gates.unlock(key))


def _freeze(bench: "Bench", scene: Scene, job: Job, free: Callable[[], None]) -> None:
    with ExitStack() as stack:
        token = bench.token(job)
        scene.fault()
        child = bench.worker.child()
        bench.worker.send_child(signal.SIGSTOP)
        free()
        bench.new_worker(stack)
        until(lambda: bench.token(job) not in ("", token), "another worker to have the job")
        scene.done(job)
        before = _facts(scene.world)
        bench.worker.send_child(signal.SIGCONT)
        # That it lost the job, or that the database ended its session.
        noticed = (f"Job {job.pk}: another", f"Job {job.pk} (prepare_run): the dat")
        until(lambda: any(map(bench.said, noticed)), "the first worker to notice")
        time.sleep(1)
        assert bench.worker.child() == child
        if before != _facts(scene.world):
            scene.row.wrong.append(f"written by the first worker: {before} became {_facts(scene.world)}")
        scene.rest()


def _facts(world: World) -> tuple[object, ...]:
    job = world.newest("prepare_run")
    lost = Reservation.objects.filter(run=world.run, state=Reservation.State.LOST)
    return (
        world.predictions(),
        list(world.run.spends.order_by("pk").values_list("pk", "amount")),
        (job.state, job.done, job.attempts, job.heartbeat_at),
        sum(lost.values_list("calls", flat=True)),
    )
