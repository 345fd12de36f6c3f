"""What brings an item to the expert after the routing: second looks, answers that do not come, audits."""

from collections.abc import Collection, Mapping, Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.value_reader import as_text
from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Label, User, WorkBatch, WorkItem
from routing.common.computed_losses import have_computed, known_losses
from routing.common.states import State
from routing.core.losses import LossError, LossUnavailableError
from routing.core.reference.sources import CHECKED
from routing.models import AuditedItem, ExpertRequest, RosterEntry, Route, Run
from routing.runs.roster import who_is_the_expert
from routing.runs.usable_answers import table_of_answers

Why = ExpertRequest.Why
HANDED_OVER = "run.work_handed_over"
"""Action of the audit trail."""
AT_ONCE = 500
LATEST = 2**63 - 1


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
    _audits_to_come(run, second).update(why=Why.SECOND_LOOK)
    people = dict(zip(ids, who_is_the_expert(run)(ids), strict=True))
    if not queue.add_work(batch=run.expert_routed_batch, people=people):
        return
    _reopen(run)


def _reopen(run: Run) -> None:
    """A correction may come when everything seemed to be done."""
    Run.objects.filter(pk=run.pk, state=State.COMPLETE).update(state=State.LABELLING, completed_at=None)


def _audits_to_come(run: Run, items: Collection[int]) -> QuerySet[ExpertRequest]:
    """Requests for the audit alone whose item the expert has not labelled yet."""
    looked = WorkItem.objects.filter(
        batch=run.expert_routed_batch, state=WorkItem.State.DONE, item=OuterRef("item")
    )
    return ExpertRequest.objects.filter(~Exists(looked), run=run, item__in=items, why=Why.AUDIT)


def person_labelled(run: Run, label: Label) -> None:
    """See whether the expert is to label an item that an annotator has just labelled, or corrected: where the
    policy compares the label with the dearest model's and they differ, or for the audit. Where the loss of
    the two is not computed yet, that is stored as undecided, and `decide` does it once it is.
    """
    item = label.item_id
    sent = Route.objects.filter(run=run, item=item).values_list("position", flat=True).first()
    if sent != _checked(run):
        if AuditedItem.objects.filter(run=run, item=item).exists():
            ask_about(run, {item: Why.AUDIT})
        return
    waited = False
    if label.version > 1:
        # Locked, or `decide` may end with the label that this one replaces after this has looked.
        _lock_work(run)
        waited = bool(_undecided(run).filter(item=item).select_for_update(no_key=True))
    if (agrees := _agree_with_best(run, [label])[0]) is None:
        _leave_undecided(run, item)
    else:
        _decide(run, {item: agrees}, waited=waited)


def _lock_work(run: Run) -> None:
    """The expert's work comes first, then requests: whoever asks about an item locks it in any case, and two
    who took them in another order would wait for each other.
    """
    if run.expert_routed_batch_id is not None:
        WorkBatch.objects.select_for_update(no_key=True).get(pk=run.expert_routed_batch_id)


def _leave_undecided(run: Run, item: int) -> None:
    expert = run.expert_routed_batch
    if expert is None or expert.withdrawn_at is not None:
        return  # as `ask_about`
    _requested, made = ExpertRequest.objects.get_or_create(
        run=run, item_id=item, defaults={"why": Why.UNDECIDED}
    )
    if not made:
        _audits_to_come(run, [item]).update(why=Why.UNDECIDED)
    _reopen(run)
    # One at work may have computed it meanwhile, and have seen no label yet.
    have_computed(run.project, soon=True)


def has_undecided(run: Run) -> bool:
    """Whether there is an item of which it is not decided yet whether the expert is to label it, too."""
    return _undecided(run).exists()


def count_undecided(run: Run) -> int:
    return _undecided(run).count()


def decide(run: Run, *, behind: int = 0) -> int | None:
    """Do what `person_labelled` does for labels whose loss was computed since: of so many items behind this
    one by their keys. Returns the last of them; None where there is none. Call it in a transaction.
    """
    _lock_work(run)
    waiting = _undecided(run).filter(item__gt=behind).order_by("item")
    items = list(waiting.select_for_update(no_key=True).values_list("item_id", flat=True)[:AT_ONCE])
    if not items:
        return None
    labels = _labels_to_compare(run, items)
    agree = zip(labels, _agree_with_best(run, labels), strict=True)
    _decide(run, {label.item_id: agrees for label, agrees in agree if agrees is not None}, waited=True)
    return items[-1]


def _decide(run: Run, agree: Mapping[int, bool], *, waited: bool) -> None:
    """`agree`: items -> whether the annotator agrees with the dearest model; `waited`: some may have been
    undecided.
    """
    differ = [item for item, agrees in agree.items() if not agrees]
    marked = run.audited_items.filter(item__in=agree.keys() - differ)
    audited = [] if len(differ) == len(agree) else list(marked.values_list("item", flat=True))
    if waited:
        undecided = _undecided(run).filter(item__in=list(agree))
        undecided.filter(item__in=differ).update(why=Why.SECOND_LOOK)
        undecided.filter(item__in=audited).update(why=Why.AUDIT)
        undecided.delete()
    ask_about(run, dict.fromkeys(differ, Why.SECOND_LOOK) | dict.fromkeys(audited, Why.AUDIT))


def _undecided(run: Run) -> QuerySet[ExpertRequest]:
    return ExpertRequest.objects.filter(run=run, why=Why.UNDECIDED)


def _checked(run: Run) -> int:
    """Position of the routes to `checked`."""
    return run.run_sources.count() + CHECKED + 1


def _labels_to_compare(run: Run, items: Sequence[int]) -> list[Label]:
    """Of each item the newest label of its annotator; where the expert has labelled it, the newest before."""
    first = Label.objects.filter(
        work_item__batch=run.expert_routed_batch_id, item=OuterRef("item"), version=1
    ).values("pk")
    labels = Label.objects.filter(
        work_item__batch=run.routed_batch_id,
        item__in=items,
        pk__lt=Coalesce(Subquery(first[:1]), Value(LATEST)),
    )
    return list({label.item_id: label for label in labels.order_by("pk")}.values())


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
    losses = known_losses(run, pairs)
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
