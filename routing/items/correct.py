"""Correcting an item's label where it is looked at: by the services that review and people's own answers go
by, which keep every version and refuse what they refuse there. Whoever leads the project may replace somebody
else's, too, and says why.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.common.value_reader import Value
from annotation.errors import ConflictError, InputError
from annotation.labelling.answers import correct
from annotation.labelling.labels_of_record import Record, disagreements, newest_settlement, record_values
from annotation.labelling.overrule import may_be_overruled, overrule
from annotation.models import Item, Label, Settlement, WorkBatch, WorkItem
from annotation.permissions import Access
from annotation.review.decide import decide_dispute
from routing.common.states import OPEN
from routing.runs.complete import run_of_batch
from routing.visibility import ViewPermission


@dataclass(frozen=True)
class Correction:
    """What a person can change of an item now.

    Attributes
    ----------
    given
        The label as it stands; None where people differ.
    work_item
        Where it is a reviewer's decision.
    label
        Where it is one person's answer: the person's own, or with `overrules` somebody else's.
    overrules
        The name of the person whose label is replaced; "" where it is no other's.
    locked
        Whether something was computed from it, which becomes invalid.
    """

    given: Value | None
    batch: WorkBatch
    work_item: WorkItem | None = None
    label: Label | None = None
    overrules: str = ""

    @property
    def locked(self) -> bool:
        return self.batch.locked_at is not None


def correction_of(permission: ViewPermission, access: Access, item: Item) -> Correction | None:
    """None where this person can correct nothing, or may not see that there is something."""
    if not access.allows("review") or permission.in_open_calibration([item.pk]).exists():
        return None
    if (decision := _decision(permission, access, item)) is not None:
        return decision
    record = _record(permission, item)
    return _own(permission, access, item, record) or _of_others(permission, access, item, record)


def correct_label(
    *,
    permission: ViewPermission,
    access: Access,
    item: Item,
    value: Any,
    idempotency_key: str,
    comment: str = "",
    confirmed: bool = False,
) -> None:
    """Decide anew, correct the person's own answer, or replace somebody else's; `comment` says why then.

    Raises ConflictError where there is nothing for this person to correct, InputError where it was
    locked and is not `confirmed`, and what `decide_dispute`, `correct` and `overrule` raise.
    """
    found = correction_of(permission, access, item)
    if found is None:
        raise ConflictError(
            _(
                "Nothing here is yours to correct: whoever gave a label corrects it, and where people differ "
                "a reviewer decides."
            ),
            code="no_dispute",
        )
    if found.locked and not confirmed:
        raise InputError(
            _("Not changed. Tick the box first to say that you want to change it."), where="confirm"
        )
    if found.work_item is not None:
        decide_dispute(
            project=access.project,
            actor=access.user,
            work_item=found.work_item,
            value=value,
            comment=comment,
            confirmed=confirmed,
        )
    elif found.label is not None and found.overrules:
        overrule(
            actor=access.user,
            label_id=found.label.pk,
            value=value,
            reason=comment,
            idempotency_key=idempotency_key,
        )
    elif found.label is not None:
        correct(
            user=access.user,
            label_id=found.label.pk,
            value=value,
            comment=comment,
            idempotency_key=idempotency_key,
        )


def _decision(permission: ViewPermission, access: Access, item: Item) -> Correction | None:
    """A dispute that waits for a reviewer, or what this one has decided."""
    waiting = disagreements(access.project, access.user).filter(item=item)
    work_item = waiting.exclude(batch__in=permission.hidden).first()
    if work_item is not None:
        return Correction(None, work_item.batch, work_item=work_item)
    decided = permission.settlements().filter(
        item=item,
        method=Settlement.Method.ADJUDICATED,
        decided_by=access.user,
        superseded_by__isnull=True,
        batch__withdrawn_at__isnull=True,
    )
    standing = decided.select_related("batch__project").order_by("-pk").first()
    if standing is None or newest_settlement(standing.batch, item.pk) != standing:
        return None
    work_item = WorkItem.objects.filter(batch=standing.batch, item=item, slot=0).first()
    return Correction(standing.value, standing.batch, work_item=work_item) if work_item else None


def _record(permission: ViewPermission, item: Item) -> Record | None:
    """The label that the item is shown with: of a run that is shown its own batches go before others, so that
    it need not be the newest one.
    """
    first = permission.run.own_batches if permission.run is not None and permission.delivers else {}
    found = record_values(permission.project, [item.pk], hidden=permission.hidden, before_others=first)
    return found.get(item.pk)


def _own(permission: ViewPermission, access: Access, item: Item, record: Record | None) -> Correction | None:
    """Their answer that the item's label rests on; where it has none, as people differ, their newest one."""
    own = permission.labels().filter(
        item=item, annotator=access.user, work_item__batch__imported_by__isnull=True
    )
    if record is not None:
        own = own.filter(pk__in=[label.pk for label in record.labels])
    label = own.select_related("work_item__batch").order_by("-pk").first()
    return Correction(label.value, label.work_item.batch, label=label) if label else None


def _of_others(
    permission: ViewPermission, access: Access, item: Item, record: Record | None
) -> Correction | None:
    """The label that the item has of somebody else. None while a calibration is open: what is said then must
    not depend on what is in it.
    """
    project = access.project
    if not access.allows("work.decide") or project.runs.filter(state__in=OPEN).exists():
        return None
    if record is None or record.settlement is not None:
        return None
    labels = permission.labels().filter(pk=record.labels[0].pk).exclude(annotator=access.user)
    label = labels.select_related("work_item__batch", "annotator").first()
    if label is None or not may_be_overruled(label):
        return None
    run = run_of_batch(label.work_item.batch)
    if run is not None and run.by_expert:
        return None  # the expert's word is the last one there
    return Correction(
        label.value, label.work_item.batch, label=label, overrules=label.annotator.get_username()
    )
