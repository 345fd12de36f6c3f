"""The audit of people's labels after the routing: whether they err more than the manager accepted.

The marked items are counted in the order of the queue, which is random, and only as far as nothing before
them is open: who is fast, or slow at what is hard, does not choose the order.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.value_reader import as_text
from annotation.labelling import queue
from annotation.models import Label, WorkItem
from routing.models import AuditedItem, ExpertRequest, Run
from routing.runs.audits import OPEN, UNCOMPUTED, AuditState, Counted, count_on, find_alarm, state_of
from routing.runs.certify import mark_invalid
from routing.runs.events import audit_alarm
from routing.runs.expert.requests import LATEST, ask_about, same_labels

Why = ExpertRequest.Why
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
    return state_of(run, _further)


def check_for_alarm(run: Run, item: int | None = None) -> None:
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

    def outcomes(after: Counted, count: int) -> list[tuple[int, int, object]]:
        rows = _rows(run, after, count)
        found = _outcomes(run, {item: _Looked(*row) for _place, item, *row in rows})
        return [(place, item, found[item]) for place, item, *_row in rows]

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


class _Looked(NamedTuple):
    """What `_rows` has of an item."""

    state: str | None
    label: Any
    why: str | None
    expert_state: str | None
    expert_label: Any

    @property
    def both(self) -> bool:
        """Whether her label and the expert's are there, and audited."""
        done = self.state not in WorkItem.UNFINISHED and self.expert_state not in WorkItem.UNFINISHED
        return done and self.why == Why.AUDIT and None not in (self.label, self.expert_label)


def _outcomes(run: Run, rows: Mapping[int, _Looked]) -> dict[int, object]:
    """By item OPEN, UNCOMPUTED, None for what is no audit, or whether the two differ."""
    # As answers are compared (`routing.core.reference.sources.equal`): the second is taken for the true one.
    pairs = {item: (as_text(row.expert_label), as_text(row.label)) for item, row in rows.items() if row.both}
    found = {item: _without_loss(row) for item, row in rows.items() if not row.both}
    same = same_labels(run, list(pairs.values()))
    told = {item: UNCOMPUTED if one is None else not one for item, one in zip(pairs, same, strict=True)}
    return found | told


def _without_loss(row: _Looked) -> object:
    if row.state in WorkItem.UNFINISHED:
        return OPEN
    if row.why == Why.UNDECIDED:
        return UNCOMPUTED
    if row.label is None or row.why != Why.AUDIT:
        return None
    if row.expert_state in WorkItem.UNFINISHED:
        return OPEN
    # Or whoever decides that nobody can label it could keep mistakes from being seen.
    return True if row.expert_state == WorkItem.State.UNLABELABLE else None
