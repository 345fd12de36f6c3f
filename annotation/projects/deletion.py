"""Deleting a project with everything in it: what holds at once. The rest is a job's (project_removal)."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import InputError
from annotation.jobs import running as jobs
from annotation.models import ApiToken, Job, Membership, Project, User
from annotation.projects.removal import KIND, free_slug


def delete_project(*, project: Project, actor: User, name: str) -> None:
    """From now on the project is there for nobody; a job removes what it holds. Nothing brings it back.

    `name` is what the person typed to confirm. What is under way in the project is cancelled. What stays are
    events in the audit trail of the server: one now, one when the last row is gone. Twice has one effect.

    Raises InputError for another name.
    """
    if name.strip() != project.name:
        raise InputError(
            _("Type the name of the project as it is: %(name)s") % {"name": project.name}, where="name"
        )
    with transaction.atomic():
        # Without the lock on its key, which whoever added rows holds while they commit: of work for a million
        # items that takes a while, and nobody who deletes shall wait for it.
        undeleted = Project.objects.select_for_update(no_key=True).filter(deleting_at__isnull=True)
        locked = undeleted.filter(pk=project.pk).first()
        if locked is None:
            return
        Project.objects.filter(pk=locked.pk).update(deleting_at=timezone.now())
        # Whoever wants to do anything in a project is a member: pages, API, commands and the queue ask for
        # that, and nobody becomes one any more (services.members.join).
        Membership.objects.filter(project=locked).delete()
        ApiToken.objects.filter(project=locked).delete()
        unfinished = Job.objects.filter(project=locked, state__in=jobs.UNFINISHED)
        # One whose worker is in the middle of a chunk is locked: it is stopped behind it, by the removal.
        for job in unfinished.select_for_update(skip_locked=True, no_key=True):
            jobs.cancel(job=job)
        audit.record(
            project=None,
            actor=actor,
            action="project.deleted",
            target=f"project:{locked.slug}"[:120],
            data={"name": locked.name},
        )
        jobs.enqueue(
            project=locked,
            kind_name=KIND,
            params={"slug": locked.slug},
            unique_key=KIND,
            user=actor,
            of_closed=True,
        )
        # The last thing, as from here on whoever adds rows to the project waits for this transaction.
        free_slug(locked, wait=False)
