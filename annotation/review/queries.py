"""Reading what waits for a reviewer: items that people label differently, and flags."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from annotation.labelling.labels_of_record import answers_of, disagreements, newest_settlement
from annotation.models import Comment, Label, Project, Settlement, User, WorkItem
from annotation.ports import routing_port


@dataclass(frozen=True)
class Dispute:
    """An item that people label differently (`work_item` is that of slot 0), with their answers in the order
    of the slots. `decided` is this reviewer's own decision, which they may change.
    """

    work_item: WorkItem
    answers: list[Label]
    decided: Settlement | None = None


def next_dispute(project: Project, user: User, *, after: int | None = None) -> Dispute | None:
    """What the reviewer decides next: the first in the order of the queue, or the first behind the work item
    `after`. Behind the last one those come again that were passed over.
    """
    waiting = disagreements(project, user)
    last = WorkItem.objects.filter(batch__project=project, pk=after).first() if after is not None else None
    behind = None
    if last is not None:
        later = Q(priority=last.priority, order=last.order, pk__gt=last.pk)
        later |= Q(priority=last.priority, order__gt=last.order) | Q(priority__gt=last.priority)
        behind = waiting.filter(later).first()
    work_item = behind or waiting.first()
    return None if work_item is None else _with_answers(work_item)


def dispute_of(project: Project, user: User, work_item: int) -> Dispute | None:
    """The dispute about one work item, while it waits, or after this reviewer has decided; else None."""
    found = disagreements(project, user).filter(pk=work_item).first()
    if found is not None:
        return _with_answers(found)
    own = WorkItem.objects.filter(batch__project=project, pk=work_item, slot=0)
    found = own.select_related("item__image", "batch__project").first()
    if found is None or (decided := _own_decision(found, user)) is None:
        return None
    return _with_answers(found, decided)


def with_answers(work: Sequence[WorkItem]) -> list[Dispute]:
    """The disputes about these work items of slot 0: one query for all their answers."""
    given: dict[tuple[int, int], list[Label]] = defaultdict(list)
    labels = Label.objects.filter(
        item__in=[row.item_id for row in work],
        work_item__batch__in={row.batch_id for row in work},
        superseded_by__isnull=True,
    ).select_related("annotator", "work_item")
    for label in labels.order_by("work_item__slot"):
        given[label.work_item.batch_id, label.item_id].append(label)
    return [Dispute(row, given[row.batch_id, row.item_id]) for row in work]


def was_decided(work_item: WorkItem) -> bool:
    """Whether a reviewer has settled it, whoever that was."""
    standing = newest_settlement(work_item.batch, work_item.item_id)
    return standing is not None and standing.method == Settlement.Method.ADJUDICATED


def open_flags(project: Project) -> QuerySet[Comment]:
    """Flags that nobody has resolved, oldest first. Not those that were set on items which may not be known
    yet: what is in the calibration set of a run that is not analysed, or is asked about anew.
    """
    flags = Comment.objects.filter(item__project=project, is_flag=True, resolved_at__isnull=True)
    # As a choice of what is shown: SQL's NOT IN would leave out flags without a work item, too.
    hidden = routing_port().hidden_batches(project=project)
    flags = flags.filter(Q(work_item__isnull=True) | ~Q(work_item__batch__in=hidden))
    flags = flags.exclude(routing_port().hidden_items(project=project, item_path="work_item__item"))
    return flags.select_related("item__image", "author").order_by("pk")


def asks_several(project: Project) -> bool:
    """Whether several people are, or were, asked about items of the project."""
    return project.overlap > 1 or project.work_batches.filter(overlap__gt=1).exists()


def _own_decision(work_item: WorkItem, user: User) -> Settlement | None:
    standing = newest_settlement(work_item.batch, work_item.item_id)
    if (
        standing is None
        or standing.method != Settlement.Method.ADJUDICATED
        or standing.decided_by_id != user.pk
    ):
        return None
    return standing


def _with_answers(work_item: WorkItem, decided: Settlement | None = None) -> Dispute:
    return Dispute(work_item, answers_of(work_item.batch, work_item.item), decided)
