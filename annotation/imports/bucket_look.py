"""The job that looks into a bucket which is synchronised, and imports what is new there, file by file.

What it has found is stored first, each file as it is then. One is imported after the other, in the order of
their names, each by an import like that of an uploaded file. A file whose import has begun is not taken again
before its content changes, whatever dies in between.
"""

import hashlib
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common.files import store_file
from annotation.errors import ConflictError, HypacError, InputError, UnderWayError
from annotation.imports.bucket_sync import HowToImport, looks_of
from annotation.imports.columns import IMPORT
from annotation.imports.fetching import DENIED, IN_MEMORY, MAX_OBJECTS, MOST_DENIED, OTHER_IMPORT, check_size
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import BucketFile, BucketSync, Job, StoredFile
from annotation.outside.buckets import (
    CHANGED_MEANWHILE,
    NO_SUCH_OBJECT,
    OTHER_BYTES,
    Bucket,
    ObjectInfo,
    checked_key,
    unreadable,
)
from annotation.outside.connections import store_of
from annotation.outside.hub import Repository
from annotation.outside.net.client import BADLY_COMPRESSED, HEADER_NOT_SENT, TOO_LARGE
from annotation.permissions import access_to
from annotation.ports import routing_port
from annotation.storable import NOT_STORED
from annotation.words import Words

AT_ONCE = 1000
LOOK_SECONDS = 2
MOST_KEY_BYTES = 1024
NOT_AS_LISTED = {OTHER_BYTES.code, HEADER_NOT_SENT.code, TOO_LARGE.code, BADLY_COMPRESSED.code}
"""What the store gives of an object, or calls it by, is not as it was listed: that, too, is about one."""
ONCE = WROTE, LISTED = "wrote_deliveries", "listed_files"
FIELDS = ("file", "key", "format", "id_column", "text_column", "keep_labels", "add_duplicates", "encoding")

NO_SYNC = failures.register(
    "not_synchronised", gettext_noop("The connection was deleted, or is not synchronised any more.")
)
MAY_NOT = failures.register(
    "may_not_import",
    gettext_noop(
        "%(name)s, in whose name files are taken from the bucket, may not import into this project any more. "
        "Save it once more, and it is done in your name."
    ),
)
TOO_MANY = failures.register(
    "too_many_in_folder",
    gettext_noop(
        "There are more than %(most)s objects below “%(key)s”. Move away what was imported, or choose a "
        "folder in it."
    ),
)


@dataclass
class Counts:
    """`found`: files that are new, or have other content than before; `written`: deliveries of which the
    writing began.
    """

    found: int = 0
    taken: int = 0
    refused: int = 0
    written: int = 0


