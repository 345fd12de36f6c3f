"""The life of a job. Its row is the truth; a Celery message is only a nudge to look at it."""

import logging
import secrets
from typing import Any

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import failures
from annotation.common import events
from annotation.common.clock import seconds_ago
from annotation.common.log_context import bind
from annotation.common.workers import RUN_JOB, message_workers
from annotation.errors import ConflictError, HypacError, UnderWayError
from annotation.jobs import kinds
from annotation.jobs.closed_projects import refuse_closed
from annotation.jobs.context import (
    NOTIFY_AGAIN_SECONDS,
    JobContext,
    JobLostError,
    JobPausedError,
    claimed_by,
    is_out_of_memory,
    is_shutting_down,
    keep_heartbeat,
    out_of_memory,
)
from annotation.jobs.kinds import (
    can_pause as can_pause,
    copying_items as copying_items,
    kind as kind,
    on_demand_kinds as on_demand_kinds,
    register as register,
)
from annotation.models import Job, Project, User
from annotation.outside.webhooks import sending

log = logging.getLogger(__name__)

UNFINISHED = (Job.State.QUEUED, Job.State.RUNNING, Job.State.PAUSED)
# A job that failed and may do better later waits so long, then four times as long, and so on.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 15, 15 * 60
# A job of a kind that no worker knows waits so long for one of a newer version.
UNKNOWN_SECONDS = 24 * 60 * 60


def enqueue(
    *,
    project: Project,
    kind_name: str,
    params: dict[str, Any],
    unique_key: str = "",
    user: User | None = None,
    total: int | None = None,
    of_closed: bool = False,
) -> Job:
    """Store a job and notify a worker once the surrounding transaction is committed.

    Raises UnderWayError where an unfinished job of the project has the same `unique_key`, and ConflictError,
    unless `of_closed`, where the project is archived or was deleted.
    """
    known = kind(kind_name)
    try:
        with transaction.atomic():
            if not of_closed:
                # Before the key is taken: others hold the project while they wait for the key.
                refuse_closed(project.pk)
            # Looked at first: to store a second one waits until the chunk of the first is stored, which may
            # be waiting for the project.
            if unique_key and project.jobs.filter(unique_key=unique_key, state__in=UNFINISHED).exists():
                raise UnderWayError(_(known.title))
            job = Job.objects.create(
                project=project,
                kind=kind_name,
                params=params,
                unique_key=unique_key,
                created_by=user,
                total=total,
                heartbeat_at=Now(),
            )
            job.heartbeat_at = timezone.now()  # near enough for whoever has the object
    except IntegrityError:
        raise UnderWayError(_(known.title)) from None
    transaction.on_commit(lambda: notify_worker(job))
    return job


def notify_worker(job: Job) -> None:
    """Send the message. A broker that is down is no failure: the reconciler sends it again."""
    try:
        # A kind that this version does not know may be known to a worker of a newer one.
        queue = kind(job.kind).queue_of(job) if job.kind in kinds.KINDS else "default"
        message_workers(RUN_JOB, job.pk, queue=queue)
    except Exception:
        log.warning("Job %s could not be announced; the reconciler will try again.", job.pk, exc_info=True)


def run(job_id: int) -> bool:
    """Claim the job and do it. False where it is finished, gone, in another worker's hands, or of a kind that
    this version does not know.
    """
    token = secrets.token_hex(16)
    if is_shutting_down() or not _claim(job_id, token):
        return False
    job = Job.objects.select_related("project", "created_by").get(pk=job_id)
    context = JobContext(job, token, stops_itself=kind(job.kind).stops_itself)
    starved = False
    # Looking after other jobs, too: where all workers are busy, none is left for the reconciler's message.
    with keep_heartbeat(job_id, token, also=_look_around), bind(job=job_id, job_kind=job.kind):
        log.info("Job %s (%s) begins, attempt %s", job_id, job.kind, job.attempts)
        try:
            result = kind(job.kind).handler(context) or {}
        except JobLostError:
            log.warning("Job %s: another worker has it, or it was cancelled; this one stops.", job_id)
            return False
        except JobPausedError:
            _paused(job, token)
            return False
        except HypacError as error:
            _failed(job, token, error, retry=not error.permanent, progressed=context.progressed)
            return False
        except (OperationalError, InterfaceError) as error:
            log.warning("Job %s (%s): the database failed it", job_id, job.kind, exc_info=True)
            if not connection.in_atomic_block:
                connection.close()  # what broke stays broken, and the failure is to be written
            reason = failures.DATABASE.error(error=str(error))
            _failed(job, token, reason, retry=True, progressed=context.progressed)
            return False
        except Exception as error:
            starved = is_out_of_memory(error)
            if not starved:
                log.exception("Job %s (%s) failed", job_id, job.kind)
                reason = failures.UNEXPECTED.error(error=f"{type(error).__name__}: {error}")
                _failed(job, token, reason, retry=False)
                return False
            # Told below: until then the error holds all that the job had in memory.
    if starved:
        _failed(job, token, out_of_memory(), retry=False)
        return False
    return _done(job, token, result)


