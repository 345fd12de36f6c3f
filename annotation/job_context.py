"""What the handler of a job sees of it, and what keeps the job this worker's."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import Job, JobProblem

log = logging.getLogger(__name__)

MAX_PROBLEMS = 10_000
# How often a job at work looks whether it is to pause.
LOOK_SECONDS = 1.0

_worker_stops: list[Callable[[], bool]] = []


def stop_when(check: Callable[[], bool]) -> None:
    """Jobs stop where they can be taken up again once `check()` is true: this worker is to end then."""
    _worker_stops[:] = [check]


class JobLostError(Exception):
    """This worker no longer has the job: another one took it over, or somebody cancelled it."""


class JobPausedError(Exception):
    """The job has stopped, because it is to pause or because its worker is to end."""


class JobContext:
    """What a handler sees of its job. `token` tells this worker from all others that have had it."""

    def __init__(self, job: Job, token: str) -> None:
        self.job = job
        self.params: dict[str, Any] = job.params
        self.token = token
        self.progressed = False
        self._looked_at = 0.0
        self._pausing = False

    @property
    def pausing(self) -> bool:
        """Whether to begin nothing new, store what is under way and then call `stop_if_asked`. It costs next
        to nothing to ask, and once true it stays so.
        """
        if any(check() for check in _worker_stops):
            return True
        now = time.monotonic()
        if not self._pausing and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._pausing = Job.objects.filter(pk=self.job.pk, pause_asked=True).exists()
        return self._pausing

    def stop_if_asked(self) -> None:
        """Raise JobPausedError where the job is to stop; the handler must have stored everything."""
        if self.pausing:
            raise JobPausedError

    @contextmanager
    def chunk(
        self, *, done: int | None = None, total: int | None = None, stage: str | None = None
    ) -> Iterator[None]:
        """One transaction for a chunk of results and the progress that it makes.

        `done` is the new absolute count. Raises JobLostError, and rolls back, where the claim has passed on.
        """
        with transaction.atomic():
            # First: it takes the row's lock, and so fences off a stale worker.
            self.progress(done=done, total=total, stage=stage)
            yield

    def progress(
        self, *, done: int | None = None, total: int | None = None, stage: str | None = None
    ) -> None:
        changes: dict[str, Any] = {"heartbeat_at": timezone.now()}
        for name, value in (("done", done), ("total", total), ("stage", stage)):
            if value is not None:
                changes[name] = value
        if not mine(self.job.pk, self.token).update(**changes):
            raise JobLostError(f"job {self.job.pk}")
        self.progressed = self.progressed or (done is not None and done > self.job.done)

    def problems(self, found: Sequence[tuple[str, str]]) -> None:
        """Record lines or items, (where, message), that could not be used; the same place only once."""
        room = MAX_PROBLEMS - JobProblem.objects.filter(job=self.job).count() if found else 0
        JobProblem.objects.bulk_create(
            (
                JobProblem(job=self.job, where=where[:300], message=message)
                for where, message in found[: max(room, 0)]
            ),
            ignore_conflicts=True,
        )


def mine(job_id: int, token: str) -> QuerySet[Job]:
    """The job, while the worker with this token has it."""
    return Job.objects.filter(pk=job_id, state=Job.State.RUNNING, claim_token=token)


@contextmanager
def heart(job_id: int, token: str) -> Iterator[None]:
    """Keep the heartbeat going during a chunk that takes long (a slow model), from a thread of its own."""
    stop = threading.Event()
    interval = max(settings.HYPAC_JOB_STALE_SECONDS / 4, 0.05)

    def beat() -> None:
        try:
            while not stop.wait(interval):
                try:
                    mine(job_id, token).update(heartbeat_at=timezone.now())
                except Exception:
                    log.warning("Heartbeat of job %s could not be written", job_id, exc_info=True)
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"heart-of-job-{job_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
