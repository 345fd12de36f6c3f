"""Deliveries put into a bucket: file by file, each looked at afterwards, and none sent twice."""

import hashlib
import io
from typing import Any

from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.files import open_file
from annotation.errors import ConflictError, HypacError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Connection, Job, User
from annotation.outside.buckets import Bucket, checked_key
from annotation.outside.circles import refuse_watched
from annotation.outside.connections import bucket_of, folder
from annotation.words import Words
from routing.delivery import hub_export
from routing.delivery.places import MANIFEST, NOT_AS_SENT, OTHER_OBJECT
from routing.models import Delivery, DeliveryFile

KIND = "export_delivery"
SUMS = "SHA256SUMS"


def export_delivery(
    *,
    delivery: Delivery,
    connection: Connection,
    user: User,
    prefix: str | None = None,
    overwrite: bool = False,
    newest: bool = False,
) -> Job:
    """Start the job that puts all files of a delivery below `prefix` (without one a folder named after the
    project and the delivery) in the connection's folder, and at last SHA256SUMS. Into a data set of the Hub
    they go as `routing.delivery.hub_export` says.

    A file that is there with the same content is left as it is, so that a job goes on where it broke off.
    One with other content is replaced only with `overwrite`. With `newest` it is the project's newest one at
    the time when the job is done. Raises InputError whose `where` names the field, UnderWayError while this
    delivery is put into the bucket, or any into this folder of a data set.
    """
    project = delivery.run.project
    if connection.project_id != project.pk:
        raise InputError(_("There is no such connection in this project."), where="connection")
    below = default_prefix(delivery, connection) if prefix is None else folder(prefix, where="prefix")
    whole = connection.prefix + below
    into = f"{whole}{hub_export.FOLDER}" if connection.is_hub else whole
    refuse_watched(connection=connection, prefix=into)
    for name in (SUMS, *delivery.files.values_list("name", flat=True)):
        checked_key(into + name)
    job = jobs.enqueue(
        project=project,
        kind_name=KIND,
        params={
            "delivery": delivery.pk,
            "connection": connection.pk,
            "prefix": whole,
            "overwrite": overwrite,
            "newest": newest,
        },
        unique_key=_key(delivery, connection, whole),
        user=user,
        total=delivery.files.count() + 1,
    )
    audit.record(
        project=project,
        actor=user,
        action="delivery.export_started",
        target=f"delivery:{delivery.pk}",
        data={"connection": connection.name, "bucket": connection.bucket, "prefix": whole, "job": job.pk},
    )
    return job


def _key(delivery: Delivery, connection: Connection, prefix: str) -> str:
    """Of a data set one folder holds one delivery: two at once would take turns in it."""
    if not connection.is_hub:
        return f"{KIND}:{delivery.pk}:{connection.pk}"
    return f"{KIND}:hub:{connection.pk}:{hashlib.sha256(prefix.encode()).hexdigest()[:40]}"


def default_prefix(delivery: Delivery, connection: Connection) -> str:
    """A data set of the Hub holds one delivery, at its top; its history has those before."""
    if connection.is_hub:
        return ""
    return f"{delivery.run.project.slug}/run-{delivery.run.number}-delivery-{delivery.number}/"


GONE = failures.register(
    "delivery_or_connection_gone", gettext_noop("The connection or the delivery was deleted meanwhile.")
)


def run_export(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "export_delivery"."""
    params, project = context.params, context.job.project
    connection = Connection.objects.filter(project=project, pk=params["connection"]).first()
    delivery = Delivery.objects.filter(run__project=project, pk=params["delivery"]).first()
    if connection is None or delivery is None:
        raise GONE.error()
    if params.get("newest"):
        delivery = _newest(context, delivery)
    files = list(delivery.files.select_related("file"))
    files.sort(key=lambda entry: entry.name == MANIFEST)  # behind those that it names
    if connection.is_hub:
        return hub_export.push(context, connection, delivery, files)
    sums, overwrite = _sums(files), bool(params["overwrite"])
    sums_key, sums_hash = params["prefix"] + SUMS, hashlib.sha256(sums).hexdigest()
    sent = there = size = 0
    with bucket_of(connection) as bucket:
        # Looked at before anything is sent: somebody else's may not be replaced either.
        sums_there = _is_there(bucket, sums_key, sha256=sums_hash, size=len(sums), overwrite=overwrite)
        for number, entry in enumerate(files, 1):
            key, file = params["prefix"] + entry.name, entry.file
            context.progress(stage=Words.name(entry.name))
            if _is_there(bucket, key, sha256=file.sha256, size=file.size, overwrite=overwrite):
                there += 1
            else:
                _send(context, bucket, key, entry, overwrite=overwrite)
                sent += 1
            size += file.size
            context.progress(done=number)
        if not sums_there:  # the last one: where it is, all others are
            bucket.put(
                sums_key,
                io.BytesIO(sums),
                size=len(sums),
                sha256=sums_hash,
                media_type="text/plain",
                overwrite=overwrite,
            )
    result = {
        "bucket": connection.bucket,
        "prefix": params["prefix"],
        "files": len(files),
        "sent": sent,
        "already_there": there,
        "bytes": size,
    }
    with context.chunk(done=len(files) + 1):
        audit.record(
            project=project,
            actor=context.job.created_by,
            action="delivery.exported",
            target=f"delivery:{delivery.pk}",
            data={"connection": connection.name, **result},
        )
    return result


def _newest(context: JobContext, delivery: Delivery) -> Delivery:
    """One that was made while the job waited takes the place of its own, and the job says so."""
    made = Delivery.objects.filter(run__project=context.job.project, pk__gt=delivery.pk)
    newer = made.order_by("-pk").first()
    if newer is None:
        return delivery
    with context.chunk():
        Job.objects.filter(pk=context.job.pk).update(params={**context.params, "delivery": newer.pk})
    return newer


def _is_there(bucket: Bucket, key: str, *, sha256: str, size: int, overwrite: bool) -> bool:
    """Whether the same bytes are. Raises ConflictError where others are that may not be replaced."""
    found = bucket.head(key)
    if found is None:
        return False
    if (found.sha256, found.size) == (sha256, size):
        return True
    if not overwrite:
        raise OTHER_OBJECT.error(raised_as=ConflictError, where="prefix", key=key)
    return False


def _send(context: JobContext, bucket: Bucket, key: str, entry: DeliveryFile, *, overwrite: bool) -> None:
    def report_progress(done: int) -> None:
        context.progress(
            stage=Words("%(done)s / %(size)s: %(file)s", done=done, size=entry.file.size, file=entry.name)
        )

    with open_file(entry.file) as content:
        bucket.put(
            key,
            content,
            size=entry.file.size,
            sha256=entry.file.sha256,
            media_type=entry.media_type,
            overwrite=overwrite,
            progress=report_progress,
        )
    found = bucket.head(key)
    if found is None or (found.sha256, found.size) != (entry.file.sha256, entry.file.size):
        raise NOT_AS_SENT.error(raised_as=HypacError, where="connection", permanent=False, key=key)


def _sums(files: list[DeliveryFile]) -> bytes:
    """As `sha256sum --check` reads it."""
    return "".join(f"{entry.file.sha256}  {entry.name}\n" for entry in files).encode()
