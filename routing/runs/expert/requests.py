"""What brings an item to the expert after the routing: second looks, answers that do not come, audits."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.value_reader import as_text
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Label, User, WorkItem
from routing.common.computed_losses import losses_looked_up
from routing.common.states import State
from routing.core.losses import LossError, LossUnavailableError, each_loss, is_quick, make_loss
from routing.core.reference.sources import CHECKED
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
    policy compares the label with the dearest model's and they differ, or for the audit. Where the loss of
    the two is not computed yet, `ask_where_computed` does it once it is.
    """
    item = label.item_id
    sent = Route.objects.filter(run=run, item=item).values_list("position", flat=True).first()
    agrees = _agree_with_best(run, [label])[0] if sent == _checked(run) else True
    if agrees is False:
        ask_about(run, {item: Why.SECOND_LOOK})
    elif agrees and AuditedItem.objects.filter(run=run, item=item).exists():
        ask_about(run, {item: Why.AUDIT})


def undecided(run: Run, items: Collection[int] | None = None) -> list[Label]:
    """People's labels, of these items or of all, of which it is not decided whether the expert is to label
    the item, too: their loss is not computed, or nobody has looked since it was. There are none where the
    loss is quick: that is decided with the label.
    """
    labels = _not_decided(run, items)
    asked = ExpertRequest.objects.filter(run=run).values("item")
    marked = run.audited_items.filter(item__in=[label.item_id for label in labels]).exclude(item__in=asked)
    audited = set(marked.values_list("item", flat=True))
    agree = zip(labels, _agree_with_best(run, labels), strict=True)
    return [label for label, agrees in agree if not agrees or label.item_id in audited]


def ask_where_computed(run: Run) -> None:
    """Do what `person_labelled` does for labels whose loss was computed since. Call it in a transaction."""
    labels = _not_decided(run, None)
    agree = _agree_with_best(run, labels)
    marked = set(run.audited_items.filter(item__in=_items(run)).values_list("item", flat=True))
    differ = [label.item_id for label, agrees in zip(labels, agree, strict=True) if agrees is False]
    audited = [label.item_id for label, agrees in zip(labels, agree, strict=True) if agrees]
    ask_about(run, dict.fromkeys(differ, Why.SECOND_LOOK))
    ask_about(run, dict.fromkeys([item for item in audited if item in marked], Why.AUDIT))


def _checked(run: Run) -> int:
    """Position of the routes to `checked`."""
    return run.run_sources.count() + CHECKED + 1


def _items(run: Run) -> QuerySet[Any]:
    return Route.objects.filter(run=run, position=_checked(run)).values("item")


def _not_decided(run: Run, items: Collection[int] | None) -> list[Label]:
    """Of what the policy compares the newest labels of annotators about which the expert was not asked, or
    for the audit alone and has not looked.
    """
    expert = run.expert_routed_batch
    if not run.by_expert or expert is None or expert.withdrawn_at is not None:
        return []
    if (items is not None and not items) or is_quick(make_loss(run.loss, run.loss_params)):
        return []
    asked = ExpertRequest.objects.filter(run=run, item=OuterRef("item"))
    open_audit = WorkItem.objects.filter(batch=expert, item=OuterRef("item"), state__in=WorkItem.UNFINISHED)
    labels = Label.objects.filter(
        ~Exists(asked.exclude(why=Why.AUDIT)),
        ~Exists(asked) | Exists(open_audit),
        work_item__batch=run.routed_batch_id,
        superseded_by__isnull=True,
        item__in=_items(run),
    )
    return list(labels if items is None else labels.filter(item__in=items))


def _agree_with_best(run: Run, labels: Sequence[Label]) -> list[bool | None]:
    """Whether they are the same as the dearest model's answer; None where the loss is not computed yet."""
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    answers, _scores = table_of_answers(run, run_sources[-1:], [label.item_id for label in labels])
    said = [answers[label.item_id][0] for label in labels]
    there = [pair for pair in zip(said, labels, strict=True) if pair[0] is not None]
    same = iter(same_labels(run, [(str(best), as_text(label.value)) for best, label in there]))
    return [False if best is None else next(same) for best in said]


def same_labels(run: Run, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    """Whether the loss of the second where the first is true is 0, as `routing.core.reference.sources.equal`
    has it; None where it is not computed yet.
    """
    with losses_looked_up(lambda: run.project):
        losses = each_loss(make_loss(run.loss, run.loss_params), pairs)
    return [_same(*pair, loss) for pair, loss in zip(pairs, losses, strict=True)]


def _same(first: str, second: str, loss: float | LossError) -> bool | None:
    if isinstance(loss, LossUnavailableError):
        return None
    return first == second if isinstance(loss, LossError) else loss == 0


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
