"""Locks on a project's row, and who waits for them on PostgreSQL. SQLite has one lock for all who write.

Every row that refers to a project takes a lock on its key: a label, a job, a line of the audit trail, and as
late as at the end of the transaction, with all that it holds by then.
"""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.errors import ConflictError
from annotation.models import Project


def locked_project(project_id: int) -> Project:
    """One such transaction after the other. Whoever adds rows to the project does not wait for it.

    Raises ConflictError where the project was deleted meanwhile.
    """
    return _there(Project.objects.select_for_update(no_key=True), project_id)


def locked_against_jobs(project_id: int) -> Project:
    """The same, and no job begins meanwhile: whoever stores one asks for the key first (`refuse_closed`).

    Whoever adds other rows waits, too: take it before any other lock, and wait for nobody while it is held.
    """
    return _there(Project.objects.select_for_update(), project_id)


def _there(projects: QuerySet[Project], project_id: int) -> Project:
    found = projects.filter(pk=project_id).first()
    if found is None or found.deleting_at is not None:
        raise ConflictError(_("This project was deleted."), code="project_deleted")
    return found
