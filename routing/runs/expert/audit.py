"""The audit of people's labels after the routing: whether they err more than the manager accepted.

The marked items are counted in the order of the queue, which is random, and only as far as nothing before
them is open: who is fast, or slow at what is hard, does not choose the order.
"""

from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.value_reader import as_text
from annotation.labelling import queue
from annotation.models import Label, WorkItem
from routing.core.losses import Loss, make_loss
from routing.core.reference.sources import equal, label_table
from routing.models import AuditedItem, ExpertRequest, Run
from routing.runs.audits import OPEN, AuditState, Counted, count_on, find_alarm
from routing.runs.certify import mark_invalid
from routing.runs.events import audit_alarm
from routing.runs.expert.requests import ask_about

Why = ExpertRequest.Why
LATEST = 2**63 - 1
ALARMED = failures.register(
    "audit_alarm",
    gettext_noop(
        "The audit found that people err more on routed items than was accepted: %(differ)s of %(audited)s "
        "audited labels differ from the expert's, or got none from her."
    ),
)


def audit_state(run: Run) -> AuditState:
    """What the audit has found so far; the wealth is the highest that it has had. After an alarm as it was
    then.
    """
    counted = Counted.of(run) if run.audit_alarm_at else _further(run, Counted.of(run))
    return AuditState(run.audited_items.count(), counted.audited, counted.differ, counted.process.highest)


def look_for_alarm(run: Run, item: int | None = None) -> None:
    """Call it in the transaction that stores a label of an audited `item`, or ends work on several: an alarm
    marks the run, and what is still open goes to the expert.
    """
    counted = find_alarm(run, item, _further)
    if counted is None:
        return
    params = {"differ": counted.differ, "audited": counted.audited}
    mark_invalid(run=run, why=ALARMED, params=params, actor=None)
    open_items = [] if run.routed_batch is None else queue.withdraw_work_of(batch=run.routed_batch, user=None)
    ask_about(run, dict.fromkeys(open_items, Why.ALARM))
    audit.record(
        project=run.project,
        actor=None,
        action="run.audit_alarm",
        target=f"run:{run.number}",
        data={**params, "accepted": str(run.accepted_error), "to_expert": len(open_items)},
    )
    audit_alarm(run, **params)


def _further(run: Run, counted: Counted) -> Counted:
    """With the marked items after those that count, in the order of the queue up to the first one that is
    open. What its annotator could not label, or a second look decides, is no audit; what the expert could not
    label counts as if they differed.
    """
    loss = make_loss(run.loss, run.loss_params)

    def outcomes(after: Counted, count: int) -> list[tuple[int, int, object]]:
        return [(place, item, _outcome(loss, tuple(row))) for place, item, *row in _rows(run, after, count)]

    return count_on(counted, outcomes, eta=float(run.accepted_error or 0))


def _rows(run: Run, after: Counted, count: int) -> list[tuple[Any, ...]]:
    """Of the next marked items: place and item, state of the person's work, her label, why the expert was
    asked, state of the expert's work, her label.
    """
    behind = Q(place__gt=after.place) | Q(place=after.place, item__gt=after.item)
    marked = AuditedItem.objects.filter(behind, run=run, place__gte=after.place).order_by("place", "item")
    why = ExpertRequest.objects.filter(run=run, item=OuterRef("item")).values("why")
    first = _labels(run.expert_routed_batch_id).filter(version=1).values("pk")
    # As it was when the expert labelled: of what is no more audited nobody corrects the mistakes, either.
    before = _labels(run.routed_batch_id).filter(pk__lt=Coalesce(OuterRef("looked"), Value(LATEST)))
    rows = marked.annotate(
        looked=Subquery(first[:1]),
        state=_state(run.routed_batch_id),
        label=Subquery(before.order_by("-pk").values("value")[:1]),
        why=Subquery(why[:1]),
        expert_state=_state(run.expert_routed_batch_id),
        expert_label=Subquery(
            _labels(run.expert_routed_batch_id).filter(superseded_by__isnull=True).values("value")[:1]
        ),
    )
    names = ("place", "item", "state", "label", "why", "expert_state", "expert_label")
    return list(rows.values_list(*names)[:count])


def _state(batch: int | None) -> Subquery:
    return Subquery(WorkItem.objects.filter(batch=batch, item=OuterRef("item")).values("state")[:1])


def _labels(batch: int | None) -> QuerySet[Label]:
    return Label.objects.filter(work_item__batch=batch, item=OuterRef("item"))


def _outcome(loss: Loss, row: tuple[Any, ...]) -> object:
    """OPEN, None for what is no audit, or whether the two differ."""
    state, label, why, expert_state, expert_label = row
    if state in WorkItem.UNFINISHED:
        return OPEN
    if label is None or why != Why.AUDIT:
        return None
    if expert_state in WorkItem.UNFINISHED:
        return OPEN
    if expert_label is None:
        # Or whoever decides that nobody can label it could keep mistakes from being seen.
        return True if expert_state == WorkItem.State.UNLABELABLE else None
    pair = label_table([(as_text(label), as_text(expert_label))], 2)
    return not bool(equal(pair[:, 0], pair[:, 1], loss)[0])
