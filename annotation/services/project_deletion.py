"""Deleting a project with everything in it."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.files.storage import default_storage
from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext as _

from annotation.errors import ConflictError, InputError
from annotation.models import Project, StoredFile, User
from annotation.services import audit
from annotation.services.project_life import refuse_unfinished_jobs
from annotation.storage import StorageError

log = logging.getLogger(__name__)
CHUNK = 500


def delete_project(*, project: Project, actor: User, name: str) -> None:
    """Remove the project, all that belongs to it, and its files. Nothing brings it back.

    `name` is what the person typed to confirm. One statement per table in one transaction: nothing is read
    into memory, however many items there are. What stays is an event in the audit trail of the server.

    Raises InputError for another name; ConflictError while a job is unfinished, or somebody is adding to it.
    """
    if name.strip() != project.name:
        raise InputError(
            _("Type the name of the project as it is: %(name)s") % {"name": project.name}, where="name"
        )
    try:
        with transaction.atomic():
            locked = Project.objects.select_for_update().get(pk=project.pk)
            refuse_unfinished_jobs(locked)
            files = list(StoredFile.objects.filter(project=project).values_list("storage_name", flat=True))
            for model, path in tables_of_a_project():
                rows = model._default_manager.filter(**{path: project.pk})
                # Not `delete`, which would read every row to find what hangs on it: that is in the list.
                rows.order_by()._raw_delete(rows.db)
            audit.record(
                project=None,
                actor=actor,
                action="project.deleted",
                target=f"project:{project.slug}"[:120],
                data={"name": project.name},
            )
            transaction.on_commit(lambda: remove_files(files, folder=f"projects/{locked.pk}"))
    except IntegrityError:
        raise ConflictError(
            _("Somebody was adding to the project at this moment. Nothing is deleted; archive it first.")
        ) from None


def tables_of_a_project() -> list[tuple[type[models.Model], str]]:
    """Every model whose rows belong to a project, with the lookup that leads there; what hangs on others
    comes before them, and the project last.

    Read from the models, so that a table that is added later is not forgotten: rows belong to a project if
    they would be deleted with it (on_delete=CASCADE), step by step.
    """
    found: dict[type[models.Model], str] = {Project: "pk"}
    steps: list[type[models.Model]] = [Project]
    for parent in steps:  # grows while it is walked: the nearest way to the project is found first
        for relation in parent._meta.get_fields(include_hidden=True):
            if not isinstance(relation, models.ManyToOneRel) or relation.on_delete is not models.CASCADE:
                continue
            child, way = relation.related_model, relation.field.name
            if child not in found:
                found[child] = way if parent is Project else f"{way}__{found[parent]}"
                steps.append(child)
    return [(model, found[model]) for model in reversed(steps)]


def remove_files(names: Iterable[str], *, folder: str) -> None:
    """Remove stored files that no other project names, and what an unfinished import left in the folder. One
    that cannot be removed is left, and said in the log: the rows are gone, and `clean_files` finds it.
    """
    storage: Any = default_storage
    try:
        names = [*names, *(name for name, _ in storage.walk(folder))]
        for leftover in list(storage.leftovers(folder)):
            storage.remove_leftover(leftover)
    except (OSError, StorageError):
        log.warning("The folder %s of a deleted project could not be looked through.", folder, exc_info=True)
    for chunk in _chunks([*names]):
        used = set(StoredFile.objects.filter(storage_name__in=chunk).values_list("storage_name", flat=True))
        for name in set(chunk) - used:
            try:
                storage.delete(name)
            except (OSError, StorageError):
                log.warning("The file %s of a deleted project could not be removed.", name, exc_info=True)


def _chunks(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), CHUNK):
        yield names[start : start + CHUNK]
