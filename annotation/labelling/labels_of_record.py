"""Reading labels of record: one person's answer, or what the answers of several were settled to.

A batch asks most items of one person; of those that it asks several about, it holds one work item per person
(slots 0, 1, ...), and the newest version of a Settlement says what counts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.common.ranges import of_items
from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.labelling.label_queries import with_split_choice, without_split_choice
from annotation.models import Item, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.models.projects import LONG_COLUMNS
from annotation.ports import routing_port

State = WorkItem.State
NOTHING: Mapping[int, int] = MappingProxyType({})
_Key = tuple[int, int]
"""Of a batch and an item."""
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

    Without those of locked and withdrawn batches, those of earlier batches whose items are asked about anew,
    and blind batches where something stands against this person (`RoutingPort.blind_objection`).
    """
    batches = WorkBatch.objects.filter(
        project=project,
        overlap__gt=1,
        for_round=False,
        for_gold=False,
        locked_at__isnull=True,
        withdrawn_at__isnull=True,
    )
    if batches.filter(blind=True).exists() and routing_port().blind_objection(project=project, user=user):
        batches = batches.filter(blind=False)
    hidden = routing_port().hidden_batches(project=project)
    asked_again = routing_port().hidden_items(project=project, item_path="item") & ~Q(batch__in=hidden)
    return (
        unsettled(WorkItem.objects.filter(batch__in=batches, item__erased_at__isnull=True))
        .exclude(asked_again)
        .select_related("item__image", "batch__project")
        .defer(*(f"batch__project__{name}" for name in LONG_COLUMNS))
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


def newest_settlement(batch: WorkBatch, item_id: int) -> Settlement | None:
    """The newest version of an item's settlement; its value is None where it is open again."""
    return Settlement.objects.filter(batch=batch, item=item_id, superseded_by__isnull=True).first()


def batches_with_overlap(project: Project) -> list[int]:
    """Ids of the batches that ask several people about some of their items."""
    return list(project.work_batches.filter(overlap__gt=1).values_list("pk", flat=True))


def has_record(
    project: Project,
    *,
    item: str,
    hidden: Collection[int] | None = None,
    only: Collection[int] | None = None,
    split: bool = True,
) -> Q:
    """Whether an item has a label of record, for rows that name it by `item` ("pk", "item", "item_id").

    Labels of the batches in `hidden` do not count, nor do, where `only` is given, those of other batches, nor
    without `split` those in whose place people have to choose anew.
    """
    labels = Label.objects.filter(item=OuterRef(item))
    settled = Settlement.objects.filter(item=OuterRef(item), superseded_by__isnull=True, value__isnull=False)
    if hidden is not None:
        labels = labels.exclude(work_item__batch__in=hidden)
        settled = settled.exclude(batch__in=hidden)
    if only is not None:
        labels = labels.filter(work_item__batch__in=only)
        settled = settled.filter(batch__in=only)
    if not split:
        labels = without_split_choice(labels.filter(superseded_by__isnull=True), project)
        settled = without_split_choice(settled, project)
    several = batches_with_overlap(project)
    if not several:
        return Q(Exists(labels))
    others = WorkItem.objects.filter(
        batch=OuterRef("work_item__batch"), item=OuterRef("item"), slot__gte=1, batch__in=several
    )
    return Q(Exists(labels.filter(~Exists(others)))) | Q(Exists(settled))


def has_split_record(project: Project, *, item: str, hidden: Collection[int] = ()) -> Q:
    """Whether an item has no other label of record than one that was split: people have to choose anew.
    `item` and `hidden` as for `has_record`.
    """
    if not replaced_labels(project).split:
        return Q(pk__in=[])
    labels = Label.objects.filter(item=OuterRef(item), superseded_by__isnull=True)
    settled = Settlement.objects.filter(item=OuterRef(item), superseded_by__isnull=True, value__isnull=False)
    split = Q(Exists(with_split_choice(labels.exclude(work_item__batch__in=hidden), project)))
    split |= Q(Exists(with_split_choice(settled.exclude(batch__in=hidden), project)))
    return split & ~has_record(project, item=item, hidden=hidden, split=False)


def record_values(
    project: Project,
    item_ids: Sequence[int],
    *,
    hidden: Collection[int] = (),
    before_others: Mapping[int, int] = NOTHING,
) -> dict[int, Record]:
    """Item id -> its label of record; items without one are left out. A few queries, whatever their number;
    give it pages of some hundred ids.

    Where several batches asked about an item, those in `before_others` go first, the highest before the
    others, then the newest. Labels of the batches in `hidden` do not count. A merged label is the one that it
    went into.
    """
    labels = (
        _newest(of_items("item", item_ids), hidden)
        .select_related("annotator", "work_item")
        .order_by("work_item__slot", "pk")
    )
    answers: dict[tuple[int, int], list[Label]] = defaultdict(list)
    for label in labels:
        answers[label.work_item.batch_id, label.item_id].append(label)
    last = {key: max(label.pk for label in given) for key, given in answers.items()}
    several, standing = _settled(project, item_ids)
    settled = {(row.batch_id, row.item_id): row for row in standing}
    replaced = replaced_labels(project)
    found: dict[int, Record] = {}
    for key in _of_record(item_ids, last, before_others, several, settled):
        batch_id, item_id = key
        given, settlement = tuple(answers[key]), settled.get(key)
        value = settlement.value if settlement else None
        now = replaced.now(given[0].value if value is None else value)
        found[item_id] = Record(now, batch_id, given, settlement)
    return found


class RecordRow(NamedTuple):
    """A `Record` of plain values: `annotators` are usernames, `method` how their answers were settled; None
    where there was one answer and nothing to settle.
    """

    value: Value
    batch_id: int
    annotators: str
    method: str | None


def record_rows(
    project: Project,
    item_ids: Sequence[int],
    *,
    hidden: Collection[int] = (),
    before_others: Mapping[int, int] = NOTHING,
) -> dict[int, RecordRow]:
    """As `record_values`, for pages of thousands of items: no object is made for a label. Each is what was
    stored: certificates speak of that.
    """
    labels = (
        _newest(of_items("item", item_ids), hidden)
        .order_by("work_item__slot", "pk")
        .values_list("pk", "work_item__batch_id", "item_id", "value", f"annotator__{User.USERNAME_FIELD}")
    )
    last: dict[tuple[int, int], int] = {}
    answers: dict[tuple[int, int], tuple[Value, str]] = {}
    more: set[tuple[int, int]] = set()
    for pk, batch_id, item_id, value, name in labels:
        key = (batch_id, item_id)
        if key in answers:
            first, names = answers[key]
            answers[key] = (first, f"{names}, {name}")
            more.add(key)
            last[key] = max(last[key], pk)
        else:
            answers[key], last[key] = (value, name), pk
    several, standing = _settled(project, item_ids)
    rows = standing.values_list("batch_id", "item_id", "value", "method")
    settled = {(batch_id, item_id): (value, method) for batch_id, item_id, value, method in rows}
    found: dict[int, RecordRow] = {}
    for key in _of_record(item_ids, last, before_others, several, settled):
        first, names = answers[key]
        value, method = settled.get(key, (None, None))
        if method == Settlement.Method.MAJORITY and key not in more:
            method = None  # of one person who answered: the others were asked no more
        found[key[1]] = RecordRow(first if value is None else value, key[0], names, method)
    return found


def _newest(of: Q, hidden: Collection[int]) -> QuerySet[Label]:
    """The newest versions of the labels of some items, without those of batches of which nothing is shown."""
    return Label.objects.filter(of, superseded_by__isnull=True).exclude(work_item__batch__in=hidden)


def _of_record(
    item_ids: Sequence[int],
    last: Mapping[_Key, int],
    before_others: Mapping[int, int],
    several: Collection[_Key],
    settled: Collection[_Key],
) -> Iterable[_Key]:
    """Of these (batch, item), each with the newest of its labels, those that give their item its label of
    record. `several` were put to several people, and `settled` have a settlement that stands.
    """
    wanted = set(item_ids)
    by_item: dict[int, _Key] = {}
    for key in sorted(last, key=lambda key: (before_others.get(key[0], 0), last[key])):
        if key[1] in wanted and (key in settled or key not in several):
            by_item[key[1]] = key
    return by_item.values()


def _settled(project: Project, item_ids: Sequence[int]) -> tuple[set[_Key], QuerySet[Settlement]]:
    """Which (batch, item) were put to several people, and the settlements that stand."""
    batches = batches_with_overlap(project)
    if not batches:
        return set(), Settlement.objects.none()
    several = WorkItem.objects.filter(of_items("item", item_ids), batch__in=batches, slot=1)
    standing = Settlement.objects.filter(
        of_items("item", item_ids), batch__in=batches, superseded_by__isnull=True, value__isnull=False
    )
    return set(several.values_list("batch_id", "item_id")), standing
