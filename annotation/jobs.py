"""Background work. The Job row is the truth; a Celery message is only a nudge to look at it.

A handler does its work in chunks, each inside `with context.chunk(done=...)`: the chunk's results and the
job's progress are committed together, and only while this worker still has the claim. So a chunk that runs
twice has one effect, and a worker that was taken for dead cannot write any more.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from annotation.errors import ConflictError, HypacError
from annotation.models import Job, JobProblem, Project, User

log = logging.getLogger(__name__)

Handler = Callable[["JobContext"], dict[str, Any] | None]
UNFINISHED = (Job.State.QUEUED, Job.State.RUNNING)
# A queued job is nudged again after so long without anybody taking it.
RENUDGE_SECONDS = 15
MAX_PROBLEMS = 10_000


@dataclass(frozen=True)
class Kind:
    name: str
    title: str
    handler: Handler
    queue: str


_kinds: dict[str, Kind] = {}


def register(name: str, handler: Handler, *, title: str, queue: str = "default") -> None:
    """Make a kind of job known. `queue` is the Celery queue whose workers can do it."""
    _kinds[name] = Kind(name, title, handler, queue)


def kind(name: str) -> Kind:
    try:
        return _kinds[name]
    except KeyError:
        raise HypacError(
            f"There is no job of kind {name!r}; known are {', '.join(sorted(_kinds))}."
        ) from None


def enqueue(
    *,
    project: Project,
    kind_name: str,
    params: dict[str, Any],
    unique_key: str = "",
    user: User | None = None,
    total: int | None = None,
) -> Job:
    """Store a job and nudge a worker once the surrounding transaction is committed.

    Raises ConflictError where an unfinished job of the project has the same `unique_key`.
    """
    known = kind(kind_name)
    try:
        with transaction.atomic():
            job = Job.objects.create(
                project=project,
                kind=kind_name,
                params=params,
                unique_key=unique_key,
                created_by=user,
                total=total,
                heartbeat_at=timezone.now(),
            )
    except IntegrityError:
        raise ConflictError(
            f"{known.title} is already under way. Wait until it has finished, or cancel it."
        ) from None
    transaction.on_commit(lambda: nudge(job))
    return job


def nudge(job: Job) -> None:
    """Send the message. A broker that is down is no failure: the reconciler sends it again."""
    from annotation.tasks import run_job

    try:
        run_job.apply_async(args=(job.pk,), queue=kind(job.kind).queue, retry=False)
    except Exception:
        log.warning("Job %s could not be announced; the reconciler will try again.", job.pk, exc_info=True)


def run(job_id: int) -> bool:
    """Claim the job and do it. False where it is finished, gone, or in another worker's hands."""
    token = secrets.token_hex(16)
    if not _claim(job_id, token):
        return False
    job = Job.objects.select_related("project", "created_by").get(pk=job_id)
    context = JobContext(job, token)
    with _heart(job_id, token):
        try:
            result = kind(job.kind).handler(context) or {}
        except JobLostError:
            log.warning("Job %s: another worker has it, or it was cancelled; this one stops.", job_id)
            return False
        except HypacError as error:
            _failed(job, token, error, retry=not error.permanent)
            return False
        except (OperationalError, InterfaceError) as error:
            log.warning("Job %s (%s): the database failed it", job_id, job.kind, exc_info=True)
            _failed(job, token, HypacError(f"The database could not be used: {error}"), retry=True)
            return False
        except Exception as error:
            log.exception("Job %s (%s) failed", job_id, job.kind)
            _failed(job, token, HypacError(f"Unexpected error: {type(error).__name__}: {error}"), retry=False)
            return False
    return bool(
        _mine(job_id, token).update(
            state=Job.State.DONE, result=result, claim_token="", finished_at=timezone.now(), error=""
        )
    )


def cancel(*, job: Job) -> bool:
    """Stop a job; what it has committed stays. False where it had already finished."""
    return bool(
        Job.objects.filter(pk=job.pk, state__in=UNFINISHED).update(
            state=Job.State.CANCELLED, claim_token="", finished_at=timezone.now()
        )
    )


