"""Guideline rounds: begin one, close it, and say what its differences mean.

Before a run all annotators answer the same few items, blind to each other. Once it is closed everybody sees
who said what, differences are talked about and decided, the guidelines are revised, and another round shows
whether people agree more. What they answer is no label of record, and its items are in no draw.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit, limits
from annotation.common.locks import locked_against_jobs
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling import queue
from annotation.labelling.validation import check_comment, validate_value
from annotation.models import Item, Membership, Project, User
from annotation.permissions import Access, members_who_label
from routing.core import sampling
from routing.models import GuidelineRound, RoundItem, RoundNote
from routing.runs.busy import refuse_while_busy
from routing.runs.untouched_items import drawn_ids, named_ids, untouched_items

FEWEST, MOST = 2, 100
USUAL = 30
MOST_PEOPLE = 20
PRIORITY = 1
"""Before whatever else waits for these people."""


def annotators_of(project: Project) -> QuerySet[User]:
    """Who answers where nobody is named: all annotators."""
    members = members_who_label(project.pk).filter(role=Membership.Role.ANNOTATOR)
    return User.objects.filter(memberships__in=members).order_by("username")


def start_round(
    *,
    access: Access,
    size: int | None = None,
    names: Sequence[str] = (),
    people: Sequence[str] = (),
    entropy: int | None = None,
) -> GuidelineRound:
    """Have people answer `size` items drawn at random, or the items with these external ids.

    `people` are usernames of members who label; without one all annotators. Raises InputError whose `where`
    is "size", "names" or "people", and ConflictError where another round is open or a run is under way.
    """
    project = access.project
    seed = sampling.new_entropy() if entropy is None else entropy
    with transaction.atomic():
        locked_against_jobs(project.pk)
        refuse_while_busy(project)
        if project.rounds.filter(closed_at__isnull=True).exists():
            raise ConflictError(
                _("A round is open. Close it before you start another one."), code="other_round_open"
            )
        limits.refuse_more(
            project.rounds.all(),
            limits.RUNS,
            _("A project has at most %(most)s rounds. Go on in a copy of it."),
            code="too_many_rounds",
        )
        asked = _people(project, people)
        chosen = _named(project, names) if names else _drawn(project, USUAL if size is None else size, seed)
        ids = [user.pk for user in asked]
        batch = queue.create_batch(
            project=project,
            item_ids=chosen,
            blind=False,
            priority=PRIORITY,
            entropy=seed,
            overlap=len(ids),
            people=lambda items: [ids for _item in items],
        )
        batch.for_round = True
        batch.save(update_fields=["for_round"])
        made = GuidelineRound.objects.create(
            project=project,
            number=(project.rounds.aggregate(last=Max("number"))["last"] or 0) + 1,
            batch=batch,
            by_name=bool(names),
            guidelines=project.guidelines,
            created_by=access.user,
        )
        RoundItem.objects.bulk_create(RoundItem(round=made, item_id=pk) for pk in chosen)
        audit.record(
            project=project,
            actor=access.user,
            action="round.started",
            target=f"round:{made.number}",
            data={"items": len(chosen), "by_name": made.by_name, "people": [user.username for user in asked]},
        )
    return made


def close_round(*, access: Access, found: GuidelineRound) -> None:
    """Ask nobody any more, and let everybody see who said what. Closed twice, it has one effect."""
    with transaction.atomic():
        current = GuidelineRound.objects.select_for_update(no_key=True).get(pk=found.pk)
        if current.closed_at is not None:
            return
        queue.withdraw_batch(batch=current.batch)
        current.closed_at, current.closed_by = timezone.now(), access.user
        current.save(update_fields=["closed_at", "closed_by"])
        audit.record(
            project=access.project,
            actor=access.user,
            action="round.closed",
            target=f"round:{current.number}",
        )
    found.refresh_from_db()


def item_of(found: GuidelineRound, name: str) -> Item:
    """The item of a closed round with this external id. Of one that is not in it nobody is told here whether
    the project has it: a name's folder may tell its class, and whoever labels could try them.

    Raises as `add_note` does.
    """
    _refuse_open(found)
    row = found.items.select_related("item").filter(item__external_id=name).first()
    if row is None:
        raise InputError(_("This item is not in the round."), where="external_id")
    return row.item


def _refuse_open(found: GuidelineRound) -> None:
    if found.closed_at is None:
        raise ConflictError(
            _("The round is open: what others said is seen once it is closed."), code="round_open"
        )


def add_note(
    *, access: Access, found: GuidelineRound, item: Item, text: str = "", value: Any = None
) -> RoundNote:
    """Say something about an item of a closed round; with `value` decide what its label should have been.

    Whoever labels may say something, and reviewers and managers decide. Raises ConflictError while the round
    is open, InputError where nothing is said or the item is not of the round.
    """
    text = check_comment(text.strip())
    if value is not None and not access.allows("review"):
        raise NotAllowedError(_("Reviewers and managers decide. Write what you think instead."))
    _refuse_open(found)
    if not found.items.filter(item=item).exists():
        raise InputError(_("This item is not in the round."), where="item")
    if value is not None:
        value = validate_value(access.project, value, item=item.pk)
    elif not text:
        raise InputError(_("Write something, or choose a label."), where="text")
    with transaction.atomic():
        note = RoundNote.objects.create(round=found, item=item, author=access.user, text=text, value=value)
        if value is not None:
            audit.record(
                project=access.project,
                actor=access.user,
                action="round.decided",
                target=f"round:{found.number}",
                data={"item": item.external_id},
            )
    return note


def _people(project: Project, names: Sequence[str]) -> list[User]:
    if not names:
        found = list(annotators_of(project))
    else:
        members = {
            one.user.username: one.user for one in members_who_label(project.pk).select_related("user")
        }
        if unknown := [name for name in names if name not in members]:
            raise InputError(
                _("“%(name)s” does not label in this project.") % {"name": unknown[0][:150]}, where="people"
            )
        found = [members[name] for name in dict.fromkeys(names)]
    if not 2 <= len(found) <= MOST_PEOPLE:
        raise InputError(
            _("A round compares people: choose at least two, and at most %(most)s.") % {"most": MOST_PEOPLE},
            where="people",
        )
    return found


def _drawn(project: Project, size: int, entropy: int) -> list[int]:
    if not FEWEST <= size <= MOST:
        raise InputError(
            _("A round has %(fewest)s to %(most)s items.") % {"fewest": FEWEST, "most": MOST}, where="size"
        )
    ids = list(untouched_items(project).values_list("pk", flat=True))
    if len(ids) < size:
        raise InputError(
            _("Only %(count)s items can be in a round: those without a label that no run covers or drew.")
            % {"count": f"{len(ids):,}"},
            where="size",
        )
    return drawn_ids(ids, size=size, entropy=entropy)


def _named(project: Project, names: Sequence[str]) -> list[int]:
    wanted = list(dict.fromkeys(names))
    if not FEWEST <= len(wanted) <= MOST:
        raise InputError(
            _("A round has %(fewest)s to %(most)s items.") % {"fewest": FEWEST, "most": MOST}, where="names"
        )
    return named_ids(project, wanted)
