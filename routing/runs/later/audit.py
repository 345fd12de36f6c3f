"""The audit of items that were taken in later: whether the policy errs more on them than was certified.

Of each intake a share is marked by a hash, whoever labels them by the policy. People label those blind that
a model labels; where the policy sends one to people, it makes no error. They count in an order by that hash,
and only as far as nothing before them is open: who is fast does not choose the order, and the audit may stop
at any moment.
"""

import json
from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Max, Q
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.bulk import copy_rows
from annotation.common.ranges import of_items
from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import as_text
from annotation.labelling import queue
from annotation.labelling.labels_of_record import record_rows
from annotation.models import WorkItem
from routing.common.computed_losses import known_losses
from routing.core import sampling
from routing.core.losses import LossError, LossUnavailableError
from routing.core.reference.audit import audited, queue_order
from routing.models import AuditedItem, Intake, Route, Run
from routing.runs.audits import OPEN, UNCOMPUTED, AuditState, Counted, count_on, find_alarm, state_of
from routing.runs.certify import mark_invalid
from routing.runs.events import audit_alarm
from routing.runs.usable_answers import usable_values

State = WorkItem.State
ALARMED = failures.register(
    "later_audit_alarm",
    gettext_noop(
        "The audit of later items found more errors than were certified: %(differ)s of %(audited)s audited "
        "items got another label from people, or none, than the one that is delivered."
    ),
)


def choose_marked(run: Run, intake: Intake) -> list[int]:
    """Ids of those items of the intake that are to be marked, in the order in which they count.

    The salt is kept nowhere: nobody may work out which of the items before them are audited.
    """
    if not run.later_audit_share:
        return []
    salt = sampling.make_salt(sampling.new_entropy())
    rows = list(intake.pool_items.order_by("position").values_list("item", "item__external_id"))
    marks = audited(salt, [name for _item, name in rows], run.later_audit_share)
    rows = [row for row, mark in zip(rows, marks.tolist(), strict=True) if mark]
    order = queue_order(salt, [name for _item, name in rows])
    return [rows[place][0] for place in order.tolist()]


def mark_later_items(run: Run, ids: Sequence[int]) -> None:
    """Mark these, which count behind those that were marked before."""
    last = run.audited_items.aggregate(last=Max("place"))["last"]
    begin = 0 if last is None else last + 1
    copy_rows(
        AuditedItem, ("run", "item", "place"), [(run.pk, item, begin + n) for n, item in enumerate(ids)]
    )


def later_audit_state(run: Run) -> AuditState:
    """What the audit has found so far; after an alarm as it was then."""
    return state_of(run, _further)


def check_for_drift(run: Run, item: int | None = None) -> None:
    """Call it in the transaction that stores a label of the audit, or ends work of it: an alarm marks the
    run, and nobody is asked for the audit any more.
    """
    counted = find_alarm(run, item, _further)
    if counted is None:
        return
    params = {"differ": counted.differ, "audited": counted.audited}
    mark_invalid(run=run, why=ALARMED, params=params, actor=None)
    batch = Run.objects.select_related("later_audit_batch").get(pk=run.pk).later_audit_batch
    if batch is not None:
        queue.withdraw_work_of(batch=batch, user=None)
    audit.record(
        project=run.project,
        actor=None,
        action="run.audit_alarm",
        target=f"run:{run.number}",
        data={**params, "accepted": str(run.epsilon)},
    )
    audit_alarm(run, **params)


def _further(run: Run, counted: Counted) -> Counted:
    """With the marked items after those that count, up to the first one that is open. While the certificate
    is true, and later items come from the same source, each errs with probability at most epsilon.
    """

    def outcomes(after: Counted, count: int) -> list[tuple[int, int, object]]:
        behind = Q(place__gt=after.place) | Q(place=after.place, item__gt=after.item)
        marked = AuditedItem.objects.filter(behind, run=run).order_by("place", "item")
        rows = list(marked.values_list("place", "item")[:count])
        found = _outcomes(run, [item for _place, item in rows])
        return [(place, item, found[item]) for place, item in rows]

    return count_on(counted, outcomes, eta=float(run.epsilon))


def _outcomes(run: Run, items: Sequence[int]) -> dict[int, object]:
    """Of marked items: OPEN, UNCOMPUTED, None for what is no audit any more, or whether a person gives
    another label than the model's that the policy delivers. What the policy sends to people is no error, and
    what nobody can label is one.
    """
    answers, batch = policy_answers(run, items), run.later_audit_batch_id
    found: dict[int, object] = dict.fromkeys(items, False)
    asked = [item for item in items if item in answers]
    if not asked:
        return found
    records = record_rows(run.project, asked, before_others={} if batch is None else {batch: 1})
    replaced = replaced_labels(run.project)
    states: dict[int, set[str]] = defaultdict(set)
    work = WorkItem.objects.filter(of_items("item", asked), batch=batch)
    for item, state in work.values_list("item_id", "state"):
        states[item].add(state)
    labelled = {
        item: (as_text(replaced.now(record.value)), as_text(replaced.now(json.loads(answers[item]))))
        for item in asked
        if (record := records.get(item)) is not None and record.batch_id == batch
    }
    losses = known_losses(run, list(labelled.values()))
    found |= {item: _differs(value) for item, value in zip(labelled, losses, strict=True)}
    for item in asked:
        if item in labelled:
            continue
        if State.OPEN in states[item] or State.LEASED in states[item]:
            found[item] = OPEN
        elif State.UNLABELABLE in states[item]:
            # Or whoever decides that nobody can label it could keep errors from being seen.
            found[item] = True
        else:
            # People differ and a reviewer has to decide; or nobody is asked any more.
            found[item] = OPEN if State.DONE in states[item] else None
    return found


def _differs(loss: float | LossError) -> object:
    if isinstance(loss, LossUnavailableError):
        return UNCOMPUTED
    # A label that the loss cannot read is none that the answer could agree with.
    return isinstance(loss, LossError) or loss > 0


def policy_answers(run: Run, items: Sequence[int]) -> dict[int, str]:
    """Item id -> the answer, as JSON text, of the model that labels it by the policy; without those that go
    to people.
    """
    routes = dict(Route.objects.filter(of_items("item", items), run=run).values_list("item_id", "position"))
    run_sources = run.run_sources.select_related("source", "run").order_by("position")
    answers = [(one.position, dict(usable_values(one, items))) for one in run_sources]
    found: dict[int, str] = {}
    for item in items:
        for position, given in answers:
            if position >= routes[item] and item in given:
                found[item] = given[item]
                break
    return found
