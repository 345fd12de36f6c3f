"""Pausing, resuming, hurrying, stopping and restarting background work, by people: with a line in the audit
trail.
"""

from django.db import transaction

from annotation.common import audit
from annotation.jobs import jobs
from annotation.models import Job, User


def pause_job(*, job: Job, user: User) -> None:
    """Raises ConflictError as `jobs.pause` does."""
    with transaction.atomic():
        jobs.pause(job=job)
        _record(job, user, "job.paused")


def resume_job(*, job: Job, user: User) -> None:
    """Raises ConflictError as `jobs.resume` does."""
    with transaction.atomic():
        jobs.resume(job=job)
        _record(job, user, "job.resumed")


def try_job_now(*, job: Job, user: User) -> None:
    """Raises ConflictError as `jobs.try_now` does."""
    with transaction.atomic():
        jobs.try_now(job=job)
        _record(job, user, "job.retried")


def retry_job(*, job: Job, user: User) -> None:
    """Raises ConflictError as `jobs.retry` does."""
    with transaction.atomic():
        jobs.retry(job=job)
        _record(job, user, "job.retried")


def cancel_job(*, job: Job, user: User) -> bool:
    """False where the job had already ended."""
    with transaction.atomic():
        if not jobs.cancel(job=job):
            return False
        _record(job, user, "job.cancelled")
    return True


def _record(job: Job, user: User, action: str) -> None:
    audit.record(
        project=job.project, actor=user, action=action, target=f"job:{job.pk}", data={"kind": job.kind}
    )