class _Look:
    """One attempt of the job. Its counts go on from those of the attempts before."""

    def __init__(self, context: JobContext, sync: BucketSync, bucket: Bucket | Repository) -> None:
        self.context, self.sync, self.bucket = context, sync, bucket
        self.how = HowToImport.of(sync.columns)
        self.prefix = sync.connection.prefix + sync.take_from
        known = {name: context.job.result.get(name, 0) for name in asdict(Counts())}
        self.counts = Counts(**known)
        # What is done once, however many attempts wait for other imports behind it.
        self.once = {name: True for name in ONCE if context.job.result.get(name)}
        self._left: list[int] = []  # for the next look: changed while they were read, or denied
        self._read = self._denied_in_a_row = 0

    def write(self, *, again: bool) -> None:
        """Have deliveries written that are not there yet; `again`: those whose writing failed, too."""
        if WROTE in self.once:
            return
        with self.context.chunk():
            self.once[WROTE] = True
            self.counts.written += routing_port().write_deliveries(
                sync=self.sync, user=self.context.job.created_by, again=again
            )
            self._keep_counts()

    def find(self) -> None:
        """Store what is new, and forget what waits and is not there any more."""
        if LISTED in self.once:
            return
        self.context.progress(stage=Words(gettext_noop("Looking into the bucket")))
        unsettled = self.sync.files.exclude(state=BucketFile.State.TAKEN)
        gone = dict(unsettled.values_list("key", "pk"))
        number = 0
        listed = self.bucket.list_objects(self.prefix, at_most=MAX_OBJECTS + 1)
        while page := list(islice(listed, AT_ONCE)):
            if (number := number + len(page)) > MAX_OBJECTS:
                raise TOO_MANY.error(most=f"{MAX_OBJECTS:,}", key=self.prefix)
            self.context.progress()
            if not all(found.key.startswith(self.prefix) for found in page):
                raise unreadable()  # that is not what was asked for
            objects = {_storable_key(found.key): found for found in page if not found.key.endswith("/")}
            for key in objects:
                gone.pop(key, None)
            if len(gone) + number > 2 * MAX_OBJECTS:
                # A store may list other names each time, and never to the end. What is there comes again.
                self._forget(gone)
            self._store(objects)
        self._forget(gone)
        with self.context.chunk():
            self.once[LISTED] = True
            self._keep_counts()

    def _forget(self, gone: dict[str, int]) -> None:
        left = iter(gone.values())
        while pks := list(islice(left, AT_ONCE)):
            with self.context.chunk():
                BucketFile.objects.filter(pk__in=pks).exclude(state=BucketFile.State.TAKEN).delete()
        gone.clear()

    def _store(self, objects: dict[str, ObjectInfo]) -> None:
        known = {row.key: row for row in self.sync.files.filter(key__in=objects)}
        new = {key: found for key, found in objects.items() if key not in known}
        changed = [
            row
            for key, row in known.items()
            if (row.etag, row.size) != (objects[key].etag[:200], objects[key].size)
        ]
        if not new and not changed:
            return
        with self.context.chunk():
            if not BucketSync.objects.select_for_update(no_key=True).filter(pk=self.sync.pk):
                raise NO_SYNC.error()
            fields: dict[str, Any] = {"state": BucketFile.State.WAITING, "changed_at": Now()}
            BucketFile.objects.bulk_create(
                BucketFile(sync=self.sync, key=key, etag=found.etag[:200], size=found.size, **fields)
                for key, found in new.items()
            )
            for row in changed:
                found = objects[row.key]
                BucketFile.objects.filter(pk=row.pk).update(
                    etag=found.etag[:200], size=found.size, job=None, error="", error_part={}, **fields
                )
            self.counts.found += len(new) + len(changed)
            self._keep_counts()

    def take(self) -> None:
        """Import what waits, one file after the other, last what an earlier look was denied. Raises a
        HypacError that is not permanent while another import into the project is under way.
        """
        while self._denied_in_a_row < MOST_DENIED:
            waiting = self.sync.files.filter(state=BucketFile.State.WAITING).order_by("error", "key")
            rows = list(waiting.exclude(pk__in=self._left)[:AT_ONCE])
            if not rows:
                return
            settled = self.counts.taken + self.counts.refused
            self.context.progress(done=settled, total=settled + waiting.count())
            for row in rows:
                if self._denied_in_a_row < MOST_DENIED:
                    self._take(row)

    def _take(self, row: BucketFile) -> None:
        self._wait_for_others()  # before the file is brought, perhaps to wait then
        self.context.progress(stage=Words.name(row.key))
        stored = None
        try:
            stored = self._brought(row)
        except InputError as error:
            if error.code == NO_SUCH_OBJECT.code:
                row.delete()
            elif error.where == "key":
                self._refuse(row, error)
            elif error.code in DENIED:
                self._deny(row, error)
            else:
                raise
        except ConflictError as error:
            if error.code != CHANGED_MEANWHILE.code:
                raise
            self._left.append(row.pk)  # the next look finds it as it is then
        except HypacError as error:
            if error.code not in NOT_AS_LISTED:
                raise
            self._deny(row, error)
        if stored is not None:
            self._read, self._denied_in_a_row = self._read + 1, 0
            self._check_again()
            self._import(row, stored)

    def _check_again(self) -> None:
        """A look may take hours: what was ended, moved or forbidden meanwhile is imported no more."""
        now = BucketSync.objects.select_related("connection__project").filter(pk=self.sync.pk).first()
        if now is None or not now.takes or _place(now) != _place(self.sync):
            raise NO_SYNC.error()
        _refuse_unless_allowed(self.context)

    def _brought(self, row: BucketFile) -> StoredFile:
        checked_key(row.key)
        check_size(row.size)
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as content:
            for piece in self.bucket.chunks(ObjectInfo(row.key, row.size, row.etag)):
                content.write(piece)
                self.context.progress()
            return store_file(
                project=self.context.job.project,
                content=content,
                # Items without an id are named by the file: two folders may have one of the same name.
                original_name=row.key.removeprefix(self.prefix).replace("/", " › "),
                media_type="application/octet-stream",
            )

    def _begun(self, row: BucketFile, stored: StoredFile) -> Job | None:
        """The import of this content that an attempt began whose worker died before it could say so: one of
        this look, or of one that was given up.
        """
        looks = looks_of(self.sync).exclude(state=Job.State.DONE)
        unsaid = set(looks.values_list("pk", flat=True))
        imports = self.context.job.project.jobs.filter(kind=IMPORT)
        begun = imports.filter(params__file=stored.pk, params__key=row.key).order_by("-pk")
        return next((job for job in begun if job.params.get("fetch") in unsaid), None)

    def _import(self, row: BucketFile, stored: StoredFile) -> None:
        project, user = self.context.job.project, self.context.job.created_by
        try:
            job = self._begun(row, stored) or start_import(
                project=project,
                user=user,  # type: ignore[arg-type]
                stored_file=stored,
                mapping=self.how.mapping,
                format_name=self.how.format_name,
                keep_labels=self.how.keep_labels,
                add_duplicates=self.how.add_duplicates,
                encoding=self.how.encoding,
                fetched_by=self.context.job,
                fetched_key=row.key,
            )
        except UnderWayError:
            raise self._waits() from None
        except HypacError as error:
            if not error.permanent or error.code in ("archived_meanwhile", "project_deleted"):
                raise
            self._refuse(row, error)
            return
        self._settle(row, state=BucketFile.State.TAKEN, job=job)
        self._until_ended(job)

    def _wait_for_others(self) -> None:
        """Imports of this look, which an earlier attempt left, are done here."""
        project, look = self.context.job.project, self.context.job.pk
        for job in project.jobs.filter(kind=IMPORT, state__in=jobs.UNFINISHED):
            if job.params.get("fetch") != look:
                raise self._waits()
            self._until_ended(job)

    def _until_ended(self, job: Job) -> None:
        """Do the import here, so that it does not wait for another worker, of which there may be none. One
        that has it already is waited for.
        """
        jobs.run(job.pk)
        while True:
            job.refresh_from_db(fields=["state"])
            if job.state not in jobs.UNFINISHED:
                return
            self.context.progress()  # where this worker is to end, so was the import
            if job.state != Job.State.RUNNING:
                raise self._waits()  # for its next attempt
            time.sleep(LOOK_SECONDS)

    def _waits(self) -> HypacError:
        self.context.progressed = True  # to wait, however long, is no attempt that went wrong
        return OTHER_IMPORT.error(raised_as=ConflictError, permanent=False)

    def _refuse(self, row: BucketFile, error: HypacError) -> None:
        if error.where in FIELDS:  # of a form that nobody has before them
            error = HypacError(error.message, code=error.code, params=error.params)
        self._settle(row, state=BucketFile.State.REFUSED, **_why(error))

    def _deny(self, row: BucketFile, error: HypacError) -> None:
        """The store does not hand out this object: the others go on, and each later look asks for it again.
        Raises the error where that is new, and the same of all that was asked for.
        """
        why = _why(HypacError(error.message, code=error.code, params=error.params))
        is_new = row.error != why["error"]
        if is_new:
            self._settle(row, state=BucketFile.State.WAITING, **why)
        self._left.append(row.pk)
        self._denied_in_a_row += 1
        if is_new and not self._read and self._denied_in_a_row == MOST_DENIED:
            raise error

    def _settle(self, row: BucketFile, *, state: BucketFile.State, **fields: Any) -> None:
        if state == BucketFile.State.TAKEN:
            self.counts.taken += 1
        else:
            self.counts.refused += 1
        with self.context.chunk(done=self.counts.taken + self.counts.refused):
            told = {"error": "", "error_part": {}, **fields}
            BucketFile.objects.filter(pk=row.pk).update(state=state, changed_at=Now(), **told)
            self._keep_counts()

    def _keep_counts(self) -> None:
        Job.objects.filter(pk=self.context.job.pk).update(result=asdict(self.counts) | self.once)


