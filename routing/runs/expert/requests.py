"""What brings an item to the expert after the routing: second looks, answers that do not come, audits."""

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.value_reader import Value, as_text
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Label, User, WorkItem
from routing.common.states import State
from routing.core.losses import make_loss
from routing.core.reference.sources import CHECKED, equal, label_table
from routing.models import AuditedItem, ExpertRequest, RosterEntry, Route, Run
from routing.runs.roster import who_is_the_expert
from routing.runs.usable_answers import table_of_answers

Why = ExpertRequest.Why
HANDED_OVER = "run.work_handed_over"
"""Action of the audit trail."""


def ask_about(run: Run, items: Mapping[int, str]) -> None:
    """Ask the expert about these items (id -> why), unless she is asked already. Call it in a transaction."""
    if not items or run.expert_routed_batch is None or run.expert_routed_batch.withdrawn_at is not None:
        return  # of a run that was cancelled nothing is asked any more
    ids = sorted(items)
    ExpertRequest.objects.bulk_create(
        [ExpertRequest(run=run, item_id=item, why=items[item]) for item in ids], ignore_conflicts=True
    )
    # Until she has looked, what was to be audited alone may come to need her label.
    second = [item for item in ids if items[item] == Why.SECOND_LOOK]
    looked = WorkItem.objects.filter(
        batch=run.expert_routed_batch, state=WorkItem.State.DONE, item=OuterRef("item")
    )
    audits = ExpertRequest.objects.filter(~Exists(looked), run=run, item__in=second, why=Why.AUDIT)
    audits.update(why=Why.SECOND_LOOK)
    people = dict(zip(ids, who_is_the_expert(run)(ids), strict=True))
    if not queue.add_work(batch=run.expert_routed_batch, people=people):
        return
    # A correction may come when everything seemed to be done.
    Run.objects.filter(pk=run.pk, state=State.COMPLETE).update(state=State.LABELLING, completed_at=None)


def person_labelled(run: Run, label: Label) -> None:
    """See whether the expert is to label an item that an annotator has just labelled, or corrected: where the
    policy compares the label with the dearest model's and they differ, or for the audit.
    """
    item = label.item_id
    models = run.run_sources.count()
    sent = Route.objects.filter(run=run, item=item).values_list("position", flat=True).first()
    if sent == models + CHECKED + 1 and not _agrees_with_best(run, item, label.value):
        ask_about(run, {item: Why.SECOND_LOOK})
    elif AuditedItem.objects.filter(run=run, item=item).exists():
        ask_about(run, {item: Why.AUDIT})


def _agrees_with_best(run: Run, item: int, value: Value) -> bool:
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    answers, _scores = table_of_answers(run, run_sources[-1:], [item])
    pair = label_table([(as_text(value), answers[item][0])], 2)
    return bool(equal(pair[:, 0], pair[:, 1], make_loss(run.loss, run.loss_params))[0])


def person_did_not_answer(run: Run, work_item: WorkItem) -> None:
    """An annotator cannot label a routed item: nobody takes her place but the expert."""
    ask_about(run, {work_item.item_id: Why.NO_ANSWER})


def hand_over_item(run: Run, work_item: WorkItem) -> None:
    """Have the expert label what its annotator skipped. Call it in the transaction that skips it."""
    WorkItem.objects.filter(pk=work_item.pk, state=WorkItem.State.OPEN).update(
        state=WorkItem.State.WITHDRAWN, finished_at=timezone.now()
    )
    ask_about(run, {work_item.item_id: Why.NO_ANSWER})


def hand_over(*, run: Run, user: User, actor: User | None) -> int:
    """Have the open items of somebody who is absent go to the expert, or in the calibration set count as
    missing answers; returns how many. The person is on the roster no more.

    Raises ConflictError where nothing of this annotator is open.
    """
    run.refresh_from_db()
    entry = run.roster.get(user=user, role=RosterEntry.Role.ANNOTATOR)
    with transaction.atomic():
        if run.state == State.CALIBRATING and run.calibration_batch is not None:
            count = queue.give_up_work_of(batch=run.calibration_batch, user=user, actor=actor)
        elif run.state == State.LABELLING:
            count = _to_expert(run, [user.pk])
        else:
            count = 0
        if not count:
            raise nothing_open(user)
        RosterEntry.objects.filter(pk=entry.pk, left_at__isnull=True).update(left_at=timezone.now())
        audit.record(
            project=run.project,
            actor=actor,
            action=HANDED_OVER,
            target=f"run:{run.number}",
            data={"user": user.pk, "items": count},
        )
    return count


def nothing_open(user: User) -> ConflictError:
    return ConflictError(
        _("%(name)s has no open item in this run.") % {"name": user.username}, code="no_open_item"
    )


def hand_over_absent(run: Run) -> None:
    """What was just routed to people who have left goes to the expert."""
    gone = run.roster.filter(role=RosterEntry.Role.ANNOTATOR, left_at__isnull=False)
    _to_expert(run, list(gone.values_list("user", flat=True)))


def _to_expert(run: Run, users: Sequence[int]) -> int:
    if run.routed_batch is None:
        return 0
    found: list[int] = []
    for user in User.objects.filter(pk__in=users):
        found += queue.withdraw_work_of(batch=run.routed_batch, user=user)
    ask_about(run, dict.fromkeys(found, Why.NO_ANSWER))
    return len(found)
