"""The job that brings a file from a bucket, and then imports it like one that was uploaded."""

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.files import store_file
from annotation.errors import ConflictError, InputError, UnderWayError
from annotation.imports.columns import IMPORT, ColumnMapping
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Connection, Job, Project, StoredFile, User
from annotation.outside.buckets import (
    ELSEWHERE,
    KEYS_REFUSED,
    NO_SUCH_OBJECT,
    REFUSED,
    Bucket,
    ObjectInfo,
    checked_key,
)
from annotation.outside.connections import store_of
from annotation.outside.hub import REFUSED as HUB_REFUSED, TOKEN_REFUSED, Repository
from annotation.words import Words

KIND = "fetch"
IN_MEMORY = 8 * 1024**2
MAX_OBJECTS = 100_000
MOST_DENIED = 20
"""So many objects in a row that the store does not hand out: then it is not about one of them."""
DENIED = {KEYS_REFUSED.code, REFUSED.code, ELSEWHERE.code, TOKEN_REFUSED.code, HUB_REFUSED.code}
FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)


def fetch(
    *,
    connection: Connection,
    user: User,
    key: str,
    mapping: ColumnMapping | None = None,
    format_name: str = "",
    text_format: str = "",
    keep_labels: bool = False,
    add_duplicates: bool = False,
    encoding: str = "",
) -> Job:
    """Start the job (kind "fetch") that stores an object as a file of the project; its `result` has the id as
    `file`. With a `mapping` it then starts the import, whose job its `result` names as `import`.

    `key` lies below the connection's folder. One that is empty or ends with "/" means all objects below it,
    which become one zip archive. Raises InputError for a key that no object has.
    """
    whole = whole_key(connection, key)
    job = jobs.enqueue(
        project=connection.project,
        kind_name=KIND,
        params={
            "connection": connection.pk,
            "key": whole,
            "format": format_name,
            "text_format": text_format,
            "keep_labels": keep_labels,
            "add_duplicates": add_duplicates,
            "encoding": encoding,
            "mapping": None
            if mapping is None
            else {
                "id_column": mapping.id_column,
                "text_column": mapping.text_column,
                "field_columns": list(mapping.field_columns),
            },
        },
        unique_key=f"{KIND}:{hashlib.sha256(f'{connection.pk} {whole}'.encode()).hexdigest()[:40]}",
        user=user,
    )
    audit.record(
        project=connection.project,
        actor=user,
        action="import.fetched",
        target=f"job:{job.pk}",
        data={"connection": connection.name, "key": whole},
    )
    return job


CONNECTION_GONE = failures.register("connection_gone", gettext_noop("The connection was deleted meanwhile."))
OTHER_SIZE = failures.register(
    "other_size", gettext_noop("The store gave another number of bytes than it had said.")
)

OTHER_IMPORT = failures.register(
    "other_import_under_way",
    gettext_noop("Another import into this project is under way. This one begins by itself after it."),
)
NO_OBJECT = failures.register("no_object", gettext_noop("There is no object “%(key)s” in the bucket."))
NO_OBJECT_BELOW = failures.register(
    "no_object_below", gettext_noop("There is no object below “%(key)s” in the bucket.")
)
TOO_MANY_OBJECTS = failures.register(
    "too_many_objects",
    gettext_noop("There are more than %(most)s objects below “%(key)s”. Import its folders one by one."),
)
TOO_MANY_BYTES = failures.register(
    "too_many_bytes",
    gettext_noop("There are more than %(most)s bytes. Split it, or raise HYPAC_MAX_UPLOAD_BYTES."),
)


def whole_key(connection: Connection, key: str) -> str:
    return checked_key(connection.prefix + key.lstrip("/"))


