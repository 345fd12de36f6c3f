"""A bucket that is synchronised by itself: what people set, and when it is looked at again. The job that does
so is in bucket_look.py.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Count
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.clock import seconds_ago
from annotation.common.locks import locked_project
from annotation.errors import ConflictError, InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.fetching import KIND as FETCH
from annotation.imports.formats import registry
from annotation.jobs import jobs
from annotation.models import BucketFile, BucketSync, Connection, Job, User
from annotation.outside.buckets import checked_key
from annotation.outside.circles import refuse_circle
from annotation.outside.connections import folder

KIND = "bucket_sync"
# After a look that failed, the next one is so late: whoever is told of each failure hears of it that often.
AFTER_FAILURE_MINUTES = 6 * 60
DUE_AT_ONCE = 100
# Counts of a look that people are told of: a file may be taken that an earlier one has found.
NEWS = ("found", "taken", "refused", "written")
# As long as the names of a delivery's files may be, for a look at the length of its keys beforehand.
_A_DELIVERY = "run-1000000-delivery-1000000/" + "x" * 100


@dataclass(frozen=True)
class HowToImport:
    """What a person says once of an import, for all files of a folder; the parts are those of `start_import`.
    Without a format each file is read as what it seems to be.
    """

    mapping: ColumnMapping = field(default_factory=ColumnMapping)
    format_name: str = ""
    encoding: str = ""
    keep_labels: bool = False
    add_duplicates: bool = False

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "HowToImport":
        """That of `as_stored`, {} for none; or of an import's job, which does not say whether duplicates were
        added.
        """
        return (
            cls()
            if not stored
            else cls(
                ColumnMapping.of(stored),
                stored["format"],
                stored.get("encoding", ""),
                bool(stored.get("keep_labels")),
                bool(stored.get("add_duplicates")),
            )
        )

    def with_duplicates(self, add_duplicates: bool) -> "HowToImport":
        return replace(self, add_duplicates=add_duplicates)

    @property
    def as_stored(self) -> dict[str, Any]:
        return {
            "id_column": self.mapping.id_column,
            "text_column": self.mapping.text_column,
            "field_columns": list(self.mapping.field_columns),
            "format": self.format_name,
            "encoding": self.encoding,
            "keep_labels": self.keep_labels,
            "add_duplicates": self.add_duplicates,
        }


def save_sync(
    *,
    connection: Connection,
    actor: User,
    how: HowToImport | None = None,
    take_from: str = "",
    every_minutes: int = BucketSync.Every.HOUR,
    write_to: str | None = None,
) -> BucketSync:
    """Have new files below `take_from` imported in this way, or none where `how` is None, and deliveries that
    are made from now on written below `write_to`, or none where it is None. Both are folders below the
    connection's. From then on it is done in the name of `actor`.

    Files that could not be imported are tried once more where `how` is another one. Raises InputError whose
    `where` names the field.
    """
    if how is None and write_to is None:
        raise InputError(
            _("Choose what is to be done: take files, write deliveries, or both."), where="takes"
        )
    if how is not None and how.format_name:
        registry.get(how.format_name)
    if every_minutes not in BucketSync.Every.values:
        minutes = ", ".join(map(str, BucketSync.Every.values))
        raise InputError(_("Give one of these numbers of minutes: %(known)s.") % {"known": minutes},
                         where="every_minutes")  # fmt: skip
    below = folder(take_from, where="take_from")
    into = None if write_to is None else folder(write_to, where="write_to")
    if into is not None:
        checked_key(f"{connection.prefix}{into}{connection.project.slug}/{_A_DELIVERY}")
    with transaction.atomic():
        # Whoever saves another one of the project waits: each looks whether it takes what the other writes.
        locked_project(connection.project_id)
        known = BucketSync.objects.filter(connection=connection).first()
        sync = known or BucketSync(connection=connection)
        if sync.pk and how is not None and sync.columns != how.as_stored:
            _wait_again(sync)
        sync.takes, sync.take_from, sync.every_minutes = how is not None, below, every_minutes
        sync.columns = how.as_stored if how is not None else sync.columns
        sync.next_at = Now() if how is not None else None
        if into is None:
            sync.writes_since = None
        elif sync.writes_since is None:
            sync.writes_since = Now()
        sync.write_to, sync.user = into or "", actor
        refuse_circle(sync)
        sync.save()
        audit.record(
            project=connection.project,
            actor=actor,
            action="connection.synchronised",
            target=f"connection:{connection.pk}",
            data={
                "connection": connection.name,
                "take_from": below if sync.takes else None,
                "every_minutes": every_minutes if sync.takes else None,
                "write_to": into,
            },
        )
    sync.refresh_from_db()
    return sync


def end_sync(*, sync: BucketSync, actor: User) -> None:
    """What was imported and written stays; which files were taken is forgotten."""
    with transaction.atomic():
        audit.record(
            project=sync.connection.project,
            actor=actor,
            action="connection.synchronised_no_more",
            target=f"connection:{sync.connection_id}",
            data={"connection": sync.connection.name},
        )
        sync.delete()


def look_now(*, sync: BucketSync, user: User) -> Job:
    """Start the job now, in the name of `user`. Deliveries whose writing failed are written, too.

    Raises UnderWayError while one is at work.
    """
    with transaction.atomic():
        job = _enqueue(sync, user=user, again=True)
        audit.record(
            project=sync.connection.project,
            actor=user,
            action="connection.looked_at",
            target=f"connection:{sync.connection_id}",
            data={"connection": sync.connection.name},
        )
    return job


def start_due() -> int:
    """Start the jobs of those whose time has come; returns how many. Any number of processes may do so at the
    same time. The time of the next one is set at the end of the job; until then it is as after a failure.
    """
    due = BucketSync.objects.filter(
        next_at__lte=Now(),
        connection__project__archived_at__isnull=True,
        connection__project__deleting_at__isnull=True,
    )
    started = 0
    for sync in due.select_related("connection__project", "user").order_by("next_at")[:DUE_AT_ONCE]:
        later = seconds_ago(-60 * max(sync.every_minutes, AFTER_FAILURE_MINUTES))
        with transaction.atomic():
            if not BucketSync.objects.filter(pk=sync.pk, next_at__lte=Now()).update(next_at=later):
                continue  # another process was first
            with suppress(ConflictError):  # one is under way, or the project was archived meanwhile
                _enqueue(sync, user=sync.user)
                started += 1
    return started


def look_ended(job: Job, result: dict[str, Any]) -> None:
    """In the transaction of a job's end: when the next one is due. Of those that found nothing only the last
    one is kept.
    """
    sync = BucketSync.objects.filter(
        connection=job.params["connection"], connection__project=job.project_id
    ).first()
    if sync is None:
        return
    rows = BucketSync.objects.filter(pk=sync.pk)
    rows.update(looked_at=Now())
    rows.filter(takes=True).update(next_at=seconds_ago(-60 * sync.every_minutes))
    nothing = {f"result__{name}": 0 for name in NEWS}
    in_vain = looks_of(sync).filter(state=Job.State.DONE, **nothing)
    in_vain.filter(pk__lt=job.pk).delete()


def brought_something(result: dict[str, Any]) -> bool:
    """Whether anybody wants to be told of such a job."""
    return any(result.get(name) for name in NEWS)


def looks_of(sync: BucketSync) -> Any:
    """Its jobs, newest first."""
    project = sync.connection.project
    return project.jobs.filter(kind=KIND, params__connection=sync.connection_id).order_by("-id")


def writings_of(sync: BucketSync) -> Any:
    """Jobs that write into its bucket, newest first: all that do not read from it."""
    found = sync.connection.project.jobs.filter(params__connection=sync.connection_id)
    return found.exclude(kind__in=(KIND, FETCH)).order_by("-id")


def counts_of(sync: BucketSync) -> dict[str, int]:
    """How many files are in which state."""
    found = sync.files.order_by().values_list("state").annotate(count=Count("pk"))
    return dict.fromkeys(BucketFile.State.values, 0) | dict(found)


def _enqueue(sync: BucketSync, *, user: User, again: bool = False) -> Job:
    return jobs.enqueue(
        project=sync.connection.project,
        kind_name=KIND,
        params={"connection": sync.connection_id, "again": again},
        unique_key=f"{KIND}:{sync.connection_id}",
        user=user,
    )


def _wait_again(sync: BucketSync) -> None:
    refused = sync.files.filter(state=BucketFile.State.REFUSED)
    refused.update(state=BucketFile.State.WAITING, error="", error_part={}, changed_at=Now())
