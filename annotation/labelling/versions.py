"""Versions of a label: a correction is a row of its own that names the one it replaces, whoever makes it."""

from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from annotation.common import events
from annotation.errors import ConflictError
from annotation.labelling.settlement import lock_settling, settle_after
from annotation.labelling.suggestions import compare_correction
from annotation.models import Label, User, WorkBatch
from annotation.ports import routing_port


def next_version(
    *,
    old: Label,
    actor: User,
    value: Any,
    comment: str,
    idempotency_key: str,
    unchanged: bool,
    refuse: Callable[[WorkBatch], None],
    stored: Callable[[Label], None] = lambda _label: None,
    lead_time_ms: int | None = None,
) -> Label:
    """Store what takes the place of `old`, which has its work item, batch and project with it, as the
    actor's. Sent twice with the same key it makes one version. Where it is `unchanged`, `old` comes back.

    `refuse` raises where this actor may not, asked of the batch once it is locked; `stored` does what else
    belongs to the version, before anybody hears of it. Raises ConflictError where `old` has a newer version
    already, or for a known key with another answer.
    """
    batch, work_item_id = old.work_item.batch, old.work_item_id
    project = batch.project
    try:
        with transaction.atomic():
            lock_settling(batch)
            # It comes before the batch's lock or after it, never beside it.
            batch = WorkBatch.objects.select_for_update(no_key=True).get(pk=batch.pk)
            batch.project, old.work_item.batch = project, batch
            if label := replay(actor, idempotency_key, work_item_id, value, comment):
                return label
            if _has_newer(old):
                raise ConflictError(
                    _("This label has been corrected already. Load it again."), code="corrected_meanwhile"
                )
            if unchanged:
                return old
            refuse(batch)
            label = Label.objects.create(
                item_id=old.item_id,
                work_item=old.work_item,
                annotator=actor,
                value=value,
                version=old.version + 1,
                supersedes=old,
                idempotency_key=idempotency_key,
                comment=comment,
                lead_time_ms=lead_time_ms,
                suggestion=compare_correction(old, value),
            )
            settle_after(label)
            stored(label)
            routing_port().label_stored(label=label, replaced=old)
            events.label_stored(label, project, batch.pk)
            return label
    except IntegrityError:
        # The key came at the same moment, or another correction did, and the other one won.
        if label := replay(actor, idempotency_key, work_item_id, value, comment):
            return label
        raise ConflictError(
            _("This label was corrected at the same moment. Load it again."), code="corrected_meanwhile"
        ) from None


def _has_newer(label: Label) -> bool:
    return Label.objects.filter(supersedes=label).exists()


def replay(user: User, key: str, work_item_id: int, value: Any, comment: str) -> Label | None:
    """The label that this very request has made already. Raises ConflictError if another one used its key."""
    label = Label.objects.filter(annotator=user, idempotency_key=key).first()
    if label is None:
        return None
    if (label.work_item_id, label.value, label.comment) == (work_item_id, value, comment):
        return label
    raise ConflictError(
        _("This key came with another answer before. Send a new one with each answer."),
        where="idempotency_key",
        code="answer_key_reused",
    )
