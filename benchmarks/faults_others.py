"""The faults beside plain kills. Each function yields rows of the table."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import redis
from django.conf import settings
from django.db import connection, transaction
from faults_kills import Calls, Row
from faults_site import until
from faults_world import CONCURRENCY, World, check

from annotation import jobs
from annotation.models import Job
from annotation.tasks import run_job
from routing.models import Reservation

if TYPE_CHECKING:
    from faults import Bench

    from testbed.servers import RedisServer

ANSWERED = 8
GAVE_UP = "Couldn't ack"


@contextmanager
def _world(bench: "Bench", *rows: Row) -> Iterator[tuple[World, Calls]]:
    """A world to be broken; in the end its facts and calls go into the rows."""
    world = World.make()
    calls = Calls(bench.models, world)
    try:
        yield world, calls
    finally:
        for model in bench.models:
            model.release()
            model.release_lists()
    calls.fault(None)
    rows[-1].calls += calls.total()
    found = check(world)
    for row in rows:
        row.add(found)


def _done(bench: "Bench", job: Job, row: Row) -> None:
    bench.finished(job)
    row.jobs += 1


def _in_calls(bench: "Bench", world: World, row: Row) -> Job:
    """A run whose first model has answered some items, all stored, and is at work on others."""
    way = dict(bench.way(world))
    _done(bench, way["import"](), row)
    fast = bench.models[0]
    with transaction.atomic():
        job = way["prepare_run"]()
        fast.hold(ANSWERED)
    until(
        lambda: bench.alive(job) and fast.waiting >= CONCURRENCY and world.predictions() == ANSWERED,
        "calls under way",
    )
    return job


def _rest(bench: "Bench", world: World, row: Row, *, after: str = "prepare_run") -> None:
    """The jobs that come after this one."""
    way = bench.way(world)
    names = [name for name, _start in way]
    for _name, start in way[names.index(after) + 1 :]:
        _done(bench, start(), row)


# --- Messages and their broker ------------------------------------------------------------------------------


def twice(bench: "Bench") -> Iterator[Row]:
    """Every message comes four times, to two workers."""
    row = Row("every message four times, two workers")
    with _world(bench, row) as (world, calls), ExitStack() as stack:
        bench.new_worker(stack)
        calls.fault(row)
        for _name, start in bench.way(world):
            with transaction.atomic():
                job = start()
                for _ in range(3):
                    transaction.on_commit(lambda job=job: run_job.delay(job.pk))
            _done(bench, job, row)
            run_job.delay(job.pk)
            row.times += 4
        row.in_flight = 0
    yield row


def broker(bench: "Bench") -> Iterator[Row]:
    """Redis is killed under a job at work, is away while a job is queued, and loses a message."""
    if bench.redis is None:
        yield from _purged(bench)
        return
    killed = Row("broker killed under a job at work")
    away = Row("job queued while the broker is away")
    hangs = Row("job queued while the broker hangs")
    emptied = Row("broker emptied while a job waits")
    with _world(bench, killed, away, hangs, emptied) as (world, calls):
        job = _in_calls(bench, world, killed)
        calls.fault(killed)
        bench.redis.kill()
        killed.times = away.times = 1
        bench.models[0].release()
        _done(bench, job, killed)  # it needs no broker
        way = dict(bench.way(world))
        job = way["analyse_run"]()
        bench.redis.start()
        _done(bench, job, away)
        bench.redis.send(signal.SIGSTOP)
        hangs.times = 1
        job = way["route_run"]()  # nobody waits for the broker for long
        time.sleep(12)  # for longer than the worker does
        bench.redis.send(signal.SIGCONT)
        _done(bench, job, hangs)
        bench.worker.stop()
        job = way["deliver_run"]()
        with redis.Redis.from_url(bench.redis.url()) as client:
            until(lambda: client.llen("default"), "the message in Redis")
            client.flushall()
        emptied.times = 1
        bench.worker.start()
        _done(bench, job, emptied)
    yield from (killed, away, hangs, emptied)
    yield _unacknowledged(bench, bench.redis)


def _unacknowledged(bench: "Bench", redis_server: "RedisServer") -> Row:
    """Redis hangs as a worker tells it that a job is done: it has to take others all the same."""
    row = Row("broker hangs as a message is acknowledged")
    with _world(bench, row) as (world, calls):
        key = bench.gates.close("annotation_item")
        job = dict(bench.way(world))["import"]()
        until(lambda: bench.gates.reached(key), "items to be stored")
        bench.worker.send(signal.SIGSTOP)  # the parent, which acknowledges; its child goes on
        bench.gates.unlock(key)
        _done(bench, job, row)
        calls.fault(row)
        redis_server.send(signal.SIGSTOP)
        row.times, before = 1, bench.times_said(GAVE_UP)
        bench.worker.send(signal.SIGCONT)
        until(lambda: bench.times_said(GAVE_UP) > before, "the worker to give up")
        redis_server.send(signal.SIGCONT)
        _rest(bench, world, row, after="import")
        calls.fault(None)
        row.in_flight = 0
    return row


def _purged(bench: "Bench") -> Iterator[Row]:
    from hypac_site.celery import app

    row = Row("broker emptied while a job waits")
    with _world(bench, row) as (world, calls):
        job = _in_calls(bench, world, row)
        calls.fault(row)
        bench.models[0].release()
        _done(bench, job, row)
        bench.worker.stop()
        job = dict(bench.way(world))["analyse_run"]()
        row.times = until(app.control.purge, "a message to be thrown away")
        bench.worker.start()
        _done(bench, job, row)
        _rest(bench, world, row, after="analyse_run")
    yield row


# --- The database -------------------------------------------------------------------------------------------


def database(bench: "Bench") -> Iterator[Row]:
    """PostgreSQL is ended at once, as by a power cut: while a model is asked, and inside a transaction."""
    calls_row = Row("database killed while a model is asked")
    inside = Row("database killed inside a transaction")
    with _world(bench, calls_row, inside) as (world, calls):
        job = _in_calls(bench, world, calls_row)
        calls.fault(calls_row)
        _restart(bench, calls_row)
        bench.models[0].release()
        bench.finished(job)
        calls_row.jobs += 1
        way = dict(bench.way(world))
        _done(bench, way["analyse_run"](), calls_row)
        key = bench.gates.close("routing_route")
        job = way["route_run"]()
        until(lambda: bench.gates.reached(key), "the transaction to be under way")
        calls.fault(inside)
        _restart(bench, inside)
        _done(bench, job, inside)
        key = bench.gates.close("routing_delivery", at_commit=True)
        job = way["deliver_run"]()
        until(lambda: bench.gates.reached(key), "the delivery to be committed")
        _restart(bench, inside)
        _done(bench, job, inside)
    yield from (calls_row, inside)


def _restart(bench: "Bench", row: Row) -> None:
    bench.postgres.kill()
    time.sleep(1)
    bench.postgres.start()
    connection.close()
    bench.gates.reconnect()
    row.times += 1


# --- Workers ------------------------------------------------------------------------------------------------


def stale(bench: "Bench") -> Iterator[Row]:
    """SIGSTOP while a model is asked, for longer than anybody waits: another worker finishes the job."""
    row = Row("worker frozen in its calls, another takes over")

    def freeze(world: World) -> tuple[Job, Callable[[], None]]:
        return _in_calls(bench, world, row), bench.models[0].release

    yield from _frozen(bench, row, freeze)


def frozen(bench: "Bench") -> Iterator[Row]:
    """The same inside a transaction, which holds locks that the other one needs."""
    row = Row("worker frozen inside a transaction")

    def freeze(world: World) -> tuple[Job, Callable[[], None]]:
        job = _in_calls(bench, world, row)
        key = bench.gates.close("routing_prediction")
        bench.models[0].release()
        until(lambda: bench.gates.reached(key), "answers to be stored")
        return job, lambda: bench.gates.unlock(key)

    yield from _frozen(bench, row, freeze)


def _frozen(
    bench: "Bench", row: Row, freeze: Callable[[World], tuple[Job, Callable[[], None]]]
) -> Iterator[Row]:
    with _world(bench, row) as (world, calls), ExitStack() as stack:
        job, free = freeze(world)
        token = bench.token(job)
        calls.fault(row)
        child = bench.worker.child()
        bench.worker.send_child(signal.SIGSTOP)
        row.times = 1
        free()
        bench.new_worker(stack)
        until(lambda: bench.token(job) not in ("", token), "another worker to have the job")
        _done(bench, job, row)
        before = _facts(world)
        bench.worker.send_child(signal.SIGCONT)
        # That it lost the job, or that the database ended its session.
        until(
            lambda: (
                bench.said(f"Job {job.pk}: another") or bench.said(f"Job {job.pk} (prepare_run): the dat")
            ),
            "the first worker to notice",
        )
        time.sleep(1)
        assert bench.worker.child() == child
        if before != _facts(world):
            row.wrong.append(f"written by the first worker: {before} became {_facts(world)}")
        _rest(bench, world, row)
    yield row


def _facts(world: World) -> tuple[object, ...]:
    job = world.newest("prepare_run")
    lost = Reservation.objects.filter(run=world.run, state=Reservation.State.LOST)
    return (
        world.predictions(),
        list(world.run.spends.order_by("pk").values_list("pk", "amount")),
        (job.state, job.done, job.attempts, job.heartbeat_at),
        sum(lost.values_list("calls", flat=True)),
    )


def poison(bench: "Bench") -> Iterator[Row]:
    """A job whose worker is killed each time before it gets on: it fails, with its reason."""
    row = Row("job that kills its worker each time")
    fast = bench.models[0]
    with _world(bench, row) as (world, calls):
        job = _in_calls(bench, world, row)
        fast.hold()
        for _ in range(settings.HYPAC_JOB_MAX_ATTEMPTS):
            until(lambda: bench.alive(job) and job.state == Job.State.RUNNING, "the job to be taken")
            token = job.claim_token
            calls.fault(row)
            bench.worker.kill("child")
            row.times += 1
            until(lambda token=token: bench.token(job) != token, "its death to be noticed")
        until(lambda: job.state == Job.State.FAILED or job.refresh_from_db(), "the job to fail")
        if f"died {settings.HYPAC_JOB_MAX_ATTEMPTS} times" not in job.error:
            row.wrong.append(f"the reason is {job.error!r}")
        fast.release()
        jobs.retry(job=job)
        _done(bench, job, row)
        _rest(bench, world, row)
    yield row


def terminate(bench: "Bench") -> Iterator[Row]:
    """SIGTERM while a model is asked: what is under way is stored, and no call is made again."""
    row = Row("worker told to end in its calls")
    with _world(bench, row) as (world, calls):
        job = _in_calls(bench, world, row)
        calls.fault(row)
        bench.worker.send(signal.SIGTERM)
        row.times = 1
        time.sleep(1)
        bench.models[0].release()
        assert bench.worker.process is not None
        bench.worker.process.wait(60)
        job.refresh_from_db()
        if (job.state, job.attempts) != (Job.State.QUEUED, 0):
            row.wrong.append(f"it left the job {job.state} after {job.attempts} attempts")
        bench.worker.start()
        _done(bench, job, row)
        _rest(bench, world, row)
        calls.fault(None)
        if row.extra:
            row.wrong.append("calls were made again")
    yield row


def cancel(bench: "Bench") -> Iterator[Row]:
    """A job is stopped while a model is asked: nothing is stored any more; started again, it goes on."""
    row = Row("job stopped in its calls, started again")
    with _world(bench, row) as (world, calls):
        job = _in_calls(bench, world, row)
        calls.fault(row)
        jobs.cancel(job=job)
        row.times = 1
        bench.models[0].release()
        until(lambda: bench.said(f"Job {job.pk}: another worker has it, or it was"), "the worker to notice")
        if world.predictions() != ANSWERED:
            row.wrong.append(
                f"{world.predictions() - ANSWERED} answers were stored after the job was stopped"
            )
        jobs.retry(job=job)
        _done(bench, job, row)
        _rest(bench, world, row)
    yield row
