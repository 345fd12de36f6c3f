"""Development items: drawn by chance, labelled by people, and kept out of every draw, so that prompts can be
compared on them as often as anybody likes. No promise of a run rests on what is seen here.
"""

from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.common.locks import locked_against_jobs
from annotation.common.replaced_labels import replaced_labels
from annotation.errors import ConflictError, InputError
from annotation.labelling.known_answers import with_known_answers
from annotation.models import HeldOutItem, Project
from annotation.permissions import Access
from routing.held_out.manage import hold_out
from routing.models import PoolItem, RoundItem
from routing.rounds.results import result_of
from routing.runs.busy import refuse_while_busy

PURPOSE = HeldOutItem.Purpose.PROMPTS
FEWEST, MOST = 20, 200
USUAL = 60
LATEST_ROUNDS = 20


def development_items(project: Project) -> QuerySet[HeldOutItem]:
    """All that can be read, in their order, labelled or not."""
    return project.held_out.filter(purpose=PURPOSE, item__erased_at__isnull=True).order_by("pk")


def labelled_items(project: Project) -> QuerySet[HeldOutItem]:
    """Those that candidates are compared on."""
    return with_known_answers(project, PURPOSE).order_by("pk")


def next_to_label(project: Project, *, after: int = 0) -> HeldOutItem | None:
    """The first without a label that can be given, or the first behind the one with the key `after`."""
    left = development_items(project).exclude(pk__in=labelled_items(project).values("pk"))
    return left.filter(pk__gt=after).select_related("item__image").first()


def draw_items(*, access: Access, size: int, entropy: int | None = None) -> list[HeldOutItem]:
    """Keep `size` further items, drawn at random from those that no run covers, out of every later draw.

    Raises InputError whose `where` is "size", and ConflictError while a run is under way.
    """
    project = access.project
    with transaction.atomic():
        locked_against_jobs(project.pk)
        if not FEWEST <= development_items(project).count() + size <= MOST or size < 1:
            raise InputError(
                _("There are %(fewest)s to %(most)s development items in all.")
                % {"fewest": FEWEST, "most": MOST},
                where="size",
            )
        return hold_out(access=access, purpose=PURPOSE, size=size, entropy=entropy)


def labelled_in_rounds(project: Project) -> list[tuple[int, Any]]:
    """Items of the latest closed guideline rounds that can be taken over, each with its label: the one that
    was decided, or that all gave. Their items were drawn by chance, and no pool has them.
    """
    now, found = replaced_labels(project).now, []
    closed = project.rounds.filter(closed_at__isnull=False, by_name=False)
    rounds = list(closed.order_by("-number")[:LATEST_ROUNDS])
    free = RoundItem.objects.filter(
        ~Exists(HeldOutItem.objects.filter(item=OuterRef("item"))),
        ~Exists(PoolItem.objects.filter(item=OuterRef("item"))),
        round__in=rounds,
        item__erased_at__isnull=True,
    )
    ids = set(free.values_list("item_id", flat=True))
    for one in rounds if ids else ():
        for answered in result_of(one).items:
            if answered.item.pk not in ids:
                continue
            if answered.decided is not None and answered.decided.value is not None:
                found.append((answered.item.pk, now(answered.decided.value)))
            elif len(answered.answers) > 1 and not answered.differs:
                found.append((answered.item.pk, now(answered.answers[0].value)))
    return found


def take_over_rounds(*, access: Access) -> int:
    """Make what people labelled in guideline rounds development items; returns how many these are.

    Raises ConflictError where there are none, or a run is under way.
    """
    project = access.project
    with transaction.atomic():
        locked_against_jobs(project.pk)
        refuse_while_busy(project)
        found = labelled_in_rounds(project)[: MOST - development_items(project).count()]
        if not found:
            raise ConflictError(
                _("No item of a closed guideline round has a label that could be taken over."),
                code="no_items_of_rounds",
            )
        HeldOutItem.objects.bulk_create(
            HeldOutItem(
                project=project,
                item_id=pk,
                purpose=PURPOSE,
                at_random=True,
                answer=label,
                created_by=access.user,
            )
            for pk, label in found
        )
        audit.record(
            project=project,
            actor=access.user,
            action="held_out.added",
            target=f"project:{project.slug}",
            data={"purpose": PURPOSE.value, "items": len(found), "of_rounds": True},
        )
    return len(found)