def cancel(*, job: Job) -> bool:
    """Stop a job; what it has committed stays. False where it had already finished."""
    return bool(
        Job.objects.filter(pk=job.pk, state__in=UNFINISHED).update(
            state=Job.State.CANCELLED, claim_token="", finished_at=timezone.now(), pause_asked=False
        )
    )


def pause(*, job: Job) -> None:
    """Have a job stop until it is resumed. One at work first stores what is under way: that may take as long
    as a call of its model.

    Raises ConflictError where it has ended or cannot be paused.
    """
    known = kind(job.kind)
    if not known.can_pause:
        words = _("%(known)s cannot be paused. It can be stopped, and started again later.")
        raise ConflictError(words % {"known": _(known.title)}, code="cannot_pause")
    with transaction.atomic():
        asked = Job.objects.filter(pk=job.pk, state=Job.State.RUNNING).update(pause_asked=True)
        waiting = Job.objects.filter(pk=job.pk, state=Job.State.QUEUED)
        if not asked and not waiting.update(state=Job.State.PAUSED, pause_asked=False):
            raise ConflictError(_("Only work that waits or is under way can be paused."), code="cannot_pause")


def resume(*, job: Job) -> None:
    """Let a paused job go on where it stopped, or take back that it is to pause.

    Raises ConflictError where it is neither.
    """
    with transaction.atomic():
        if Job.objects.filter(pk=job.pk, state=Job.State.RUNNING, pause_asked=True).update(pause_asked=False):
            return
        paused = Job.objects.filter(pk=job.pk, state=Job.State.PAUSED)
        if not paused.update(
            state=Job.State.QUEUED, pause_asked=False, attempts=0, heartbeat_at=Now(), **failures.NO_ERROR
        ):
            raise ConflictError(_("Only paused work can be resumed."), code="not_paused")
    transaction.on_commit(lambda: notify_worker(job))


def try_now(*, job: Job) -> None:
    """Make the next attempt of a job at once that waits for it because the last one failed. Attempts are
    counted anew: somebody looks after it.

    Raises ConflictError where it does not wait for that.
    """
    waiting = Job.objects.filter(pk=job.pk, state=Job.State.QUEUED).exclude(error="")
    if not waiting.update(attempts=0, heartbeat_at=Now(), **failures.NO_ERROR):
        words = _("It does not wait for another attempt any more; look at how it stands now.")
        raise ConflictError(words, code="not_waiting")
    transaction.on_commit(lambda: notify_worker(job))


def retry(*, job: Job, of_closed: bool = False) -> None:
    """Start a failed or cancelled job again where it stopped. Raises ConflictError, as `enqueue` does too."""
    try:
        with transaction.atomic():
            if not of_closed:
                refuse_closed(job.project_id)
            changed = Job.objects.filter(pk=job.pk, state__in=(Job.State.FAILED, Job.State.CANCELLED)).update(
                state=Job.State.QUEUED,
                attempts=0,
                finished_at=None,
                pause_asked=False,
                heartbeat_at=Now(),
                **failures.NO_ERROR,
            )
    except IntegrityError:
        words = _("The same work is already under way in another job.")
        raise ConflictError(words, code="same_work_under_way") from None
    if not changed:
        words = _("Only a job that failed or was cancelled can be started again.")
        raise ConflictError(words, code="cannot_retry")
    transaction.on_commit(lambda: notify_worker(job))


def reconcile() -> int:
    """Put jobs whose worker fell silent back into the queue, fail those that lost too many workers, and
    notify workers again of those that nobody took. Any number of processes may do so at the same time.

    Returns the number of jobs that workers were notified of.
    """
    silent = Job.objects.filter(_silent())
    due = Job.objects.filter(state=Job.State.QUEUED, heartbeat_at__lt=seconds_ago(NOTIFY_AGAIN_SECONDS))
    if not (silent.exists() or due.exists()):
        return 0  # without a write, for which SQLite has one lock
    with transaction.atomic():
        for job in _not_locked(silent):
            _lost_its_worker(job)
        for job in _not_locked(
            due.exclude(kind__in=kinds.KINDS).filter(created_at__lt=seconds_ago(UNKNOWN_SECONDS))
        ):
            _unknown(job)
        announced = list(_not_locked(due.order_by("id")))
        due.filter(pk__in=[job.pk for job in announced]).update(heartbeat_at=Now())
    for job in announced:
        notify_worker(job)
    return len(announced)


def _look_around() -> None:
    """What a worker does now and then beside its job. Where all of them are busy, nobody else would."""
    reconcile()
    sending.send_overdue()


