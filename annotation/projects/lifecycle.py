"""Putting a project away, getting it back, making another one like it, and deleting it: what
holds at once. What a deleted project held a job removes (annotation.projects.removal).
"""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit, events
from annotation.common.locks import locked_against_jobs
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import ApiToken, Job, Membership, Project, User, WorkItem
from annotation.people.invite_by_name import invite_members
from annotation.ports import routing_port
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import create_project
from annotation.projects.removal import KIND, free_slug
from annotation.task_types import TASK_TYPES

# What a copy takes over; label, items and all that follows from them it does not.
COPIED = (*("text_format", "overlap", "overlap_share", "consensus", "label_config", "loss", "loss_params"),)


def archive_project(*, project: Project, actor: User) -> Project:
    """From now on the project can be looked at and not changed (`annotation.permissions` says what is
    left). Items that people hold go back to the queue. Twice has one effect.

    Raises ConflictError while a job is unfinished.
    """
    with transaction.atomic():
        locked = locked_against_jobs(project.pk)
        if locked.archived_at is None:
            refuse_unfinished_jobs(locked)
            locked.archived_at = timezone.now()
            locked.save(update_fields=["archived_at"])
            audit.record(project=locked, actor=actor, action="project.archived")
            events.emit(project=locked, event="project.archived", data={"url": events.address(locked)})
    # Behind it: a job that is storing something may wait for the project.
    for job in project.jobs.filter(kind__in=jobs.on_demand_kinds(), state__in=jobs.UNFINISHED):
        jobs.cancel(job=job)
    # As well: who is storing an answer holds the item, and waits for the project.
    with transaction.atomic():
        held = WorkItem.objects.filter(batch__project=project, state=WorkItem.State.LEASED)
        for user in User.objects.filter(pk__in=held.values("leased_to")).order_by("pk"):
            queue.release_all(project=locked, user=user)
    project.archived_at = locked.archived_at
    return project


def unarchive_project(*, project: Project, actor: User) -> Project:
    """Take a project out of the archive: everything goes on where it stopped. Twice has one effect."""
    with transaction.atomic():
        if Project.objects.filter(pk=project.pk, archived_at__isnull=False).update(archived_at=None):
            audit.record(project=project, actor=actor, action="project.unarchived")
    project.archived_at = None
    return project


def duplicate_project(*, project: Project, actor: User, name: str, with_members: bool = False) -> Project:
    """A new project with the settings, labels, guidelines and sources of this one; no items, runs or keys.

    `actor` is its owner. `with_members` invites the active members, with their roles and limits; so it is
    asked of owners alone by whoever calls. Raises InputError whose `where` names the field.
    """
    choices = [
        ChoiceSpec(choice.name, key=choice.key, hotkey=choice.hotkey, color=choice.color)
        for choice in project.choices.all()
    ]
    with transaction.atomic():
        copy = create_project(
            user=actor,
            name=name,
            task_type=project.task_type,
            choices=choices if TASK_TYPES[project.task_type].has_labels else (),
            question=project.question,
            guidelines=project.guidelines,
            guidelines_before=project.guidelines,
            currency=project.currency,
            human_cost=project.human_cost,
            lease_seconds=project.lease_seconds,
        )
        for field in COPIED:
            setattr(copy, field, getattr(project, field))
        copy.save(update_fields=COPIED)
        others = project.memberships.filter(is_active=True, user__is_active=True).exclude(user=actor)
        others = others.select_related("user")
        invited = invite_members(project=copy, actor=actor, members=others) if with_members else 0
        routing_port().project_duplicated(project=project, copy=copy, actor=actor)
        audit.record(
            project=copy,
            actor=actor,
            action="project.duplicated",
            data={"from": project.slug, "with_members": with_members, "invited": invited},
        )
    return copy


def refuse_unfinished_jobs(project: Project) -> None:
    """Call it with the project's row locked (`jobs.enqueue` waits for it). Raises ConflictError, but not
    for those that a look at a page begins: nobody who may look alone is to hold this up.
    """
    unfinished = Job.objects.filter(project=project, state__in=jobs.UNFINISHED)
    job = unfinished.exclude(kind__in=jobs.on_demand_kinds()).first()
    if job is not None:
        raise ConflictError(
            _("%(job)s is not finished. Wait until it is, or cancel it first.")
            % {"job": _(jobs.kind(job.kind).title)},
            code="job_unfinished",
        )


# --- Deleting -----------------------------------------------------------------------------------------------


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
        # that, and nobody becomes one any more (annotation.people.members.join).
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
