"""The files that were sent to a project and that nothing is made of: which there are, and removing one."""

from typing import IO

from django.db import transaction
from django.db.models import Exists, ForeignObjectRel, OuterRef, Q, QuerySet, RestrictedError
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.files import MODEL_OUTPUT, store_file
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import Item, Project, StoredFile, User

ANSWERS = "predictions"
"""The kind of the jobs that take in what models answered."""


def keep_for_import(
    *, project: Project, content: IO[bytes], original_name: str, media_type: str
) -> StoredFile:
    """As `store_file`, of a file that somebody sends as data. The same bytes may have been sent as answers of
    a model: they are open again where no answer of them was taken, as nothing is hidden then.
    """
    stored = store_file(project=project, content=content, original_name=original_name, media_type=media_type)
    if stored.media_type != MODEL_OUTPUT or media_type == MODEL_OUTPUT:
        return stored
    with transaction.atomic():
        # Whoever has answers of it taken in meanwhile waits, or is waited for: then there is a job.
        locked = StoredFile.objects.select_for_update(no_key=True).filter(pk=stored.pk).first()
        if locked and _opens(locked):
            stored.media_type = media_type[:100] or "application/octet-stream"
            stored.save(update_fields=["media_type"])
    return stored


def _opens(stored: StoredFile) -> bool:
    """Whether a file of what models answered may be shown as data: nothing was, or is being, made of it."""
    if not _of_nothing(stored.project).filter(pk=stored.pk).exists():
        return False  # a delivery has it, say
    looked = stored.project.jobs.filter(kind=ANSWERS, params__file=stored.pk)
    taken = looked.filter(
        Q(result__added__gt=0) | Q(result__already_there__gt=0) | Q(state__in=jobs.UNFINISHED)
    )
    return not taken.exists()


def sent_files(project: Project) -> QuerySet[StoredFile]:
    """Without images of items, and without what other tables name, as deliveries do: those are no files that
    somebody sent, or are more than that. Nor with what models answered, which is not shown.
    """
    return _of_nothing(project).exclude(media_type=MODEL_OUTPUT)


def answers_files(project: Project) -> QuerySet[StoredFile]:
    """What models answered, as it was sent: a job took from it what it could use, and nobody is shown it."""
    return _of_nothing(project).filter(media_type=MODEL_OUTPUT)


def sent_as_answers(project: Project) -> QuerySet[StoredFile]:
    """`answers_files`, and those that came as data since, as nothing had been taken from them: they may be
    read for answers again. No other file of the project may be.
    """
    read = list(project.jobs.filter(kind=ANSWERS).values_list("params__file", flat=True))
    return _of_nothing(project).filter(Q(media_type=MODEL_OUTPUT) | Q(pk__in=read))


def closed_for_answers(stored: StoredFile) -> None:
    """Inside the transaction that stores the job which reads it: the file is nothing to be shown from now on,
    also where it came as data since. Raises InputError where it was removed.
    """
    locked = StoredFile.objects.select_for_update(no_key=True).filter(pk=stored.pk).first()
    if locked is None:
        raise InputError(_("This file was removed meanwhile. Send it again."), where="file")
    if locked.media_type != MODEL_OUTPUT and not Item.objects.filter(image=locked).exists():
        locked.media_type = MODEL_OUTPUT
        locked.save(update_fields=["media_type"])


def _of_nothing(project: Project) -> QuerySet[StoredFile]:
    found = StoredFile.objects.filter(project=project)
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
