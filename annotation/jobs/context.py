"""What the handler of a job sees of it, and what keeps the job this worker's.

A handler does its work in chunks, each inside `with context.chunk(done=...)`: the chunk's results and the
job's progress are committed together, and only while this worker still has the claim. So a chunk that runs
twice has one effect, and a worker that was taken for dead cannot write any more.
"""

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from annotation import failures
from annotation.errors import HypacError
from annotation.jobs.places import line_and_column
from annotation.models import Job, JobProblem
from annotation.storable import storable
from annotation.words import Words, params_of

log = logging.getLogger(__name__)

MAX_STAGE = 100  # characters
MAX_PROBLEMS = 10_000
# Workers are notified again of a queued job that nobody took for so long.
NOTIFY_AGAIN_SECONDS = 15
# How often a job at work looks whether it is to pause.
LOOK_SECONDS = 1.0
# So long a job that ends waits for its threads, of which one may be stuck in a broker that does not answer.
LAST_BEAT_SECONDS = 5.0

_worker_stops: list[Callable[[], bool]] = []


def stop_when(check: Callable[[], bool]) -> None:
    """Jobs stop where they can be taken up again once `check()` is true: this worker is to end then."""
    _worker_stops[:] = [check]


def is_shutting_down() -> bool:
    """Whether this worker is to end, and should begin nothing new."""
    return any(check() for check in _worker_stops)


def tried_again_at(job: Job) -> datetime | None:
    """When the next attempt of a job is due whose last one failed; None where it waits for none."""
    if job.state != Job.State.QUEUED or not job.error or job.heartbeat_at is None:
        return None
    return job.heartbeat_at + timedelta(seconds=NOTIFY_AGAIN_SECONDS)


def is_out_of_memory(error: Exception) -> bool:
    """Also where none was left for a thread, or for another program."""
    no_thread = type(error) is RuntimeError and str(error) == "can't start new thread"
    no_program = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or no_thread or no_program


def out_of_memory() -> HypacError:
    """Of a job that its worker had no memory for, as another one would not have it either."""
    return failures.OUT_OF_MEMORY.error(most=settings.HYPAC_WORKER_MEMORY_MB or None)


class JobLostError(Exception):
    """This worker no longer has the job: another one took it over, or somebody cancelled it."""


class JobPausedError(Exception):
    """The job has stopped, because it is to pause or because its worker is to end."""