def _silent() -> Q:
    """Jobs whose worker has died, or is taken for dead."""
    return Q(state=Job.State.RUNNING, heartbeat_at__lt=seconds_ago(settings.HYPAC_JOB_STALE_SECONDS))


def _not_locked(rows: QuerySet[Job]) -> QuerySet[Job]:
    """Lock the rows that nobody else has locked. A worker that is frozen inside a transaction keeps its lock
    until the database ends its session; nobody else waits for that.
    """
    return rows.select_for_update(skip_locked=True, no_key=True)


def _lost_its_worker(job: Job) -> None:
    """Called with the row locked."""
    held = claimed_by(job.pk, job.claim_token)
    if job.pause_asked:  # it has stopped all the same
        held.update(state=Job.State.PAUSED, pause_asked=False, claim_token="")
    elif job.attempts < settings.HYPAC_JOB_MAX_ATTEMPTS:
        due = seconds_ago(NOTIFY_AGAIN_SECONDS + 1)
        held.update(state=Job.State.QUEUED, claim_token="", heartbeat_at=due)
    else:
        _failed(job, job.claim_token, failures.WORKERS_DIED.error(attempts=job.attempts), retry=False)


def _unknown(job: Job) -> None:
    """Called with the row locked."""
    reason = failures.UNKNOWN_KIND.error(kind=job.kind)
    waiting = Job.objects.filter(pk=job.pk, state=Job.State.QUEUED)
    if waiting.update(state=Job.State.FAILED, finished_at=Now(), **failures.columns_of(reason)):
        events.job_ended(job, "job.failed")


def _claim(job_id: int, token: str) -> bool:
    free = Q(state=Job.State.QUEUED) | _silent()
    free &= Q(attempts__lt=settings.HYPAC_JOB_MAX_ATTEMPTS, pause_asked=False, kind__in=list(kinds.KINDS))
    with transaction.atomic():
        rows = Job.objects.filter(free, pk=job_id).order_by()
        claimed = bool(_not_locked(rows)) and rows.update(
            state=Job.State.RUNNING,
            claim_token=token,
            attempts=F("attempts") + 1,
            heartbeat_at=Now(),
            **failures.NO_ERROR,
        )
        if claimed:
            Job.objects.filter(pk=job_id, started_at__isnull=True).update(started_at=Now())
    return bool(claimed)


def _failed(job: Job, token: str, error: HypacError, *, retry: bool, progressed: bool = False) -> None:
    """End a claim with a failure: for good, or until another attempt after a pause that grows.

    `progressed`: attempts before this one are forgotten, because something was finished since.
    """
    attempts = 1 if progressed else job.attempts
    changes: dict[str, Any] = {**failures.columns_of(error), "claim_token": "", "heartbeat_at": Now()}
    if retry and attempts < settings.HYPAC_JOB_MAX_ATTEMPTS:
        pause = min(FIRST_PAUSE_SECONDS * 4 ** (attempts - 1), LONGEST_PAUSE_SECONDS)
        # The reconciler notifies a worker again NOTIFY_AGAIN_SECONDS after this moment.
        later = seconds_ago(NOTIFY_AGAIN_SECONDS - pause)
        changes |= {"state": Job.State.QUEUED, "attempts": attempts, "heartbeat_at": later}
    else:
        changes |= {"state": Job.State.FAILED, "finished_at": timezone.now()}
    with transaction.atomic():
        asked = claimed_by(job.pk, token).filter(pause_asked=True)
        if "finished_at" not in changes and asked.exists():
            changes["state"] = Job.State.PAUSED
        stored = claimed_by(job.pk, token).update(**changes, pause_asked=False)
        if stored and changes["state"] == Job.State.FAILED:
            events.job_ended(job, "job.failed")


def _done(job: Job, token: str, result: dict[str, Any]) -> bool:
    with transaction.atomic():
        stored = claimed_by(job.pk, token).update(
            state=Job.State.DONE,
            result=result,
            claim_token="",
            finished_at=timezone.now(),
            pause_asked=False,
            **failures.NO_ERROR,
        )
        if stored:
            known = kind(job.kind)
            if known.is_news(result):
                events.job_ended(job, "job.finished")
            if known.finished:
                known.finished(job, result)
    return bool(stored)


def _paused(job: Job, token: str) -> None:
    """Let go of a job that has stopped where it was. It waits for people, or, where only the worker had to
    end, for another worker: that is no attempt that went wrong.
    """
    held = claimed_by(job.pk, token)
    with transaction.atomic():
        if held.filter(pause_asked=True).update(state=Job.State.PAUSED, pause_asked=False, claim_token=""):
            return
        waits = held.update(
            state=Job.State.QUEUED, claim_token="", attempts=F("attempts") - 1, heartbeat_at=Now()
        )
    if waits:
        notify_worker(job)