def retry(*, job: Job) -> None:
    """Start a failed or cancelled job again where it stopped."""
    try:
        with transaction.atomic():
            changed = Job.objects.filter(pk=job.pk, state__in=(Job.State.FAILED, Job.State.CANCELLED)).update(
                state=Job.State.QUEUED, attempts=0, error="", finished_at=None, heartbeat_at=timezone.now()
            )
    except IntegrityError:
        raise ConflictError("The same work is already under way in another job.") from None
    if not changed:
        raise ConflictError("Only a job that failed or was cancelled can be started again.")
    transaction.on_commit(lambda: nudge(job))


def reconcile() -> int:
    """Nudge jobs that nobody took or whose worker fell silent, and fail those that lost too many workers.

    Returns the number of jobs nudged.
    """
    now = timezone.now()
    stale = now - timedelta(seconds=settings.HYPAC_JOB_STALE_SECONDS)
    silent = Job.objects.filter(state=Job.State.RUNNING, heartbeat_at__lt=stale)
    for job in silent.filter(attempts__gte=settings.HYPAC_JOB_MAX_ATTEMPTS):
        reason = (
            f"Its worker died {job.attempts} times. What it finished is kept; "
            "start it again once the cause is gone."
        )
        _failed(job, job.claim_token, HypacError(reason), retry=False)
    waiting = Q(state=Job.State.QUEUED, heartbeat_at__lt=now - timedelta(seconds=RENUDGE_SECONDS))
    lost = Q(state=Job.State.RUNNING, heartbeat_at__lt=stale)
    nudged = 0
    for job in Job.objects.filter(waiting | lost).order_by("id"):
        if job.state == Job.State.QUEUED:
            Job.objects.filter(pk=job.pk, state=Job.State.QUEUED).update(heartbeat_at=now)
        nudge(job)
        nudged += 1
    return nudged


class JobLostError(Exception):
    """This worker no longer has the job: another one took it over, or somebody cancelled it."""


class JobContext:
    """What a handler sees of its job."""

    def __init__(self, job: Job, token: str) -> None:
        self.job = job
        self.params: dict[str, Any] = job.params
        self._token = token

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
        if not _mine(self.job.pk, self._token).update(**changes):
            raise JobLostError(f"job {self.job.pk}")

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


def _mine(job_id: int, token: str) -> Any:
    return Job.objects.filter(pk=job_id, state=Job.State.RUNNING, claim_token=token)


def _claim(job_id: int, token: str) -> bool:
    now = timezone.now()
    stale = now - timedelta(seconds=settings.HYPAC_JOB_STALE_SECONDS)
    free = Q(state=Job.State.QUEUED) | Q(state=Job.State.RUNNING, heartbeat_at__lt=stale)
    free &= Q(attempts__lt=settings.HYPAC_JOB_MAX_ATTEMPTS)
    claimed = (
        Job.objects.filter(free, pk=job_id)
        .order_by()
        .update(state=Job.State.RUNNING, claim_token=token, attempts=F("attempts") + 1, heartbeat_at=now)
    )
    if claimed:
        Job.objects.filter(pk=job_id, started_at__isnull=True).update(started_at=now)
    return bool(claimed)


def _failed(job: Job, token: str, error: HypacError, *, retry: bool) -> None:
    retry = retry and job.attempts < settings.HYPAC_JOB_MAX_ATTEMPTS
    changes: dict[str, Any] = {"error": str(error), "claim_token": "", "heartbeat_at": timezone.now()}
    if retry:
        changes["state"] = Job.State.QUEUED  # the reconciler nudges it again after a pause
    else:
        changes |= {"state": Job.State.FAILED, "finished_at": timezone.now()}
    _mine(job.pk, token).update(**changes)


@contextmanager
def _heart(job_id: int, token: str) -> Iterator[None]:
    """Keep the heartbeat going during a chunk that takes long (a slow model), from a thread of its own."""
    stop = threading.Event()
    interval = max(settings.HYPAC_JOB_STALE_SECONDS / 4, 0.05)

    def beat() -> None:
        try:
            while not stop.wait(interval):
                try:
                    _mine(job_id, token).update(heartbeat_at=timezone.now())
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