def run_fetch(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "fetch". What was read of an object before the worker died is read again."""
    project, key = context.job.project, context.params["key"]
    connection = Connection.objects.filter(project=project, pk=context.params["connection"]).first()
    if connection is None:
        raise CONNECTION_GONE.error()
    result = dict(context.job.result)
    stored = StoredFile.objects.filter(project=project, pk=result.get("file", 0)).first()
    if stored is None:
        with store_of(connection) as bucket, tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as content:
            archive, left_out = not key or key.endswith("/"), list[LeftOut]()
            if archive:
                left_out = _archive(context, bucket, key, content)
            else:
                _object(context, bucket, key, content)
            name = f"{key.rstrip('/').rpartition('/')[2] or connection.bucket}.zip" if archive else key
            stored = store_file(
                project=project, content=content, original_name=name, media_type="application/octet-stream"
            )
        result = {"file": stored.pk, "name": stored.original_name, "sha256": stored.sha256}
        if left_out:
            result["left_out"] = len(left_out)
        with context.chunk(done=stored.size):
            context.problems(left_out)
            Job.objects.filter(pk=context.job.pk).update(result=result)
    if context.params["mapping"] is not None:
        result["import"] = _import(context, project, stored).pk
    return result


def _import(context: JobContext, project: Project, stored: StoredFile) -> Job:
    """The import's job: that of an earlier attempt, where its worker died after it had started it. One that
    somebody else started of the same bytes is another: its columns may be others.

    Raises ConflictError that is not permanent while another import is under way: there is one at a time.
    """
    earlier = project.jobs.filter(kind=IMPORT, params__fetch=context.job.pk).first()
    if earlier is not None:
        return earlier
    mapping, user = context.params["mapping"], context.job.created_by
    assert user is not None  # noqa: S101 - `fetch` names one
    try:
        return start_import(
            project=project,
            user=user,
            stored_file=stored,
            mapping=ColumnMapping.of(mapping),
            format_name=context.params["format"],
            text_format=context.params["text_format"],
            keep_labels=context.params["keep_labels"],
            add_duplicates=context.params.get("add_duplicates", False),
            encoding=context.params.get("encoding", ""),
            fetched_by=context.job,
        )
    except UnderWayError:
        context.progressed = True  # to wait, however long, is no attempt that went wrong
        raise OTHER_IMPORT.error(raised_as=ConflictError, permanent=False) from None


def _object(context: JobContext, bucket: Bucket | Repository, key: str, out: IO[bytes]) -> None:
    found = bucket.head(key)
    if found is None:
        raise NO_OBJECT.error(raised_as=InputError, where="key", key=key)
    check_size(found.size)
    context.progress(total=found.size, stage=Words(gettext_noop("Reading from the store")))
    done = _copy(context, bucket.chunks(found), out)
    if done != found.size:
        raise OTHER_SIZE.error()


LeftOut = tuple[str, Words]
"""Name of an object within the folder, and why it is not in the archive."""


def _archive(context: JobContext, bucket: Bucket | Repository, prefix: str, out: IO[bytes]) -> list[LeftOut]:
    """All objects as one archive, the same bytes for the same objects, without those that the store does not
    hand out. Raises an error of theirs where they are the first MOST_DENIED, or all.
    """
    objects, size = [], 0
    for found in bucket.list_objects(prefix, at_most=MAX_OBJECTS + 1):
        if found.key.endswith("/"):  # a folder's mark, which some programs leave
            continue
        objects.append(found)
        size += found.size
        check_size(size)
    if not objects:
        raise NO_OBJECT_BELOW.error(raised_as=InputError, where="key", key=prefix)
    if len(objects) > MAX_OBJECTS:
        most = f"{MAX_OBJECTS:,}"
        raise TOO_MANY_OBJECTS.error(raised_as=InputError, where="key", most=most, key=prefix)
    context.progress(total=size, stage=Words(gettext_noop("Reading from the store")))
    done, left_out = 0, list[LeftOut]()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for number, found in enumerate(objects, 1):
            name = found.key.removeprefix(prefix)
            try:
                pieces = _begun(bucket, found)
            except InputError as error:
                if error.code not in {*DENIED, NO_SUCH_OBJECT.code}:
                    raise
                left_out.append((name, _why_left_out(error)))
                if len(left_out) == number and number in (MOST_DENIED, len(objects)):
                    raise
                continue
            info = zipfile.ZipInfo(name, FIRST_MOMENT)
            with archive.open(info, "w", force_zip64=found.size > 2**31) as entry:
                done = _copy(context, pieces, entry, before=done)
    return left_out


def _begun(bucket: Bucket | Repository, found: ObjectInfo) -> Iterator[bytes]:
    """The content, whose first piece is here: what the store does not hand out is told before any is used."""
    pieces = iter(bucket.chunks(found))
    first = next(pieces, b"")
    return chain([first], pieces)


def _why_left_out(error: InputError) -> Words:
    said = failures.in_english(error.code, error.params) or error.message
    return Words(gettext_noop("The store does not hand it out: %(why)s All others were read."), why=said)


def _copy(context: JobContext, pieces: Iterable[bytes], out: IO[bytes], *, before: int = 0) -> int:
    done = before
    for piece in pieces:
        out.write(piece)
        done += len(piece)
        context.progress(done=done)
    return done


def check_size(size: int) -> None:
    if size > settings.HYPAC_MAX_UPLOAD_BYTES:
        most = f"{settings.HYPAC_MAX_UPLOAD_BYTES:,}"
        raise TOO_MANY_BYTES.error(raised_as=InputError, where="key", most=most)
