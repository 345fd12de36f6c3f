"""Reading labels of record: one person's answer, or what the answers of several were settled to.

A batch asks most items of one person; of those that it asks several about, it holds one work item per person
(slots 0, 1, ...), and the newest version of a Settlement says what counts.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.hooks import blind_objection
from annotation.models import Item, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.values import Value

State = WorkItem.State
# Filters of WorkItem: those of the same item in the same batch.
_SAME = {"batch": OuterRef("batch"), "item": OuterRef("item")}


@dataclass(frozen=True)
class Record:
    """The label of record of one item in one batch.

    `labels` are the answers it rests on, in the order of the slots; `settlement` is None where one person was
    asked.
    """

    value: Value
    batch_id: int
    labels: tuple[Label, ...]
    settlement: Settlement | None = None


def disagreements(project: Project, user: User) -> QuerySet[WorkItem]:
    """What waits for a reviewer: one row (slot 0) per item whose people have all answered and whose label of
    record is not settled, in the order of the queue.

    Without those of locked and withdrawn batches, and without blind batches where something stands against
    this person (`hooks.blind_objection`).
    """
    batches = WorkBatch.objects.filter(
        project=project, overlap__gt=1, locked_at__isnull=True, withdrawn_at__isnull=True
    )
    if batches.filter(blind=True).exists() and blind_objection(project, user):
        batches = batches.filter(blind=False)
    return (
        unsettled(WorkItem.objects.filter(batch__in=batches))
        .select_related("item__image", "batch__project")
        .order_by("priority", "order", "pk")
    )


def unsettled(work: QuerySet[WorkItem]) -> QuerySet[WorkItem]:
    """Of these work items those of slot 0 whose item was put to several people, who have all answered without
    settling it.
    """
    same = WorkItem.objects.filter(**_SAME)
    standing = Settlement.objects.filter(**_SAME, superseded_by__isnull=True, value__isnull=False)
    return work.filter(
        Exists(same.filter(slot=1)),
        Exists(same.filter(state=State.DONE)),
        ~Exists(same.filter(state__in=(State.OPEN, State.LEASED, State.UNLABELABLE))),
        ~Exists(standing),
        slot=0,
    )


def answers_of(batch: WorkBatch, item: Item) -> list[Label]:
    """What people answered about an item in a batch: the newest versions, in the order of the slots."""
    labels = Label.objects.filter(work_item__batch=batch, item=item, superseded_by__isnull=True)
    return list(labels.select_related("annotator", "work_item").order_by("work_item__slot"))


def standing_of(batch: WorkBatch, item_id: int) -> Settlement | None:
    """The newest version of an item's settlement; its value is None where it is open again."""
    return Settlement.objects.filter(batch=batch, item=item_id, superseded_by__isnull=True).first()


def batches_with_overlap(project: Project) -> list[int]:
    """Ids of the batches that ask several people about some of their items."""
    return list(project.work_batches.filter(overlap__gt=1).values_list("pk", flat=True))


def has_record(project: Project, *, item: str, hidden: Collection[int] | None = None) -> Q:
    """Whether an item has a label of record, for rows that name it by `item` ("pk", "item", "item_id").

    Labels of the batches in `hidden` do not count.
    """
    labels = Label.objects.filter(item=OuterRef(item))
    settled = Settlement.objects.filter(item=OuterRef(item), superseded_by__isnull=True, value__isnull=False)
    if hidden is not None:
        labels = labels.exclude(work_item__batch__in=hidden)
        settled = settled.exclude(batch__in=hidden)
    several = batches_with_overlap(project)
    if not several:
        return Q(Exists(labels))
    others = WorkItem.objects.filter(
        batch=OuterRef("work_item__batch"), item=OuterRef("item"), slot__gte=1, batch__in=several
    )
    return Q(Exists(labels.filter(~Exists(others)))) | Q(Exists(settled))


def record_values(
    project: Project,
    item_ids: Sequence[int],
    *,
    hidden: Collection[int] = (),
    before_others: Collection[int] = (),
) -> dict[int, Record]:
    """Item id -> its label of record; items without one are left out. A few queries, whatever their number;
    give it pages of some hundred ids.

    Where several batches asked about an item, those in `before_others` go first, then the newest. Labels of
    the batches in `hidden` do not count.
    """
    labels = (
        Label.objects.filter(item__in=item_ids, superseded_by__isnull=True)
        .exclude(work_item__batch__in=hidden)
        .select_related("annotator", "work_item")
        .order_by("work_item__slot", "pk")
    )
    answers: dict[tuple[int, int], list[Label]] = defaultdict(list)
    for label in labels:
        answers[label.work_item.batch_id, label.item_id].append(label)
    several, settled = _settled(project, item_ids)
    found: dict[int, Record] = {}
    in_order = sorted(
        answers.items(), key=lambda entry: (entry[0][0] in before_others, max(a.pk for a in entry[1]))
    )
    for (batch_id, item_id), given in in_order:
        settlement = settled.get((batch_id, item_id))
        if settlement is not None and settlement.value is not None:
            found[item_id] = Record(settlement.value, batch_id, tuple(given), settlement)
        elif (batch_id, item_id) not in several:
            found[item_id] = Record(given[0].value, batch_id, tuple(given))
    return found


def _settled(
    project: Project, item_ids: Sequence[int]
) -> tuple[set[tuple[int, int]], dict[tuple[int, int], Settlement]]:
    """Which (batch, item) were put to several people, and the settlements that stand."""
    batches = batches_with_overlap(project)
    if not batches:
        return set(), {}
    several = WorkItem.objects.filter(item__in=item_ids, batch__in=batches, slot=1)
    standing = Settlement.objects.filter(
        item__in=item_ids, batch__in=batches, superseded_by__isnull=True, value__isnull=False
    )
    return (
        set(several.values_list("batch_id", "item_id")),
        {(row.batch_id, row.item_id): row for row in standing},
    )
