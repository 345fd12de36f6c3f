"""Deliveries that are written into buckets without being asked for (annotation.imports.bucket_sync)."""

import logging
from typing import Any

from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import HypacError
from annotation.models import BucketSync, Job, User
from annotation.permissions import access_to
from routing.delivery.exports import KIND, default_prefix, export_delivery
from routing.models import Delivery

log = logging.getLogger(__name__)

MOST_AT_ONCE = 100

MAY_NOT = failures.register(
    "may_not_write",
    gettext_noop(
        "%(name)s, in whose name deliveries are written into the bucket, may not do so any more. Save it "
        "once more, and it is done in your name."
    ),
)


def write_back(delivery: Delivery) -> None:
    """Have a new delivery written into the buckets of its project, in the transaction that makes it: so there
    is a job for each, and one alone.
    """
    project = delivery.run.project_id
    known = BucketSync.objects.select_related("connection__project", "user")
    for sync in known.filter(connection__project=project, writes_since__isnull=False):
        if _may(sync):
            _write(sync, delivery, delivery.created_by or sync.user)
        else:
            log.warning("Delivery %s is not written into the bucket: %s may not", delivery.pk, sync.user_id)


def write_deliveries(*, sync: BucketSync, user: User | None, again: bool) -> int:
    """Have those written that have been made since this was switched on and that no job has written, and with
    `again` those whose job failed or was stopped; the newest ones first. A data set of the Hub holds one
    delivery: the newest alone is written. Returns how many.

    Raises HypacError where the person in whose name it is done may do so no more.
    """
    if sync.writes_since is None:
        return 0
    if not _may(sync):
        raise MAY_NOT.error(name=sync.user.username)
    missing = _missing(sync, again=again)
    return sum(_write(sync, delivery, user or sync.user) for delivery in missing[:MOST_AT_ONCE])


def unwritten_deliveries(sync: BucketSync) -> tuple[int, str]:
    """How many of these no job has written, as when nobody may or another job was writing, and what to do."""
    count = 0 if sync.writes_since is None else _missing(sync, again=False).count()
    if not count:
        return 0, ""
    if not _may(sync):
        return count, MAY_NOT.sentence({"name": sync.user.username})
    return count, _("They are written as the bucket is looked at next, or by “Synchronise now”.")


def _missing(sync: BucketSync, *, again: bool) -> QuerySet[Delivery]:
    made = Delivery.objects.select_related("run__project").filter(
        run__project=sync.connection.project_id, created_at__gte=sync.writes_since
    )
    if sync.connection.is_hub:
        made = made.filter(pk=made.aggregate(last=Max("pk"))["last"])
    jobs = _jobs_of(sync)
    settled = jobs.exclude(state__in=(Job.State.FAILED, Job.State.CANCELLED)) if again else jobs
    return made.exclude(pk__in=[*settled.values_list("params__delivery", flat=True)]).order_by("-pk")


def write_newer(job: Job, result: dict[str, Any]) -> None:
    """In the transaction in which a job that wrote one ends: a newer one, which had to wait for it."""
    known = BucketSync.objects.select_related("connection__project", "user")
    sync = known.filter(connection=job.params["connection"], connection__project=job.project_id).first()
    if sync is not None and sync.connection.is_hub and _may(sync):
        write_deliveries(sync=sync, user=None, again=False)


def _jobs_of(sync: BucketSync) -> QuerySet[Job]:
    return Job.objects.filter(
        project=sync.connection.project_id, kind=KIND, params__connection=sync.connection_id
    )


def _may(sync: BucketSync) -> bool:
    """Whether the person in whose name deliveries are written may still hand them on."""
    access = access_to(sync.user, sync.connection.project.slug)
    return access is not None and access.allows("deliveries.make")


def _write(sync: BucketSync, delivery: Delivery, user: User) -> bool:
    """Whether a job was started. That a delivery is there does not hang on it."""
    prefix = sync.write_to + default_prefix(delivery, sync.connection)
    try:
        export_delivery(
            delivery=delivery,
            connection=sync.connection,
            user=user,
            prefix=prefix,
            newest=sync.connection.is_hub,
        )
    except HypacError as error:  # somebody writes it at this moment, or the project was archived
        log.warning("Delivery %s is not written into the bucket now: %s", delivery.pk, error)
        return False
    return True