class JobContext:
    """What a handler sees of its job. `token` tells this worker from all others that have had it.

    `stops_itself`: its handler looks at `pausing`, or is quickly done. Any other is stopped between two of
    its chunks where the worker is to end.
    """

    def __init__(self, job: Job, token: str, *, stops_itself: bool = True) -> None:
        self.job = job
        self._stops_itself = stops_itself
        self.params: dict[str, Any] = job.params
        self.token = token
        self.progressed = False
        self._looked_at = 0.0
        self._pausing = False
        self._is_void: Callable[[], bool] = lambda: False

    @property
    def pausing(self) -> bool:
        """Whether to begin nothing new, store what is under way and then call `stop_if_asked`. It costs next
        to nothing to ask, and once true it stays so.
        """
        if is_shutting_down():
            return True
        now = time.monotonic()
        if not self._pausing and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            asked = Job.objects.filter(pk=self.job.pk, pause_asked=True).exists()
            self._pausing = asked or self._is_void()
        return self._pausing

    def stop_once(self, is_void: Callable[[], bool]) -> None:
        """Let the work stop as for a pause once `is_void()` is true, which is asked as often: in the place of
        JobPausedError the handler then raises what is wrong.
        """
        self._is_void = is_void

    def stop_if_asked(self) -> None:
        """Raise JobPausedError where the job is to stop; the handler must have stored everything."""
        if self.pausing:
            raise JobPausedError

    @contextmanager
    def chunk(
        self, *, done: int | None = None, total: int | None = None, stage: Words | None = None
    ) -> Iterator[None]:
        """One transaction for a chunk of results and the progress that it makes.

        `done` is the new absolute count; where it grows, earlier attempts are forgotten. Raises JobLostError,
        and rolls back, where the claim has passed on, and JobPausedError as `progress` does.
        """
        got_on = done is not None and done > self.job.done and not self.progressed
        began = time.monotonic()
        with transaction.atomic():
            self._stop_between_chunks()
            # First: it takes the row's lock, and so fences off a stale worker.
            self._write(done=done, total=total, attempts=1 if got_on else None, **_columns(stage))
            yield
            if time.monotonic() - began > settings.HYPAC_JOB_STALE_SECONDS / 4:
                # Nobody saw a beat while the row was locked: it must not look dead when the lock goes.
                self._write()
        self.progressed = self.progressed or got_on

    def progress(
        self, *, done: int | None = None, total: int | None = None, stage: Words | None = None
    ) -> None:
        """Say how far it is, of work that is not stored yet.

        Raises JobLostError where the claim has passed on, and JobPausedError where the worker is to end and
        the handler does not look itself.
        """
        self._stop_between_chunks()
        self._write(done=done, total=total, **_columns(stage))

    def _stop_between_chunks(self) -> None:
        if not self._stops_itself and is_shutting_down():
            raise JobPausedError

    def _write(self, **values: Any) -> None:
        changes = {name: value for name, value in values.items() if value is not None}
        if not claimed_by(self.job.pk, self.token).update(heartbeat_at=Now(), **changes):
            raise JobLostError(f"job {self.job.pk}")

    def problems(self, found: Sequence[tuple[str, str]]) -> None:
        """Record lines or items, (where, message), that could not be used; the same place only once."""
        room = MAX_PROBLEMS - JobProblem.objects.filter(job=self.job).count() if found else 0
        JobProblem.objects.bulk_create(
            (self._problem(where, message) for where, message in found[: max(room, 0)]),
            ignore_conflicts=True,
        )

    def _problem(self, where: str, message: str) -> JobProblem:
        line, column = line_and_column(where)
        return JobProblem(
            job=self.job,
            where=storable(where[:300]),
            where_params=storable(params_of(where)),
            line=line,
            column=storable(column),
            message=storable(str(message)),
            message_params=storable(params_of(message)),
        )


def _columns(stage: Words | None) -> dict[str, Any]:
    return {} if stage is None else {"stage": stage[:MAX_STAGE], "stage_params": stage.params}


def claimed_by(job_id: int, token: str) -> QuerySet[Job]:
    """The job, while the worker with this token has it."""
    return Job.objects.filter(pk=job_id, state=Job.State.RUNNING, claim_token=token)


@contextmanager
def keep_heartbeat(job_id: int, token: str, also: Callable[[], object] | None = None) -> Iterator[None]:
    """Keep the heartbeat going during a chunk that takes long (a slow model), from a thread of its own.

    `also` is done as often, from another one: it may wait for a broker that does not answer, and meanwhile
    this job must not look dead.
    """
    stop = threading.Event()
    interval = max(settings.HYPAC_JOB_STALE_SECONDS / 4, 0.05)

    def beat() -> None:
        claimed_by(job_id, token).update(heartbeat_at=Now())

    def look_around() -> None:
        if also:
            also()
        connection.close()  # one less for the database to hold until the next time

    def keep(work: Callable[[], None]) -> None:
        try:
            while not stop.wait(interval):
                try:
                    work()
                except Exception:
                    log.warning("Job %s: %s failed", job_id, work.__name__, exc_info=True)
                    connection.close()  # a connection that broke stays broken
        finally:
            connection.close()

    threads = [
        threading.Thread(target=keep, args=(work,), name=f"{work.__name__}-of-job-{job_id}", daemon=True)
        for work in ((beat, look_around) if also else (beat,))
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        until = time.monotonic() + LAST_BEAT_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
