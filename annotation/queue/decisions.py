"""Items that nobody could label: found, and decided upon by a manager."""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.hooks import blind_objection, hooks
from annotation.models import Label, Membership, Project, Skip, User, WorkBatch, WorkItem
from annotation.permissions import ROLES_BY_ACTION
from annotation.queue.leases import NO_LEASE
from annotation.services import audit

State = WorkItem.State


def stuck_items(project: Project) -> QuerySet[WorkItem]:
    """Open work items that everyone who may label them has skipped (and at least one person has)."""
    skipped_in = Skip.objects.filter(work_item__batch=OuterRef("pk"), cleared_at__isnull=True)
    batches = WorkBatch.objects.filter(Exists(skipped_in), project=project, locked_at__isnull=True)
    stuck = WorkItem.objects.none()
    for batch in batches:
        stuck |= stuck_in(batch)
    return stuck.select_related("item", "batch").order_by("priority", "order")


def stuck_in(batch: WorkBatch) -> QuerySet[WorkItem]:
    """The batch's part of `stuck_items`."""
    skips = Skip.objects.filter(work_item=OuterRef("pk"), cleared_at__isnull=True)
    return WorkItem.objects.filter(
        Exists(skips), ~Exists(_who_could_still_label(batch)), batch=batch, state=State.OPEN
    )


def give_up(*, work_item: WorkItem, actor: User) -> WorkItem:
    """Decide that nobody can label an item. Raises ConflictError where somebody is at it, or it has ended."""
    project = work_item.batch.project
    now = timezone.now()
    nobody_at_it = Q(state=State.OPEN) | Q(state=State.LEASED, lease_expires_at__lte=now)
    with transaction.atomic():
        if (
            not WorkItem.objects.filter(nobody_at_it, pk=work_item.pk)
            .order_by()
            .update(state=State.UNLABELABLE, finished_at=now, **NO_LEASE)
        ):
            raise ConflictError(
                "Somebody has this item open, or it has been dealt with. Load the page again."
            )
        work_item.refresh_from_db()
        audit.record(project=project, actor=actor, action="work.given_up", target=f"item:{work_item.item_id}")
        for ended in hooks.work_item_ended:
            ended(work_item)
    return work_item


def ask_again(*, work_item: WorkItem, actor: User) -> WorkItem:
    """Ask those who skipped an item once more. Raises ConflictError where it does not wait for a label."""
    with transaction.atomic():
        if not WorkItem.objects.filter(pk=work_item.pk, state__in=(State.OPEN, State.LEASED)).exists():
            raise ConflictError("This item no longer waits for a label. Load the page again.")
        Skip.objects.filter(work_item=work_item, cleared_at__isnull=True).update(cleared_at=timezone.now())
        audit.record(
            project=work_item.batch.project,
            actor=actor,
            action="work.asked_again",
            target=f"item:{work_item.item_id}",
        )
    return work_item


def _who_could_still_label(batch: WorkBatch) -> QuerySet[Membership]:
    """Members who may label OuterRef("pk") and have neither skipped it nor labelled its item in the batch."""
    members = Membership.objects.filter(
        project_id=batch.project_id, user__is_active=True, role__in=ROLES_BY_ACTION["label"]
    )
    if batch.blind:
        kept_out = [
            member.user_id
            for member in members.select_related("user", "project")
            if blind_objection(member.project, member.user)
        ]
        members = members.exclude(user__in=kept_out)
    skipped = Skip.objects.filter(
        work_item=OuterRef(OuterRef("pk")), user=OuterRef("user"), cleared_at__isnull=True
    )
    labelled = Label.objects.filter(
        item=OuterRef(OuterRef("item")), annotator=OuterRef("user"), work_item__batch=batch
    )
    return members.exclude(Exists(skipped)).exclude(Exists(labelled))
