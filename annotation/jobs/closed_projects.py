"""Projects in which nothing may begin any more: archived ones, and those that are being deleted."""

from django.db import connection
from django.utils.translation import gettext as _

from annotation.errors import ConflictError
from annotation.models import Project


def refuse_closed(project_id: int) -> None:
    """Inside a transaction, which whoever archives the project then waits for, and sees what it stored.

    Raises ConflictError where the project is archived or was deleted.
    """
    if connection.vendor == "postgresql":
        # The lock of a row that names the project. Its foreign key would take it too, but as late as at the
        # end of the transaction; and of two that archive and store at once, neither would see the other.
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM annotation_project WHERE id = %s FOR KEY SHARE", [project_id])
    # Asked after the lock is there, which may have waited for an archive.
    found = Project.objects.filter(pk=project_id).exclude(archived_at=None, deleting_at=None).first()
    if found is not None:
        archived = _("This project is archived. Take it out of the archive first.")
        raise ConflictError(
            _("This project is being deleted.") if found.deleting_at else archived,
            code="project_deleted" if found.deleting_at else "archived_meanwhile",
        )
