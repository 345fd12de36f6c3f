"""A label that somebody gave is replaced by whoever leads the project, who says why."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import ConflictError, InputError
from annotation.labelling.validation import check_comment, check_idempotency_key, validate_value
from annotation.labelling.versions import next_version
from annotation.models import Label, User, WorkBatch, WorkItem
from annotation.ports import routing_port


def may_be_overruled(label: Label) -> bool:
    """Whether it is one person's word alone, which nothing rests on but the item's own label.

    Not what a result was computed from, nor what has to be given blind or by a certain person: another's word
    there would be another reference than the certificate names. Of several people's answers a reviewer
    decides, and what came with an import was given elsewhere.
    """
    batch = label.work_item.batch
    return not (
        batch.blind
        or batch.rostered
        or batch.locked_at
        or batch.withdrawn_at
        or batch.for_round
        or batch.for_gold
        or batch.imported_by_id
        or WorkItem.objects.filter(batch=batch, item=label.item_id, slot__gte=1).exists()
        or routing_port().decider(batch=batch, item_id=label.item_id)
    )


def overrule(*, actor: User, label_id: int, value: Any, reason: str, idempotency_key: str) -> Label:
    """Store a new version of somebody else's label, as the actor's. Where nothing changes, the label itself
    comes back.

    The earlier version stays, with who gave it. Raises InputError without a reason, and ConflictError where
    it may not be overruled (`may_be_overruled`) or has a newer version already.
    """
    reason = reason.strip()
    if not reason:
        raise InputError(_("Say why the label is replaced: the reason is kept with it."), where="comment")
    check_comment(reason)
    check_idempotency_key(idempotency_key)
    old = Label.objects.select_related("work_item__batch__project", "item").get(pk=label_id)
    project = old.work_item.batch.project
    value = validate_value(project, value, item=old.item_id)

    def refuse(_batch: WorkBatch) -> None:
        if not may_be_overruled(old):
            raise ConflictError(
                _("This label has been changed meanwhile, or something rests on it. Load it again."),
                code="corrected_meanwhile",
            )

    def stored(label: Label) -> None:
        audit.record(project=project, actor=actor, action="label.overruled", target=f"label:{label.pk}")

    return next_version(
        old=old,
        actor=actor,
        value=value,
        comment=reason,
        idempotency_key=idempotency_key,
        unchanged=old.value == value,
        refuse=refuse,
        stored=stored,
    )
