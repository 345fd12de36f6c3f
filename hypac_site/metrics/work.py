"""Jobs, what waits for people, who holds what, and letters."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from annotation.common.clock import seconds_ago
from annotation.errors import HypacError
from annotation.jobs import jobs
from annotation.models import Job, Mail, WorkBatch, WorkItem

# Of each project no more are counted: so long a queue needs no exact figure, and counting costs time.
MOST_WAITING = 10_000
# Projects that have a line of their own, those with the newest work first.
MOST_PROJECTS = 100
# Letters are tried for most of a day.
MAIL_OF = timedelta(days=2)


def collect() -> Iterator[Metric]:
    now = timezone.now()
    yield from _jobs(now)
    yield from _queue(now)
    yield from _mail(now)


def _jobs(now: datetime) -> Iterator[Metric]:
    """There are as many jobs as people started, some thousands: this table alone is counted whole."""
    by_state = GaugeMetricFamily(
        "hypac_jobs", "Jobs that are stored, by kind and state.", labels=("kind", "state")
    )
    for kind, state, n in Job.objects.order_by().values_list("kind", "state").annotate(n=Count("pk")):
        by_state.add_metric((kind, state), n)
    yield by_state

    waiting: Counter[str] = Counter({"default": 0})
    oldest: dict[str, float] = {"default": 0.0}
    for job in Job.objects.filter(state=Job.State.QUEUED).select_related("project"):
        queue = _queue_of(job)
        waiting[queue] += 1
        # One that was at work before waits for its next attempt, or since a moment that nobody noted.
        if job.started_at is None:
            oldest[queue] = max(oldest.get(queue, 0.0), (now - job.created_at).total_seconds())
    lengths = GaugeMetricFamily(
        "hypac_jobs_waiting", "Jobs that wait for a worker or for another attempt.", labels=("queue",)
    )
    ages = GaugeMetricFamily(
        "hypac_jobs_oldest_waiting_seconds",
        "How long the oldest job waits that no worker has begun: 0 where none waits.",
        labels=("queue",),
    )
    for queue, n in sorted(waiting.items()):
        lengths.add_metric((queue,), n)
        ages.add_metric((queue,), oldest.get(queue, 0.0))
    yield lengths
    yield ages

    stale = seconds_ago(settings.HYPAC_JOB_STALE_SECONDS)
    silent = Job.objects.filter(state=Job.State.RUNNING, heartbeat_at__lt=stale).count()
    yield GaugeMetricFamily(
        "hypac_jobs_silent", "Running jobs whose worker shows no sign of life.", value=silent
    )


def _queue_of(job: Job) -> str:
    try:
        return jobs.kind(job.kind).queue_of(job)
    except HypacError:  # of a newer version
        return "unknown"


def _queue(now: datetime) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "hypac_queue_waiting_items",
        f"Labels that people are asked for and nobody holds; at {MOST_WAITING} counting stops.",
        labels=("project",),
    )
    batches: dict[str, list[int]] = {}
    open_batches = WorkBatch.objects.filter(
        locked_at__isnull=True,
        withdrawn_at__isnull=True,
        project__archived_at__isnull=True,
        project__deleting_at__isnull=True,
    )
    for batch, project in open_batches.order_by("-pk").values_list("pk", "project__slug")[:MOST_PROJECTS]:
        batches.setdefault(project, []).append(batch)
    for project, ids in sorted(batches.items()):
        some = WorkItem.objects.filter(batch__in=ids, state=WorkItem.State.OPEN).order_by()
        waiting.add_metric((project,), some.values("pk")[:MOST_WAITING].count())
    yield waiting

    leases = GaugeMetricFamily(
        "hypac_queue_leases",
        "Items that somebody holds: active ones, and those whose time is over.",
        labels=("state",),
    )
    held = WorkItem.objects.filter(state=WorkItem.State.LEASED).order_by()
    expired = held.filter(lease_expires_at__lt=now).count()
    leases.add_metric(("active",), held.count() - expired)
    leases.add_metric(("expired",), expired)
    yield leases
    people = GaugeMetricFamily("hypac_queue_annotators", "People who hold an item now.")
    active = held.filter(lease_expires_at__gte=now)
    people.add_metric((), active.values("leased_to").distinct().count())
    yield people


def _mail(now: datetime) -> Iterator[Metric]:
    waiting = Mail.objects.order_by().filter(state__in=[Mail.State.PENDING, Mail.State.SENDING])
    found = waiting.aggregate(n=Count("pk"), oldest=Min("created_at"))
    age = (now - found["oldest"]).total_seconds() if found["oldest"] else 0.0
    yield GaugeMetricFamily("hypac_mail_waiting", "Letters that are not sent yet.", value=found["n"])
    yield GaugeMetricFamily(
        "hypac_mail_oldest_waiting_seconds",
        "How long the oldest of them waits: 0 where none does.",
        value=age,
    )
    failed = Mail.objects.filter(state=Mail.State.FAILED, created_at__gte=now - MAIL_OF)
    yield GaugeMetricFamily(
        "hypac_mail_given_up", "Letters of the last two days that are given up.", value=failed.count()
    )
