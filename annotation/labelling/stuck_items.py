"""Items that nobody could label: found, and decided upon by a manager."""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.clock import database_time
from annotation.errors import ConflictError, InputError
from annotation.labelling.leases import NO_LEASE
from annotation.labelling.settlement import lock_settling, settle_item
from annotation.models import Label, Membership, Project, Skip, User, WorkBatch, WorkItem
from annotation.permissions import members_who_label
from annotation.ports import routing_port

State = WorkItem.State


def stuck_items(project: Project) -> QuerySet[WorkItem]:
    """Open work items that nobody is left to do: everyone who may label them has skipped them, or given
    another of the labels that their item gets. One per item; `has_answers` says whether one was given.
    """
    skipped_in = Skip.objects.filter(work_item__batch=OuterRef("pk"), cleared_at__isnull=True)
    batches = WorkBatch.objects.filter(
        Exists(skipped_in) | Q(overlap__gt=1) | Q(rostered=True),
        project=project,
        for_gold=False,
        locked_at__isnull=True,
        withdrawn_at__isnull=True,
    )
    stuck = WorkItem.objects.none()
    for batch in batches.select_related("project"):
        if may_be_stuck(batch):
            stuck |= stuck_in(batch)
    answered = WorkItem.objects.filter(batch=OuterRef("batch"), item=OuterRef("item"), state=State.DONE)
    stuck = stuck.annotate(has_answers=Exists(answered))
    return stuck.select_related("item", "batch").order_by("priority", "order")


def may_be_stuck(batch: WorkBatch) -> bool:
    """Whether it is worth while to look for stuck items, which takes longer."""
    if batch.rostered:
        return True
    if Skip.objects.filter(work_item__batch=batch, cleared_at__isnull=True).exists():
        return True
    # As long as nobody skips, so many people are enough for every item.
    return batch.overlap > 1 and _who_may_label(batch).count() < batch.overlap


def stuck_in(batch: WorkBatch, *, one_per_item: bool = True) -> QuerySet[WorkItem]:
    """The batch's part of `stuck_items`."""
    if batch.rostered:
        return _stuck_by_roster(batch, one_per_item=one_per_item)
    skips = Skip.objects.filter(work_item__batch=batch, cleared_at__isnull=True)
    stuck = WorkItem.objects.filter(~Exists(_who_could_still_label(batch)), batch=batch, state=State.OPEN)
    # What nobody skipped is not looked at, which is nearly all.
    if batch.overlap == 1:
        return stuck.filter(pk__in=skips.values("work_item"))
    same = {"item": OuterRef("item"), "batch": batch}
    tried = Q(item__in=skips.values("work_item__item"))
    if _who_may_label(batch).count() < batch.overlap:
        # Then all of them may have answered, and still an answer is missing.
        tried |= Q(Exists(WorkItem.objects.filter(state=State.DONE, **same)))
    stuck = stuck.filter(tried)
    if not one_per_item:
        return stuck
    return stuck.exclude(Exists(WorkItem.objects.filter(state=State.OPEN, slot__lt=OuterRef("slot"), **same)))


def is_stuck(work_item_id: int) -> bool:
    """Whether it is open, and nobody is left to do it."""
    batch = WorkBatch.objects.select_related("project").get(work_items=work_item_id)
    return stuck_in(batch, one_per_item=False).filter(pk=work_item_id).exists()


def who_is_left(batch: WorkBatch) -> tuple[set[str], set[str]]:
    """Usernames of those who can still label something that is open in a batch without a roster, as they have
    neither skipped it nor answered, and of all whom it can be given to.
    """
    members = _who_may_label(batch)
    skipped = Skip.objects.filter(user=OuterRef(OuterRef("user")), cleared_at__isnull=True)
    if batch.overlap == 1:
        skipped = skipped.filter(work_item=OuterRef("pk"))
    else:
        skipped = skipped.filter(work_item__item=OuterRef("item"), work_item__batch=batch)
    labelled = Label.objects.filter(
        item=OuterRef("item"), annotator=OuterRef(OuterRef("user")), work_item__batch=batch
    )
    work = WorkItem.objects.filter(batch=batch, state__in=WorkItem.UNFINISHED)
    for_them = work.filter(~Exists(skipped), ~Exists(labelled))
    name = f"user__{User.USERNAME_FIELD}"
    left = members.filter(Exists(for_them)).values_list(name, flat=True)
    return set(left), set(members.values_list(name, flat=True))


def _stuck_by_roster(batch: WorkBatch, *, one_per_item: bool) -> QuerySet[WorkItem]:
    """What is for somebody who skipped it, or who may not label any more: nobody takes their place."""
    skipped = Skip.objects.filter(
        work_item=OuterRef("pk"), user=OuterRef("assigned_to"), cleared_at__isnull=True
    )
    gone = ~Q(assigned_to__in=_who_may_label(batch).values("user"))
    stuck = WorkItem.objects.filter(gone | Q(Exists(skipped)), batch=batch, state=State.OPEN)
    if batch.overlap == 1 or not one_per_item:
        return stuck
    before = WorkItem.objects.filter(
        state=State.OPEN, slot__lt=OuterRef("slot"), item=OuterRef("item"), batch=batch
    )
    return stuck.exclude(Exists(before))


