"""Locks on a project's row, and who waits for them on PostgreSQL. SQLite has one lock for all who write.

Every row that refers to a project takes a lock on its key: a label, a job, a line of the audit trail, and as
late as at the end of the transaction, with all that it holds by then.
"""

from annotation.models import Project


def locked_project(project_id: int) -> Project:
    """One such transaction after the other. Whoever adds rows to the project does not wait for it."""
    return Project.objects.select_for_update(no_key=True).get(pk=project_id)


def locked_against_jobs(project_id: int) -> Project:
    """The same, and no job begins meanwhile: whoever stores one asks for the key first (`refuse_closed`).

    Whoever adds other rows waits, too: take it before any other lock, and wait for nobody while it is held.
    """
    return Project.objects.select_for_update().get(pk=project_id)
