"""What tests of jobs share: workers that die, and jobs that fall silent."""

from datetime import timedelta

from django.utils import timezone

from annotation.models import Job


class KilledError(BaseException):
    """Stands for kill -9: no handler of ours catches it."""


def silence(job: Job, seconds: float = 3600) -> None:
    """As if nothing had been heard of the job for so long."""
    Job.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(seconds=seconds))


def state(job: Job) -> str:
    job.refresh_from_db()
    return job.state
