"""The job that removes what a deleted project holds: chunk by chunk, each committed, so that it may be killed
anywhere and goes on. Its own row and the project's are the last to go, together.
"""

import logging
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from graphlib import TopologicalSorter
from typing import Any

from django.core.files.storage import default_storage
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.storage import StorageError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Item, Job, Project, StoredFile

log = logging.getLogger(__name__)

KIND = "remove_project"
# Items of a chunk, each with all that hangs on it, and rows of any other table.
ITEMS = 1_000
ROWS = 5_000
FILES = 500
# Who had begun to add something before the project was deleted may be done after its table was emptied.
ROUNDS = 5
# SQLite has one writer, and whoever waits for the lock looks for it now and then only: there is to be a gap.
LONGEST_GAP_SECONDS = 0.2
# A removal that failed is tried again after so long: nobody sees the project, who could.
AGAIN_AFTER = timedelta(hours=1)

STILL_ADDED_TO = failures.register(
    "removed_project_grows", gettext_noop("Rows are added to the deleted project again and again.")
)

Tables = list[tuple[type[models.Model], str]]


def remove_project(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "remove_project"."""
    removal = _Removal(context)
    for other in removal.jobs().filter(state__in=jobs.UNFINISHED):
        jobs.cancel(job=other)  # waits until its worker is behind its chunk
    if context.job.project.slug == context.params["slug"]:
        free_slug(context.job.project, wait=True)
    for _round in range(ROUNDS):
        try:
            removal.items()
            removal.rows()
            remove_folder(f"projects/{removal.project}")
            removal.end()
        except IntegrityError:
            log.info("Something was added to the deleted project %s meanwhile.", removal.project)
        else:
            return {}
    raise STILL_ADDED_TO.error(permanent=False)


def free_slug(project: Project, *, wait: bool) -> None:
    """Let another project have its short name; unless `wait`, only where nobody is adding rows to it now."""
    row = Project.objects.filter(pk=project.pk)
    if wait or row.select_for_update(skip_locked=True).exists():
        row.update(slug=f"deleted-{uuid.uuid4().hex}")


def retry_removals() -> None:
    """Have removals go on that failed, and stop other jobs of deleted projects, which the removal may be
    waiting behind. For the reconciler.
    """
    with transaction.atomic():
        others = Job.objects.filter(project__deleting_at__isnull=False, state__in=jobs.UNFINISHED)
        for job in others.exclude(kind=KIND).select_for_update(skip_locked=True, no_key=True, of=("self",)):
            jobs.cancel(job=job)
    ended = Job.objects.filter(
        project__deleting_at__isnull=False,
        kind=KIND,
        state__in=(Job.State.FAILED, Job.State.CANCELLED),
        finished_at__lt=timezone.now() - AGAIN_AFTER,
    )
    for job in ended:
        jobs.retry(job=job, of_closed=True)


class _Removal:
    def __init__(self, context: JobContext) -> None:
        self.context = context
        self.project = context.job.project_id
        self.done = context.job.done

    def jobs(self) -> models.QuerySet[Job]:
        return Job.objects.filter(project=self.project).exclude(pk=self.context.job.pk)

    def items(self) -> None:
        """Items with all that hangs on them, in every table. Not table by table: a label leads to the project
        by its item, and to look for the labels that are left takes longer the fewer they are.
        """
        tables = tables_of(Item, everything=True)
        rows = Item.objects.filter(project=self.project).order_by("position")
        while ids := list(rows.values_list("pk", flat=True)[:ITEMS]):
            with self._chunk(len(ids)):
                for model, path in tables:
                    _remove(model, **_among(path, ids))

    def rows(self) -> None:
        """All other tables, what hangs on others before them."""
        for model, path in tables_of(Project):
            if model is Project or path.endswith("item__project"):
                continue
            rows = model._default_manager.filter(**{path: self.project}).order_by()
            if model is Job:
                rows = rows.exclude(pk=self.context.job.pk)
            while ids := list(rows.values_list("pk", flat=True)[: FILES if model is StoredFile else ROWS]):
                if model is StoredFile:
                    named = StoredFile.objects.filter(pk__in=ids).values_list("storage_name", flat=True)
                    remove_files(named, project=self.project)
                with self._chunk(len(ids)):
                    _remove(model, pk__in=ids)

    def end(self) -> None:
        """Raises IntegrityError where something belongs to the project once more."""
        job = self.context.job
        with transaction.atomic():
            self.context.progress()  # takes the row's lock: only whoever has the job ends it
            audit.record(
                project=None,
                actor=job.created_by,
                action="project.removed",
                target=f"project:{self.context.params['slug']}"[:120],
            )
            _remove(Job, pk=job.pk)
            _remove(Project, pk=self.project)

    @contextmanager
    def _chunk(self, count: int) -> Iterator[None]:
        began = time.monotonic()
        self.done += count
        with self.context.chunk(done=self.done):
            yield
        if connection.vendor == "sqlite":
            time.sleep(min(time.monotonic() - began, LONGEST_GAP_SECONDS))


def tables_of(root: type[models.Model], *, everything: bool = False) -> Tables:
    """Every model whose rows belong to a row of `root`, with the lookup that leads there; what hangs on
    others comes before them, and `root` last. A model stands there once for each way, where each may be
    empty: its rows belong by one or the other.

    Read from the models, so that a table that is added later is not forgotten: rows belong to it if they
    would be deleted with it (on_delete=CASCADE), step by step; `everything`: also if they would forbid that.
    """
    belongs = {models.CASCADE, *((models.RESTRICT, models.PROTECT) if everything else ())}
    found: dict[type[models.Model], list[str]] = {root: ["pk"]}
    certain = {root}  # found by a way that each row has
    steps: list[type[models.Model]] = [root]
    for parent in steps:  # grows while it is walked: the nearest way is found first
        for relation in parent._meta.get_fields(include_hidden=True):
            if not isinstance(relation, models.ManyToOneRel) or relation.on_delete not in belongs:
                continue
            child, way = relation.related_model, relation.field.name
            if child in certain or child is parent:
                continue
            if child not in found:
                steps.append(child)
            if not relation.field.null:
                certain.add(child)
            ways = [way] if parent is root else [f"{way}__{further}" for further in found[parent]]
            found.setdefault(child, []).extend(ways)
    order: TopologicalSorter[type[models.Model]] = TopologicalSorter({model: set() for model in steps})
    for model in steps:
        for field in model._meta.concrete_fields:
            if field.related_model in found and field.related_model is not model:
                order.add(field.related_model, model)
    return [(model, path) for model in order.static_order() for path in found[model]]


def _among(path: str, ids: list[int]) -> dict[str, Any]:
    """Items that were imported together have numbers in a row: PostgreSQL takes as long to plan a query with
    a thousand of them as to answer it.
    """
    first, last = min(ids), max(ids)
    if last - first + 1 == len(ids):
        return {f"{path}__gte": first, f"{path}__lte": last}
    return {f"{path}__in": ids}


def _remove(model: type[models.Model], **lookup: Any) -> None:
    # Not `delete`, which would read every row to find what hangs on it: that is in the list of tables.
    rows = model._default_manager.filter(**lookup).order_by()
    rows._raw_delete(rows.db)


def remove_files(names: Iterable[str], *, project: int) -> None:
    """Remove stored files that no other project names. One that cannot be removed is left, and said in the
    log: `clean_files` finds it once its row is gone.
    """
    names = set(names)
    others = StoredFile.objects.filter(storage_name__in=names).exclude(project=project)
    _remove_from_storage(names - set(others.values_list("storage_name", flat=True)))


def remove_folder(folder: str) -> None:
    """Remove what an import that was not finished has left in the folder of a project without rows."""
    storage: Any = default_storage
    try:
        names = [name for name, _written in storage.walk(folder)]
        for leftover in list(storage.leftovers(folder)):
            storage.remove_leftover(leftover)
    except (OSError, StorageError):
        log.warning("The folder %s of a deleted project could not be looked through.", folder, exc_info=True)
        return
    for start in range(0, len(names), FILES):
        chunk = names[start : start + FILES]
        named = StoredFile.objects.filter(storage_name__in=chunk).values_list("storage_name", flat=True)
        _remove_from_storage(set(chunk) - set(named))


def _remove_from_storage(names: Collection[str]) -> None:
    for name in names:
        try:
            default_storage.delete(name)
        except (OSError, StorageError):
            log.warning("The file %s of a deleted project could not be removed.", name, exc_info=True)
