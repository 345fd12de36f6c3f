"""Gold items: items with known answers that come among the others, and look like them.

An annotator is given each once, by chance, in the share that the project sets. Whoever has too few of their
latest ones right is paused: they are given no more items until a manager lets them go on. They say whom to
trust with work, and certify nothing: known answers are about items that somebody chose.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit, events
from annotation.common.locks import locked_project
from annotation.errors import ConflictError
from annotation.labelling.alike import Alike
from annotation.labelling.known_answers import can_be_judged, is_right, with_known_answers
from annotation.labelling.tokens import new_token
from annotation.models import HeldOutItem, Item, Label, Membership, Project, Skip, User, WorkBatch, WorkItem

PRIORITY = 1
CHANCES = 2**32


def hand_out_gold(project: Project, membership: Membership, until: datetime) -> int | None:
    """Give this member, by chance, a gold item behind the ordinary one that they were just given: its work
    item, leased until then. None where none is due, or they have answered all.

    Call it in the transaction that holds their membership.
    """
    if not project.gold_share or membership.role != Membership.Role.ANNOTATOR:
        return None
    # After each ordinary item, so that of all that is given the share is `gold_share`.
    if secrets.randbelow(CHANCES) >= CHANCES * project.gold_share / (1 - project.gold_share):
        return None
    user = membership.user
    given = WorkItem.objects.filter(item=OuterRef("item"), batch__for_gold=True, assigned_to=user)
    unseen = list(
        with_known_answers(project, HeldOutItem.Purpose.GOLD)
        .filter(~Exists(given))
        .order_by("pk")
        .values_list("item_id", flat=True)
    )
    return _give(project, secrets.choice(unseen), user, until) if unseen else None


def _give(project: Project, item_id: int, user: User, until: datetime) -> int | None:
    # Whoever releases the item locks it, too, so that it is not given to anybody meanwhile.
    Item.objects.select_for_update(no_key=True).get(pk=item_id)
    if not project.held_out.filter(item=item_id, purpose=HeldOutItem.Purpose.GOLD).exists():
        return None
    batch = _batch(project)
    last = WorkItem.objects.filter(batch=batch, item=item_id).aggregate(last=Max("slot"))["last"] or 0
    # From slot 1 on: an item of several slots has no label of record before these are settled.
    work_item = WorkItem.objects.create(
        batch=batch, item_id=item_id, slot=last + 1, priority=PRIORITY, order=0, assigned_to=user
    )
    WorkItem.objects.filter(pk=work_item.pk).update(
        state=WorkItem.State.LEASED,
        leased_to=user,
        lease_token=new_token(work_item.pk, user.pk),
        lease_expires_at=until,
    )
    return work_item.pk


def _batch(project: Project) -> WorkBatch:
    """The project's one batch of gold items, in which each work item is for one person."""
    found = project.work_batches.filter(for_gold=True).first()
    if found is not None:
        return found
    locked_project(project.pk)
    made, _new = WorkBatch.objects.get_or_create(
        project=project,
        for_gold=True,
        defaults={"blind": False, "priority": PRIORITY, "overlap": 2, "rostered": True},
    )
    return made


# --- Who is paused ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GoldDone:
    """What somebody did with gold items, newest first: whether each first answer was right, and the same of
    what the bar looks at, skips among it.
    """

    answers: list[bool]
    latest: list[bool]


def gold_done(project: Project, memberships: Iterable[Membership]) -> dict[int, GoldDone]:
    """By user. First answers to items that are held out still: a correction comes after thinking twice. A
    skip that was not taken back counts for the bar as an answer that is not right: else whoever finds out
    which items are gold would skip them all.
    """
    since = {one.user_id: one.checked_since for one in memberships}
    answers: dict[int, list[tuple[datetime, bool]]] = {user: [] for user in since}
    skips: dict[int, list[tuple[datetime, bool]]] = {user: [] for user in since}
    given = Label.objects.filter(
        work_item__batch__project=project,
        work_item__batch__for_gold=True,
        version=1,
        item__held_out__in=with_known_answers(project, HeldOutItem.Purpose.GOLD),
        annotator__in=list(since),
    ).order_by("-pk")
    alike = Alike(project)
    for user, at, value, known in given.values_list(
        "annotator", "created_at", "value", "item__held_out__answer"
    ):
        if can_be_judged(project, value):
            answers[user].append((at, is_right(alike, value, known)))
    skipped = Skip.objects.filter(
        work_item__batch__project=project,
        work_item__batch__for_gold=True,
        cleared_at__isnull=True,
        user__in=list(since),
    )
    for user, at in skipped.values_list("user", "created_at"):
        skips[user].append((at, False))
    found = {}
    for user, last_let_go in since.items():
        newest = sorted([*answers[user], *skips[user]], reverse=True)
        counted = [right for at, right in newest if last_let_go is None or at > last_let_go]
        found[user] = GoldDone([right for _at, right in answers[user]], counted[: project.gold_last])
    return found


def pause_if_below_bar(project: Project, user: User) -> None:
    """Pause the person if they are below the bar with what they did just now, and tell those who lead the
    project.
    """
    membership = Membership.objects.select_for_update(no_key=True).filter(project=project, user=user).first()
    if membership is None or membership.paused_at is not None:
        return
    latest = gold_done(project, [membership])[user.pk].latest
    right = sum(latest)
    if len(latest) < project.gold_last or right >= project.gold_bar * len(latest):
        return
    membership.paused_at = timezone.now()
    membership.save(update_fields=["paused_at"])
    audit.record(
        project=project,
        actor=None,
        action="member.paused",
        target=f"user:{user.username}",
        data={"right": right, "of": len(latest)},
    )
    events.emit(project=project, event="annotator.paused", data={"user": user.pk})


def resume(*, project: Project, actor: User, user: User) -> Membership:
    """Let a paused person go on; their answers to gold items count anew from now on.

    Raises ConflictError where they are not paused.
    """
    paused = Membership.objects.filter(project=project, user=user, paused_at__isnull=False)
    with transaction.atomic():
        if not paused.update(paused_at=None, checked_since=timezone.now()):
            raise ConflictError(_("This person is not paused."), code="person_not_paused")
        audit.record(project=project, actor=actor, action="member.resumed", target=f"user:{user.username}")
    return Membership.objects.get(project=project, user=user)
