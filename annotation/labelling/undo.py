"""Taking the last answer back."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.errors import ConflictError
from annotation.labelling.clock import queue_time
from annotation.labelling.leases import LeasedItem, lease, load_item, lock_membership, release_all
from annotation.labelling.next_item import free
from annotation.models import Label, Project, Skip, User, WorkItem


def undo(*, project: Project, user: User, before: int | None = None) -> LeasedItem | None:
    """What the person did last comes back: a label to correct, or a skipped item to be labelled after all.

    A label stays as it is until `correct` is called with `LeasedItem.correcting`. A skip is taken back at
    once, and the person holds that item again (and no other). `before` is the id of a label of theirs: go
    back behind it. None where there is nothing to take back. Raises ConflictError where the skipped item has
    gone to somebody else, NotAllowedError where the person may not label.
    """
    labels = Label.objects.filter(
        annotator=user,
        work_item__batch__project=project,
        work_item__batch__imported_by__isnull=True,
        superseded_by__isnull=True,
    )
    skips = Skip.objects.filter(user=user, work_item__batch__project=project, cleared_at__isnull=True)
    if before is not None and (limit := labels.filter(pk=before).first()):
        labels = labels.filter(pk__lt=limit.pk)
        skips = skips.filter(created_at__lt=limit.created_at)
    with transaction.atomic():
        lock_membership(project, user)
        label = labels.select_related("work_item__item__image", "work_item__batch__project").last()
        skip = skips.select_related("work_item__batch").order_by("created_at", "pk").last()
        if skip is not None and (label is None or skip.created_at > label.created_at):
            return _take_back(project, user, skip)
    if label is None:
        return None
    return LeasedItem(
        work_item=label.work_item, item=label.work_item.item, token="", expires_at=None, correcting=label
    )


def _take_back(project: Project, user: User, skip: Skip) -> LeasedItem:
    """Inside a transaction: raising leaves the skip, and what else the person holds, as it was."""
    Skip.objects.filter(pk=skip.pk).update(cleared_at=timezone.now())
    release_all(project=project, user=user)  # so that a reload shows this item and no other
    batch = skip.work_item.batch
    available = WorkItem.objects.none()
    if batch.locked_at is None and batch.withdrawn_at is None:
        available = free(batch, user).filter(pk=skip.work_item_id)
    now = queue_time()
    until = now + timedelta(seconds=project.lease_seconds)
    work_item_id = lease(available.filter(state=WorkItem.State.OPEN), user, until) or lease(
        available.filter(state=WorkItem.State.LEASED, lease_expires_at__lte=now), user, until
    )
    if work_item_id is None:
        raise ConflictError(_("The item that you skipped has gone to somebody else by now."))
    return load_item(work_item_id, user)
