"""The audit of people's labels after the routing: whether they err more than the manager accepted.

The marked items are counted in the order of the queue, which is random, and only as far as nothing before
them is open: who is fast, or slow at what is hard, does not choose the order.
"""

from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.value_reader import as_text
from annotation.labelling import queue
from annotation.models import Label, WorkItem
from routing.core.losses import Loss, make_loss
from routing.core.reference.audit import ALARM, AuditProcess
from routing.core.reference.sources import equal, label_table
from routing.models import AuditedItem, ExpertRequest, Run
from routing.runs.certify import mark_invalid
from routing.runs.events import audit_alarm
from routing.runs.expert.requests import ask_about

Why = ExpertRequest.Why
LATEST = 2**63 - 1
AT_ONCE, MOST_AT_ONCE = 50, 2_000
"""Marked items that are read together: few at first, as most often the next one is open, then more."""
ALARMED = failures.register(
    "audit_alarm",
    gettext_noop(
        "The audit found that people err more on routed items than was accepted: %(differ)s of %(audited)s "
        "audited labels differ from the expert's, or got none from her."
    ),
)


@dataclass(frozen=True)
class AuditState:
    """How far the audit of a run is.

    Attributes
    ----------
    marked : int
        Routed items that were marked for it.
    audited, differ : int
        Those that count so far, and on how many of them person and expert differ.
    wealth : float
        W: at `ALARM` it warns.
    """

    marked: int
    audited: int
    differ: int
    wealth: float

    @property
    def alarm(self) -> bool:
        return self.wealth >= ALARM


@dataclass(frozen=True)
class _Counted:
    """What is kept with the run of the marked items that count so far, so that an answer need not read them
    again: the last of them, by place and item, how many there are, and the process.
    """

    place: int = -1
    item: int = 0
    audited: int = 0
    differ: int = 0
    process: AuditProcess = field(default_factory=AuditProcess)

    @classmethod
    def of(cls, run: Run) -> "_Counted":
        kept = run.audit_found
        if kept is None:
            return cls()
        process = AuditProcess(tuple(kept["logs"]), kept["highest"])
        return cls(kept["place"], kept["item"], kept["audited"], kept["differ"], process)

    @property
    def document(self) -> dict[str, Any]:
        return {
            "place": self.place,
            "item": self.item,
            "audited": self.audited,
            "differ": self.differ,
            "logs": list(self.process.logs),
            "highest": self.process.highest,
        }


def audit_state(run: Run) -> AuditState:
    """What the audit has found so far; the wealth is the highest that it has had. After an alarm as it was
    then.
    """
    counted = _Counted.of(run) if run.audit_alarm_at else _further(run, _Counted.of(run))
    return AuditState(run.audited_items.count(), counted.audited, counted.differ, counted.process.highest)


def look_for_alarm(run: Run, item: int | None = None) -> None:
    """Call it in the transaction that stores a label of an audited `item`, or ends work on several: an alarm
    marks the run, and what is still open goes to the expert.
    """
    current = Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # one audited label after the other
    if current.audit_alarm_at is not None:
        return
    before = _Counted.of(current)
    if item is not None:
        place = AuditedItem.objects.values_list("place", flat=True).get(run=run, item=item)
        if (place, item) <= (before.place, before.item):
            before = _Counted()  # a correction of one that counts already: all from the beginning
    counted = _further(current, before)
    Run.objects.filter(pk=run.pk).update(audit_found=counted.document)
    if counted.process.highest < ALARM:
        return
    Run.objects.filter(pk=run.pk).update(audit_alarm_at=timezone.now())
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


def _further(run: Run, counted: _Counted) -> _Counted:
    """With the marked items after those that count, in the order of the queue up to the first one that is
    open. What its annotator could not label, or a second look decides, is no audit; what the expert could not
    label counts as if they differed.
    """
    eta = float(run.accepted_error or 0)
    loss = make_loss(run.loss, run.loss_params)
    count = AT_ONCE
    while rows := _rows(run, counted, count):
        found = [(place, item, _outcome(loss, tuple(row))) for place, item, *row in rows]
        seen = list(takewhile(lambda one: one[2] is not _OPEN, found))
        outcomes = [outcome for _place, _item, outcome in seen if isinstance(outcome, bool)]
        if seen:
            counted = _Counted(
                seen[-1][0],
                seen[-1][1],
                counted.audited + len(outcomes),
                counted.differ + sum(outcomes),
                counted.process.after(outcomes, eta),
            )
        if len(seen) < len(rows) or len(rows) < count:
            break
        count = min(2 * count, MOST_AT_ONCE)
    return counted


_OPEN = object()


def _rows(run: Run, after: _Counted, count: int) -> list[tuple[Any, ...]]:
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
    """_OPEN, None for what is no audit, or whether the two differ."""
    state, label, why, expert_state, expert_label = row
    if state in WorkItem.UNFINISHED:
        return _OPEN
    if label is None or why != Why.AUDIT:
        return None
    if expert_state in WorkItem.UNFINISHED:
        return _OPEN
    if expert_label is None:
        # Or whoever decides that nobody can label it could keep mistakes from being seen.
        return True if expert_state == WorkItem.State.UNLABELABLE else None
    pair = label_table([(as_text(label), as_text(expert_label))], 2)
    return not bool(equal(pair[:, 0], pair[:, 1], loss)[0])
