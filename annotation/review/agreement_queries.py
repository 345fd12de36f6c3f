"""Reading how far people agree, on items that several people have labelled."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from django.db.models import Exists, OuterRef
from django.utils.crypto import salted_hmac
from scipy import sparse

from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.labelling.alike import Alike
from annotation.models import Choice, Project, Settlement, User, WorkItem
from annotation.ports import routing_port
from annotation.review import agreement as measures
from annotation.review.agreement import Answers, Estimate, Floats, Ints, Together
from annotation.review.compared_items import Unit, answers_to, compared_units
from annotation.task_types import TASK_TYPES

State = WorkItem.State

MAX_PEOPLE = 12
"""Whose answers are compared one by one: those with the most of them."""
MAX_CONFUSION = 12
"""Labels, up to which all are set against all."""
MOST_CONFUSED = 20


@dataclass(frozen=True)
class AnnotatorAgreement:
    """One person's labels beside the others', on items that several people have labelled.

    `answers` counts them. `share_equal_to_record` is in [0, 1], over the `settled` ones, whose item is;
    `kappa` is Cohen's with everybody else's answers, each pair of answers once. Both are None where nothing
    can be compared. All are those of a random sample of these items where it is `sampled`.
    """

    answers: int
    settled: int
    share_equal_to_record: float | None
    kappa: float | None
    sampled: bool


@dataclass(frozen=True)
class PersonAgreement:
    user: User
    agreement: AnnotatorAgreement


@dataclass(frozen=True)
class PairAgreement:
    """Two people on the `shared` items that both have labelled; `equal` in [0, 1]."""

    first: User
    second: User
    shared: int
    equal: float
    kappa: float | None


@dataclass(frozen=True)
class ChoiceAgreement:
    """`given` counts answers; `again` is the share of others who gave it too, where somebody gave it; `kappa`
    is Fleiss' of giving it or not.
    """

    choice: Choice
    given: int
    again: float | None
    kappa: float | None


@dataclass(frozen=True)
class Confused:
    """In `pairs` of answers about one item one says `first` and the other `second`: a `share` of all pairs in
    which somebody says `first`.
    """

    first: Choice
    second: Choice
    pairs: int
    share: float


@dataclass(frozen=True)
class Agreement:
    """`items` have two answers or more; the figures are those of `used` of them with `answers` in all.

    `together` compares what people chose or wrote, `interval` how far numbers lie apart (None for what is no
    number). `left_out` says whether items of a run that is not analysed may not be shown.
    """

    items: int
    used: int
    answers: int
    people: list[PersonAgreement]
    together: Together
    interval: Estimate | None
    pairs: list[PairAgreement]
    people_left_out: int
    choices: list[ChoiceAgreement]
    confused: list[Confused]
    confusion: list[tuple[Choice, list[float | None]]]
    left_out: bool


@dataclass(frozen=True)
class _Several:
    """Answers to items that several people have labelled, or a sample of these; `units` and `people` by their
    indices there.
    """

    items: int
    sampled: bool
    answers: Answers
    units: list[Unit]
    people: list[int]
    settled: Mapping[tuple[Unit, Hashable], bool]


@dataclass(frozen=True)
class _Compared:
    """Of answers what counts of each, and by item and that whether it is what the item was settled to; what
    is not settled is not there.
    """

    rows: list[tuple[Unit, int, Hashable]]
    settled: Mapping[tuple[Unit, Hashable], bool]


def agreement(project: Project) -> Agreement:
    """All figures of the page on agreement: a few queries, about so many items as `compared_units` has."""
    hidden = routing_port().hidden_batches(project=project)
    several = _several(project, hidden)
    answers = several.answers
    counts = answers.counts
    first, second = measures.pairs_of(answers)
    users = User.objects.in_bulk(several.people)
    by_person = _by_person(several, first, second)
    choices = list(project.choices.all())
    interval = None
    kind = TASK_TYPES[project.task_type]
    if kind.measure == "interval":
        places = np.array([kind.position(str(name)) for name in answers.names], dtype=float)
        interval = measures.krippendorff_interval(answers.units, places[answers.values])
    by_choice: list[ChoiceAgreement] = []
    confused: list[Confused] = []
    matrix: list[tuple[Choice, list[float | None]]] = []
    if kind.has_choices:
        by_choice = [_of_choice(choice, answers.names, counts) for choice in choices]
    if kind.one_choice:
        confused, matrix = _confusion(choices, answers.names, counts)
    return Agreement(
        items=several.items,
        used=counts.shape[0],
        answers=len(answers.units),
        people=[PersonAgreement(users[pk], found) for pk, found in by_person.items()],
        together=measures.nominal(counts),
        interval=interval,
        pairs=_pairs(several, users, first, second),
        people_left_out=max(len(several.people) - MAX_PEOPLE, 0),
        choices=by_choice,
        confused=confused,
        confusion=matrix,
        left_out=bool(hidden),
    )


def agreement_by_annotator(project: Project) -> dict[int, AnnotatorAgreement]:
    """By the id of the person; people without an answer that can be compared are left out. What is hidden
    before its run is analysed does not count.
    """
    several = _several(project, routing_port().hidden_batches(project=project))
    return _by_person(several, *measures.pairs_of(several.answers))


# --- The answers --------------------------------------------------------------------------------------------


def _several(project: Project, hidden: set[int]) -> _Several:
    """Without what is hidden, and without items of which only one answer is there."""
    batches = list(
        project.work_batches.filter(overlap__gt=1, for_round=False, for_gold=False)
        .exclude(pk__in=hidden)
        .values_list("pk", flat=True)
    )
    answered = WorkItem.objects.filter(batch__in=batches, state=State.DONE)
    another = answered.filter(batch=OuterRef("batch"), item=OuterRef("item")).exclude(slot=1)
    compared = answered.filter(Exists(another), slot=1).exclude(
        routing_port().hidden_items(project=project, item_path="item")
    )
    several = list(compared.values_list("batch_id", "item_id"))
    units = compared_units(project, several, secret=_secret(project))
    labels = answers_to(units).order_by("pk")
    rows = labels.values_list("work_item__batch_id", "item_id", "annotator_id", "value")
    given = [
        ((batch, item), annotator, value) for batch, item, annotator, value in rows if (batch, item) in units
    ]
    found = _compared(project, given)
    answers, in_order, people = measures.answers_of(found.rows)
    return _Several(len(several), len(units) < len(several), answers, in_order, people, found.settled)


def _secret(project: Project) -> str:
    return salted_hmac("annotation.review.compared_items", str(project.pk), algorithm="sha256").hexdigest()


def _compared(project: Project, given: list[tuple[Unit, int, Value]]) -> _Compared:
    """What counts of each answer, in the same order."""
    kind, now = TASK_TYPES[project.task_type], replaced_labels(project).now
    records = _records(project, {unit for unit, _annotator, _value in given})
    if not kind.compared_by_loss:
        rows = [(unit, annotator, kind.comparable(now(value))) for unit, annotator, value in given]
        record_says = {unit: kind.comparable(record) for unit, record in records.items()}
        settled = {(unit, said): said == record_says[unit] for unit, _, said in rows if unit in records}
        return _Compared(rows, settled)
    by_unit: dict[Unit, list[Value]] = {}
    for unit, _annotator, value in given:
        by_unit.setdefault(unit, []).append(value)
    alike = _by_batch(project, by_unit)
    counts: dict[Unit, Iterator[Hashable]] = {}
    settled = {}
    for unit, values in by_unit.items():
        # One item after the other: its answers are read once for all that they are compared with.
        said = alike[unit[0]].comparable(values)
        counts[unit] = iter(said)
        if (record := records.get(unit)) is not None:
            settled |= {(unit, one): alike[unit[0]](str(one), record) for one in dict.fromkeys(said)}
    return _Compared([(unit, annotator, next(counts[unit])) for unit, annotator, _value in given], settled)


def _records(project: Project, units: Collection[Unit]) -> dict[Unit, Value]:
    """What items were settled to, as it is now."""
    standing = Settlement.objects.filter(
        item__in={item for _, item in units},
        batch__in={batch for batch, _ in units},
        superseded_by__isnull=True,
        value__isnull=False,
    ).values_list("batch_id", "item_id", "value")
    now = replaced_labels(project).now
    found = {(batch, item): now(value) for batch, item, value in standing.order_by("pk") if value is not None}
    return {unit: found[unit] for unit in units if unit in found}


def _by_batch(project: Project, units: Iterable[Unit]) -> dict[int, Alike]:
    return {batch: Alike(project, batch=batch) for batch in {batch for batch, _item in units}}


# --- Figures ------------------------------------------------------------------------------------------------


def _by_person(several: _Several, first: Ints, second: Ints) -> dict[int, AnnotatorAgreement]:
    answers = several.answers
    equal_to_record = _equal_to_record(several)
    found = {}
    for index, person in enumerate(several.people):
        mine = answers.raters == index
        settled = equal_to_record[mine & (equal_to_record >= 0)]
        # Each pair with this person's answer first.
        ours = np.concatenate([first[mine[first]], second[mine[second]]])
        theirs = np.concatenate([second[mine[first]], first[mine[second]]])
        found[person] = AnnotatorAgreement(
            answers=int(mine.sum()),
            settled=len(settled),
            share_equal_to_record=float(settled.mean()) if len(settled) else None,
            kappa=measures.cohen_kappa(answers.values[ours], answers.values[theirs]),
            sampled=several.sampled,
        )
    return found


def _equal_to_record(several: _Several) -> Ints:
    """Of each answer 1 if it is what the item was settled to, 0 if not, -1 where it is not settled."""
    answers = several.answers
    pairs = zip(answers.units, answers.values, strict=True)
    told = [several.settled.get((several.units[unit], answers.names[value])) for unit, value in pairs]
    return np.array([-1 if one is None else int(one) for one in told], dtype=np.int64)


def _pairs(several: _Several, users: dict[int, User], first: Ints, second: Ints) -> list[PairAgreement]:
    """Those who agree least first."""
    answers = several.answers
    given = np.bincount(answers.raters, minlength=len(several.people))
    among = set(np.argsort(-given, kind="stable")[:MAX_PEOPLE].tolist())
    code = answers.raters[first] * len(several.people) + answers.raters[second]
    found = []
    for pair in np.unique(code):
        one, other = divmod(int(pair), len(several.people))
        if one not in among or other not in among:
            continue
        ours, theirs = answers.values[first[code == pair]], answers.values[second[code == pair]]
        found.append(
            PairAgreement(
                first=users[several.people[one]],
                second=users[several.people[other]],
                shared=len(ours),
                equal=float((ours == theirs).mean()),
                kappa=measures.cohen_kappa(ours, theirs),
            )
        )
    return sorted(found, key=lambda pair: (pair.kappa is None, pair.kappa, pair.equal))


def _of_choice(choice: Choice, names: Iterable[object], counts: sparse.csr_array) -> ChoiceAgreement:
    """Of several choices `names` are tuples of keys."""
    says = [choice.key in name if isinstance(name, tuple) else choice.key == name for name in names]
    given: Floats = counts @ np.array(says, dtype=float)
    again, kappa = measures.given_or_not(given, np.asarray(counts.sum(axis=1)))
    return ChoiceAgreement(choice, int(given.sum()), again, kappa)


def _confusion(
    choices: list[Choice], names: list[Hashable], counts: sparse.csr_array
) -> tuple[list[Confused], list[tuple[Choice, list[float | None]]]]:
    """The labels that are most often given for one another, and for few labels all against all: of the pairs
    of answers in which one is the row's label, the share in which the other one is the column's.
    """
    given = [index for index, choice in enumerate(choices) if choice.key in names]
    both = np.zeros((len(choices), len(choices)))
    places = [names.index(choices[index].key) for index in given]
    both[np.ix_(given, given)] = measures.confusion(counts)[np.ix_(places, places)]
    totals = both.sum(axis=1, keepdims=True)
    shares = np.divide(both, totals, out=np.zeros_like(both), where=totals > 0)
    confused = [
        Confused(choices[row], choices[column], int(both[row, column]), float(shares[row, column]))
        for row, column in zip(*np.nonzero(both), strict=True)
        if row != column
    ]
    confused.sort(key=lambda entry: (-entry.pairs, -entry.share))
    if len(choices) > MAX_CONFUSION:
        return confused[:MOST_CONFUSED], []
    matrix: list[tuple[Choice, list[float | None]]] = [
        (choice, [float(share) if totals[row] else None for share in shares[row]])
        for row, choice in enumerate(choices)
    ]
    return confused[:MOST_CONFUSED], matrix
