"""Reading how far a job is, how fast it goes and when it will be done."""

from dataclasses import dataclass, replace
from math import ceil

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from annotation.errors import HypacError
from annotation.jobs import jobs
from annotation.jobs.context import tried_again_at
from annotation.models import Job

# Below this many seconds a rate says more about the start than about the work.
SETTLED_SECONDS = 2
# Failures of jobs that have read a file to its end: there is nothing left to go on with.
READ_IN_VAIN = frozenset({"no_row_usable", "no_line_usable"})


@dataclass(frozen=True)
class JobProgress:
    """`rate` is in units per second, `seconds_left` an estimate; both None while nothing can be said."""

    job: Job
    title: str
    rate: float | None
    seconds_left: float | None

    @property
    def unfinished(self) -> bool:
        return self.job.state in jobs.UNFINISHED

    @property
    def pauses(self) -> bool:
        """It has been asked to pause and stores what is under way."""
        return self.job.state == Job.State.RUNNING and self.job.pause_asked

    @property
    def can_be_paused(self) -> bool:
        waits_or_works = self.job.state in (Job.State.QUEUED, Job.State.RUNNING)
        return waits_or_works and not self.job.pause_asked and jobs.can_pause(self.job.kind)

    @property
    def can_be_resumed(self) -> bool:
        return self.job.state == Job.State.PAUSED or self.pauses

    @property
    def can_be_retried(self) -> bool:
        """Not where a file was read to its end without one line of use: it would fail in the same way."""
        ended = self.job.state in (Job.State.FAILED, Job.State.CANCELLED)
        return ended and self.job.error_code not in READ_IN_VAIN

    @property
    def tries_again(self) -> str:
        """When it is tried again by itself after a failure, in a sentence; "" where it does not wait.

        In whole minutes, so that a page that is asked for every few seconds does not say something new each
        time.
        """
        due = tried_again_at(self.job)
        if due is None:
            return ""
        minutes = ceil((due - timezone.now()).total_seconds() / 60)
        if minutes <= 1:
            return _("It tries again by itself within a minute.")
        words = ngettext(
            "It tries again by itself in about %(count)s minute.",
            "It tries again by itself in about %(count)s minutes.",
            minutes,
        )
        return words % {"count": minutes}

    @property
    def silence(self) -> str:
        """That nothing is heard of it, and what to do, in a sentence; "" while all is well."""
        since = {Job.State.RUNNING: self.job.heartbeat_at, Job.State.QUEUED: self.job.created_at}.get(
            Job.State(self.job.state)
        )
        if since is None or self.tries_again:
            return ""
        seconds = (timezone.now() - since).total_seconds()
        if seconds < settings.HYPAC_JOB_STALE_SECONDS:
            return ""
        about = {"minutes": max(1, int(seconds // 60))}
        if self.job.state == Job.State.RUNNING:
            return (
                _(
                    "No sign of life for %(minutes)s min: its worker has stopped or was cut off. It starts "
                    "again by itself within a minute or two. If it does not, see whether the server's worker "
                    "and reconciler run; what is finished is kept."
                )
                % about
            )
        return (
            _(
                "It has waited for a worker for %(minutes)s min. It begins once one is free. If none runs, "
                "start the server's worker."
            )
            % about
        )


def job_progress(job: Job) -> JobProgress:
    try:
        title = _(jobs.kind(job.kind).title)
    except HypacError:
        title = job.kind  # of a version that knew more kinds
    rate = left = None
    if job.started_at:
        end = job.finished_at or timezone.now()
        seconds = (end - job.started_at).total_seconds()
        # Of a paused job the clock goes on, and a rate would fall without meaning anything.
        if job.done and seconds >= SETTLED_SECONDS and job.state != Job.State.PAUSED:
            rate = job.done / seconds
            if job.state == Job.State.RUNNING and job.total:
                left = max(job.total - job.done, 0) / rate
    progress = JobProgress(job, title, rate, left)
    # A rate that falls while nothing works, and an end foretold from it, would belie that sentence.
    return replace(progress, rate=None, seconds_left=None) if progress.silence else progress