def _why(error: HypacError) -> dict[str, Any]:
    """The columns of a file that say why it is not imported."""
    told = failures.columns_of(error)
    part = {"failure": told["error_code"], "params": told["error_params"], "words": told["error"]}
    return {"error": told["error"], "error_part": part}


def _storable_key(key: str) -> str:
    """The key; of one that cannot be stored a name that tells it apart, and that `checked_key` refuses."""
    written = key.encode(errors="surrogatepass")
    if len(written) <= MOST_KEY_BYTES and not NOT_STORED.search(key):
        return key
    short = written[:1000].decode(errors="ignore")  # of bytes: an index holds no more of them
    return f"{NOT_STORED.sub('?', short)}/./{hashlib.sha256(written).hexdigest()[:16]}"


def _place(sync: BucketSync) -> tuple[str, ...]:
    connection = sync.connection
    return connection.endpoint, connection.bucket, connection.region, connection.prefix, sync.take_from


def _refuse_unless_allowed(context: JobContext) -> None:
    """Raises HypacError where the person in whose name the job is done may import no more."""
    user = context.job.created_by
    access = access_to(user, context.job.project.slug) if user else None
    if user is None or access is None or not access.allows("items.import"):
        raise MAY_NOT.error(name=user.username if user else "")


def run_look(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "bucket_sync"."""
    project = context.job.project
    found = BucketSync.objects.select_related("connection__project")
    sync = found.filter(connection=context.params["connection"], connection__project=project).first()
    if sync is None:
        raise NO_SYNC.error()
    _refuse_unless_allowed(context)
    with store_of(sync.connection) as bucket:
        look = _Look(context, sync, bucket)
        look.write(again=bool(context.params["again"]))
        if sync.takes:
            look.find()
            look.take()
    return asdict(look.counts)