def decide_on_stuck_item(*, work_item: WorkItem, actor: User, decision: str) -> WorkItem:
    """Make one of STUCK_ITEM_DECISIONS about an item that nobody is left to do. Raises InputError for another
    word, ConflictError where somebody can still do it, and what the decision raises.
    """
    if decision not in STUCK_ITEM_DECISIONS:
        raise InputError(_("Choose what to do with the item."), where="decision")
    if not stuck_in(work_item.batch, one_per_item=False).filter(pk=work_item.pk).exists():
        # Whoever could end any item could choose what a promise is tested on.
        raise ConflictError(
            _("This item waits for somebody who can still label it. Load the page again."),
            code="can_still_be_labelled",
        )
    return STUCK_ITEM_DECISIONS[decision](work_item=work_item, actor=actor)


def give_up(*, work_item: WorkItem, actor: User) -> WorkItem:
    """Decide that nobody can label an item: it gets no label, and nobody is asked about it any more. What
    some of several people answered about it stays, and does not count.

    Raises ConflictError where somebody is at it, or it has ended.
    """
    with transaction.atomic():
        lock_settling(work_item.batch)
        _end(work_item, State.UNLABELABLE)
        work_item.refresh_from_db()
        _record(work_item, actor, "work.given_up")
        routing_port().work_item_ended(work_item=work_item)
    return work_item


def ask_no_more(*, work_item: WorkItem, actor: User) -> WorkItem:
    """Decide that the answers that an item has got are enough, and settle it from them if they agree.

    Raises ConflictError where there is none, where somebody is at it, or nobody is asked any more, and where
    the roster names two people and a third: the label is theirs or nobody's.
    """
    batch = work_item.batch
    if batch.third_decides:
        raise ConflictError(
            _(
                "Two people of the roster and a third make a label here, and nobody in their place: ask "
                "again, or give the item up."
            ),
            code="roster_decides",
        )
    with transaction.atomic():
        lock_settling(batch)
        same = WorkItem.objects.filter(batch=batch, item=work_item.item_id)
        if not same.filter(state=State.DONE).exists():
            raise ConflictError(_("Nobody has answered about this item yet."), code="no_answer_yet")
        _end(work_item, State.WITHDRAWN)
        work_item.refresh_from_db()
        _record(work_item, actor, "work.asked_no_more")
        settle_item(batch, work_item.item_id)
        routing_port().work_item_ended(work_item=work_item)
    return work_item


def ask_again(*, work_item: WorkItem, actor: User) -> WorkItem:
    """Ask those who skipped an item once more. Raises ConflictError where it does not wait for a label."""
    batch = work_item.batch
    work = WorkItem.objects.filter(pk=work_item.pk)
    if batch.overlap > 1:
        work = WorkItem.objects.filter(batch=batch, item=work_item.item_id)
    with transaction.atomic():
        if not work.filter(state__in=WorkItem.UNFINISHED).exists():
            raise ConflictError(
                _("This item no longer waits for a label. Load the page again."), code="not_waiting_for_label"
            )
        Skip.objects.filter(work_item__in=work, cleared_at__isnull=True).update(cleared_at=timezone.now())
        _record(work_item, actor, "work.asked_again")
    return work_item


STUCK_ITEM_DECISIONS = {"give_up": give_up, "ask_again": ask_again, "ask_no_more": ask_no_more}


def _end(work_item: WorkItem, state: str) -> None:
    """End every open work item of an item in its batch. Raises ConflictError where somebody is at one."""
    same = WorkItem.objects.filter(batch=work_item.batch_id, item=work_item.item_id)
    nobody_at_it = Q(state=State.OPEN) | Q(state=State.LEASED, lease_expires_at__lte=database_time())
    ended = same.filter(nobody_at_it).order_by().update(state=state, finished_at=timezone.now(), **NO_LEASE)
    if not ended or same.filter(state__in=WorkItem.UNFINISHED).exists():
        raise ConflictError(
            _("Somebody has this item open, or it has been dealt with. Load the page again."),
            code="item_in_hand",
        )


def _record(work_item: WorkItem, actor: User, action: str) -> None:
    # Not the item: whoever reads the trail must not learn what is in a hidden batch.
    audit.record(
        project=work_item.batch.project, actor=actor, action=action, target=f"work_item:{work_item.pk}"
    )


def somebody_may_label_blind(project: Project) -> bool:
    """Whether a blind batch of the project could be given to anybody."""
    # Annotators come first: mostly one look is enough.
    members = members_who_label(project.pk).select_related("user", "project").order_by("role", "pk")
    return any(
        not routing_port().blind_objection(project=project, user=member.user)
        for member in members.iterator(chunk_size=50)
    )


def _who_may_label(batch: WorkBatch) -> QuerySet[Membership]:
    """Members whom the batch can be given to."""
    members = members_who_label(batch.project_id)
    if batch.blind:
        kept_out = [
            member.user_id
            for member in members.select_related("user", "project")
            if routing_port().blind_objection(project=member.project, user=member.user)
        ]
        members = members.exclude(user__in=kept_out)
    return members


def _who_could_still_label(batch: WorkBatch) -> QuerySet[Membership]:
    """Members who may label OuterRef("pk") and have neither skipped it nor labelled its item in the batch."""
    skipped = Skip.objects.filter(user=OuterRef("user"), cleared_at__isnull=True)
    if batch.overlap == 1:
        skipped = skipped.filter(work_item=OuterRef(OuterRef("pk")))
    else:
        skipped = skipped.filter(work_item__item=OuterRef(OuterRef("item")), work_item__batch=batch)
    labelled = Label.objects.filter(
        item=OuterRef(OuterRef("item")), annotator=OuterRef("user"), work_item__batch=batch
    )
    return _who_may_label(batch).exclude(Exists(skipped)).exclude(Exists(labelled))
