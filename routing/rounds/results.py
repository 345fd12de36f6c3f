"""What a guideline round shows: how far people agree, and who said what where they differ."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from annotation.labelling.alike import Alike
from annotation.labelling.batches import BatchProgress
from annotation.labelling.queue import batch_progress
from annotation.models import Item, Label, User, WorkItem
from annotation.review import agreement
from annotation.review.agreement import Estimate
from annotation.task_types import TASK_TYPES
from routing.models import GuidelineRound, RoundNote

LISTED = 20
Said = dict[int, dict[int, Hashable]]


@dataclass(frozen=True)
class RoundFigures:
    """`equal` is the share of equal answers among all pairs about one item; `alpha` Krippendorff's, by
    distance where the answers are numbers. `compared` items have two answers or more, and on `disputed` of
    them people differ.
    """

    compared: int
    disputed: int
    equal: Estimate
    alpha: Estimate


@dataclass(frozen=True)
class PersonInRound:
    """How many items somebody answered, and on which share of the pairs with others they say the same."""

    user: User
    asked: int
    answered: int
    equal: float | None


@dataclass(frozen=True)
class ItemInRound:
    """`decided` is the newest note with a label."""

    item: Item
    answers: Sequence[Label]
    differs: bool
    notes: Sequence[RoundNote]
    decided: RoundNote | None


@dataclass(frozen=True)
class RoundResult:
    """Of a closed round."""

    figures: RoundFigures
    people: Sequence[PersonInRound]
    items: Sequence[ItemInRound]

    @property
    def disputed(self) -> list[ItemInRound]:
        return [one for one in self.items if one.differs]

    @property
    def agreed(self) -> list[ItemInRound]:
        return [one for one in self.items if not one.differs]


def progress_of(found: GuidelineRound) -> BatchProgress:
    return batch_progress(found.batch)


def people_in(found: GuidelineRound) -> list[tuple[User, int, int]]:
    """Everybody who is asked, with how many items they were and are done with: no answer is told by it."""
    work = WorkItem.objects.filter(batch=found.batch).values_list("assigned_to", "state")
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for person, state in work:
        if person is not None:
            counts[person][0] += 1
            counts[person][1] += state not in WorkItem.UNFINISHED and state != WorkItem.State.WITHDRAWN
    users = User.objects.filter(pk__in=counts).order_by("username")
    return [(user, counts[user.pk][0], counts[user.pk][1]) for user in users]


def figures_of(found: GuidelineRound) -> RoundFigures:
    by_item = _answers(found)
    return _figures(found, by_item, _said(found, by_item))


def result_of(found: GuidelineRound) -> RoundResult:
    """A few queries, whatever its size."""
    by_item = _answers(found)
    said = _said(found, by_item)
    notes: dict[int, list[RoundNote]] = defaultdict(list)
    for note in found.notes.select_related("author"):
        notes[note.item_id].append(note)
    items = [
        ItemInRound(
            item=row.item,
            answers=by_item.get(row.item_id, []),
            differs=len(set(said.get(row.item_id, {}).values())) > 1,
            notes=notes[row.item_id],
            decided=next((one for one in reversed(notes[row.item_id]) if one.value is not None), None),
        )
        for row in found.items.select_related("item__image").order_by("item__position")
    ]
    return RoundResult(_figures(found, by_item, said), _people(found, by_item, said), items)


def _answers(found: GuidelineRound) -> dict[int, list[Label]]:
    """By item."""
    rows = Label.objects.filter(work_item__batch=found.batch, superseded_by__isnull=True)
    by_item: dict[int, list[Label]] = {}
    for label in rows.select_related("annotator").order_by("annotator__username", "pk"):
        by_item.setdefault(label.item_id, []).append(label)
    return by_item


def _said(found: GuidelineRound, by_item: Mapping[int, list[Label]]) -> Said:
    """By item and label what counts of the answer."""
    alike, said = Alike(found.project), dict[int, dict[int, Hashable]]()
    for item, labels in by_item.items():
        counts = alike.comparable([label.value for label in labels])
        said[item] = {label.pk: one for label, one in zip(labels, counts, strict=True)}
    return said


def _figures(found: GuidelineRound, by_item: Mapping[int, list[Label]], said: Said) -> RoundFigures:
    several = {item: given for item, given in by_item.items() if len(given) > 1}
    rows = [(item, one.annotator_id, said[item][one.pk]) for item, given in several.items() for one in given]
    if not rows:
        nothing = Estimate(None)
        return RoundFigures(0, 0, nothing, nothing)
    answers, _units, _people = agreement.answers_of(rows)
    together = agreement.nominal(answers.counts)
    kind, alpha = TASK_TYPES[found.project.task_type], together.alpha
    if kind.measure == "interval":
        places = np.array([kind.position(str(name)) for name in answers.names], dtype=float)
        alpha = agreement.krippendorff_interval(answers.units, places[answers.values])
    disputed = sum(len(set(said[item].values())) > 1 for item in several)
    return RoundFigures(len(several), disputed, together.equal, alpha)


def _people(found: GuidelineRound, by_item: Mapping[int, list[Label]], said: Said) -> list[PersonInRound]:
    same: dict[int, list[bool]] = defaultdict(list)
    for item, labels in by_item.items():
        for one in labels:
            others = (other for other in labels if other.annotator_id != one.annotator_id)
            same[one.annotator_id] += [said[item][one.pk] == said[item][other.pk] for other in others]
    return [
        PersonInRound(user, asked, answered, sum(pairs) / len(pairs) if (pairs := same[user.pk]) else None)
        for user, asked, answered in people_in(found)
    ]
