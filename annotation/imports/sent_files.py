"""The files that were sent to a project and that nothing is made of: which there are, and removing one."""

from django.db import transaction
from django.db.models import Exists, ForeignObjectRel, OuterRef, QuerySet, RestrictedError
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.files import MODEL_OUTPUT
from annotation.errors import ConflictError
from annotation.jobs import jobs
from annotation.models import Project, StoredFile, User


def sent_files(project: Project) -> QuerySet[StoredFile]:
    """Without images of items, and without what other tables name, as deliveries do: those are no files that
    somebody sent, or are more than that. Nor with what models answered, which is not shown.
    """
    found = StoredFile.objects.filter(project=project).exclude(media_type=MODEL_OUTPUT)
    for relation in StoredFile._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ForeignObjectRel):
            continue
        naming = relation.related_model._base_manager.filter(**{relation.field.name: OuterRef("pk")})
        found = found.exclude(Exists(naming))
    return found


def delete_file(*, stored: StoredFile, actor: User) -> None:
    """Remove a file from its project; what was imported from it stays, and the audit trail keeps its name and
    hash. Its bytes are removed by `clean_files`, once nobody can be at work on the same.

    Raises ConflictError while a job reads it, ConflictError where something is made of it.
    """
    with transaction.atomic():
        # Whoever makes something of it meanwhile waits, and then finds that it is gone.
        locked = StoredFile.objects.select_for_update().get(pk=stored.pk)
        if locked.project.jobs.filter(state__in=jobs.UNFINISHED, params__file=locked.pk).exists():
            words = _("This file is being read now. Remove it once that has ended.")
            raise ConflictError(words, code="file_being_read")
        audit.record(
            project=locked.project,
            actor=actor,
            action="file.deleted",
            target=f"file:{locked.pk}",
            data={"file": locked.original_name, "sha256": locked.sha256, "size": locked.size},
        )
        try:
            locked.delete()
        except RestrictedError as error:
            words = _("Items or deliveries of the project are made of this file; it stays with them.")
            raise ConflictError(words, code="file_in_use") from error
