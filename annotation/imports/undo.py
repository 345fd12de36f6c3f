"""Taking an import back: the items that it brought go, as long as nothing rests on them."""

from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.locks import locked_project
from annotation.errors import ConflictError, Refusal
from annotation.imports.columns import IMPORT
from annotation.imports.job import Counts
from annotation.imports.labels import remove_empty_batch, remove_with_items, was_corrected
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Item, Job, JobProblem, Project, User
from annotation.words import Words

UNDO = "import_undo"
CHUNK = 5_000

IN_USE = failures.register(
    "import_in_use",
    gettext_noop("A run, an answer, a label or a comment rests on some of these items, so that they stay."),
)
USED_MEANWHILE = failures.register(
    "import_used_meanwhile",
    gettext_noop("Something came to use these items meanwhile, so that they stay."),
)


def undo_objection(job: Job) -> Refusal:
    """Why the import `job` cannot be taken back, in a sentence; "" where it can."""
    if job.kind != IMPORT or job.state in jobs.UNFINISHED:
        return Refusal(_("Only an import that has ended can be taken back."), "import_not_ended")
    counts = Counts.of(job.result)
    if not counts.positions:
        return Refusal(_("This import has brought no items that are still there."), "import_empty")
    if any(_is_used(_items(job.project_id, *place), job) for place in counts.positions):
        return Refusal(IN_USE.sentence({}), IN_USE.code)
    return Refusal()


def start_undo(*, job: Job, user: User) -> Job:
    """Start the job that removes what the import `job` brought. Raises ConflictError where it cannot be."""
    with transaction.atomic():
        # Nobody starts a run meanwhile: `start_run` takes the same lock.
        locked_project(job.project_id)
        if reason := undo_objection(job):
            raise ConflictError(reason, code=reason.code)
        counts = Counts.of(job.result)
        undo = jobs.enqueue(
            project=job.project,
            kind_name=UNDO,
            params={"import": job.pk},
            unique_key=IMPORT,  # not beside an import
            user=user,
            total=sum(last - first + 1 for first, last in counts.positions),
        )
        audit.record(
            project=job.project,
            actor=user,
            action="import.undone",
            target=f"job:{job.pk}",
            data={"items": undo.total, "positions": counts.positions},
        )
    return undo


def undo_import(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "import_undo". From the last item to the first, so that each chunk leaves the
    import as one that brought less. Raises JobFailedError where something came to rest on an item meanwhile.
    """
    job = Job.objects.select_related("project").get(
        pk=context.params["import"], project_id=context.job.project_id
    )
    counts = Counts.of(job.result)
    removed = context.job.done
    columns_go = len(counts.positions) == 1 and not _came_later(job.project, counts)
    context.progress(stage=Words(gettext_noop("Removing items")))
    while counts.positions:
        first, last = counts.positions[-1]
        start = max(first, last - CHUNK + 1)
        removed += last - start + 1
        try:
            with context.chunk(done=removed):
                items = _items(job.project_id, start, last)
                # Whoever refers to one of them from now on waits for this lock, and then finds it gone.
                list(items.select_for_update().values_list("pk", flat=True))
                if _is_used(items, job):
                    raise IN_USE.error()
                remove_with_items(job, items)
                # Nothing goes with them: what came to refer to them would be an error here.
                items._raw_delete(items.db)
                counts.positions[-1:] = [[first, start - 1]] if start > first else []
                _remember(job, counts, columns_go)
        except IntegrityError:
            raise USED_MEANWHILE.error() from None
    return {"removed": removed}


def _remember(job: Job, counts: Counts, columns_go: bool) -> None:
    """What is left of the import. Once nothing is, its columns go too, and one that had not reached the end
    of its file can be started again from the beginning.
    """
    if counts.positions:
        Job.objects.filter(pk=job.pk).update(result=counts.as_result())
        return
    result = counts.as_result() | {"removed": True, "columns": []}
    changes: dict[str, Any] = {"result": result}
    if job.state != Job.State.DONE:
        changes = {"result": {}, "done": 0}
        JobProblem.objects.filter(job=job).delete()
    remove_empty_batch(job)
    Job.objects.filter(pk=job.pk).update(**changes)
    if columns_go:
        project = Project.objects.get(pk=job.project_id)
        gone = set(counts.columns)
        columns = [name for name in project.columns if name not in gone]
        Project.objects.filter(pk=project.pk).update(columns=columns)


def _came_later(project: Project, counts: Counts) -> bool:
    """Whether items that are not of this import came after it: they may have the columns that it brought."""
    last = counts.positions[-1][1]
    return project.items.filter(position__gt=last).exists()


def _items(project_id: int, first: int, last: int) -> QuerySet[Item]:
    return Item.objects.filter(project_id=project_id, position__range=(first, last)).order_by()


def _is_used(items: QuerySet[Item], job: Job) -> bool:
    """Whether anything refers to one of the items, whichever application it is of, so that they stay. What it
    is nobody is told: it would tell what an item was drawn for. What the import `job` itself brought with its
    items goes with them, unless somebody has corrected it.
    """
    brought_by = job.pk or 0
    own: dict[str, dict[str, Any]] = {
        "label": {"work_item__batch__imported_by": brought_by},
        "workitem": {"batch__imported_by": brought_by},
        "settlement": {"batch__imported_by": brought_by},
    }
    if was_corrected(job):
        own = {}
    for relation in Item._meta.get_fields(include_hidden=True):
        if not relation.auto_created or not isinstance(relation, models.ManyToOneRel):
            continue
        model, name = relation.related_model, relation.field.name
        rows = model._default_manager.filter(**{f"{name}__in": items})
        if mine := own.get(str(model._meta.model_name)):
            rows = rows.exclude(**mine)
        if rows.exists():
            return True
    return False
