"""All that is known of a source's answers before anybody trusts them: why some cannot be used, how sure it
is, which labels it gives, and how far it agrees with other sources.

All of it is counted over the answers that `seen_answers` looks at. No answer is quoted and nothing is counted
by label or confidence while a run is open, nor of what a run gave before model output may be shown; which
item an answer is for is told only to whoever may see model output: so labels stay blind.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from annotation.common import limits
from annotation.common.value_reader import ValueReason, reader_of
from annotation.labelling.label_queries import label_in_words
from annotation.models import Item, Project
from annotation.permissions import Access
from annotation.task_types import TASK_TYPES
from routing.common.states import OPEN
from routing.core.losses import LossNotComputedError
from routing.models import Prediction, RunSource, Source
from routing.sources.backends import backend_class
from routing.sources.judged_answers import JudgedAnswer, remembered_value
from routing.sources.measured import MeasuredAccuracy, measured_accuracy
from routing.sources.seen_answers import KNOWN_BEFORE, SeenAnswers, quoted_bases, seen_answers
from routing.sources.usability import (
    EXAMPLES,
    UNKNOWN,
    Unusable,
    Usability,
    kind_of_reason,
    known_labels,
    usability_from,
)
from routing.visibility import may_see_model_output

BINS = 20
MOST_CLASSES = 30
ENOUGH_TO_COUNT = 20
"""Answers of which something is counted before it may be told what they are."""
MOST_SPELLINGS = 20
AT_ONCE = 500


@dataclass(frozen=True)
class Example:
    """An answer as it was given; `item` is its item, None where that is not told."""

    answer: str
    item: Item | None


@dataclass(frozen=True)
class Reason:
    """So many answers that cannot be used for one kind of reason, with some of them."""

    kind: Unusable
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Agreement:
    """Of the items that both sources have a usable answer for, on how many it is the same."""

    source: str
    both: int
    same: int

    @property
    def share(self) -> float | None:
        return self.same / self.both if self.both else None


@dataclass(frozen=True)
class Bin:
    """So many answers with a confidence from `low` to `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Health:
    """What was seen of one source's answers.

    Attributes
    ----------
    usable : Usability
    reasons
        The commonest first.
    names_items
        Whether the examples say which items they are of.
    shown
        Whether the rest is told now; else it is empty.
    bins
        Confidence is 1 - U of its score; of `scored` answers.
    classes
        Label and how many answers give it, the commonest first and those that none gives last; empty where
        labels are no choices. `other_classes` answers give labels beyond those.
    agreements
        With each other source of which answers are known for the same items.
    spellings
        Answers that are no labels as they are spelled, with how often they come, the commonest first.
    measured
        How often it was right in runs that are analysed.
    computing
        Whether the losses that this is counted by are still being computed; `measured` is None until then.
    """

    source: Source
    usable: Usability
    reasons: tuple[Reason, ...]
    names_items: bool
    shown: bool
    bins: tuple[Bin, ...] = ()
    classes: tuple[tuple[str, int], ...] = ()
    other_classes: int = 0
    agreements: tuple[Agreement, ...] = ()
    spellings: tuple[tuple[str, int], ...] = ()
    measured: MeasuredAccuracy | None = None
    computing: bool = False

    @property
    def missing(self) -> int:
        """Items without an answer, of those looked at."""
        return sum(one.kind.count for one in self.reasons if one.kind.code == "no_answer")

    @cached_property
    def scored(self) -> int:
        return sum(one.count for one in self.bins)


def health_of(source: Source, access: Access) -> Health:
    """At the place among its project's sources that it has. Raises HypacError where it cannot be opened."""
    project, sources = source.project, _beside(source)
    place = [one.pk for one in sources].index(source.pk)
    seen = seen_answers(project, sources)
    labels, quoted = known_labels(reader_of(project)), quoted_bases(project)
    mine, shown = seen[place], seen[place].basis in quoted
    usable = usability_from(source, mine, labels, first=place == 0, examples=shown)
    names_items = may_see_model_output(project, access)
    health = Health(
        source=source,
        usable=usable,
        reasons=_reasons(usable, mine.answers, labels, names_items=names_items) if shown else _bare(usable),
        names_items=names_items,
        # What is counted of a handful of answers tells what some of them are.
        shown=shown and mine.basis != "try" and (names_items or len(mine.answers) >= ENOUGH_TO_COUNT),
        spellings=_spellings(mine.answers) if shown else (),
    )
    try:
        health = replace(health, measured=measured_accuracy(source, access))
    except LossNotComputedError:
        health = replace(health, computing=True)
    if not health.shown:
        return health
    classes = _classes(project, mine.answers)
    return replace(
        health,
        bins=_bins(mine.answers),
        classes=tuple(classes[:MOST_CLASSES]),
        other_classes=sum(count for _name, count in classes[MOST_CLASSES:]),
        agreements=tuple(_agreements(place, sources, seen, asked="run" in quoted)),
    )


def _beside(source: Source) -> list[Source]:
    """The first source, those whose answers are there already, and this one, in their order."""
    every = list(source.project.sources.order_by("position"))
    return [
        one
        for place, one in enumerate(every)
        if place == 0 or one.pk == source.pk or backend_class(one.backend).known_from
    ]


def _bare(usable: Usability) -> tuple[Reason, ...]:
    return tuple(Reason(kind, ()) for kind in usable.reasons)


def _reasons(
    usable: Usability, answers: Sequence[JudgedAnswer], labels: Collection[str], *, names_items: bool
) -> tuple[Reason, ...]:
    chosen: dict[str, dict[tuple[str, int | None], int]] = {kind.code: {} for kind in usable.reasons}
    for answer in answers:
        if not answer.reason:
            continue
        code, quoted = kind_of_reason(answer.reason, labels)
        # Where items are told, one without an answer is an example, too.
        if (quoted or names_items) and len(chosen[code]) < EXAMPLES:
            chosen[code].setdefault((quoted, None if quoted else answer.item), answer.item)
    ids = [item for of_kind in chosen.values() for item in of_kind.values()] if names_items else []
    items = Item.objects.only("pk", "external_id").in_bulk(ids)
    return tuple(
        Reason(
            kind,
            tuple(Example(text, items.get(item)) for (text, _), item in chosen[kind.code].items()),
        )
        for kind in usable.reasons
    )


def _spellings(answers: Sequence[JudgedAnswer]) -> tuple[tuple[str, int], ...]:
    quoted = (
        answer.reason.quotes.strip()
        for answer in answers
        if isinstance(answer.reason, ValueReason) and answer.reason.code == UNKNOWN
    )
    return tuple(Counter(text for text in quoted if 0 < len(text) <= limits.NAME).most_common(MOST_SPELLINGS))


def _bins(answers: Sequence[JudgedAnswer]) -> tuple[Bin, ...]:
    sure = [1 - answer.score for answer in answers if answer.score is not None]
    if not sure:
        return ()
    counts = Counter(min(BINS - 1, int(value * BINS + 1e-9)) for value in sure)
    return tuple(Bin(place / BINS, (place + 1) / BINS, counts[place]) for place in range(BINS))


def _classes(project: Project, answers: Sequence[JudgedAnswer]) -> list[tuple[str, int]]:
    kind = TASK_TYPES[project.task_type]
    if not kind.has_choices:
        return []
    names = dict(project.choices.order_by("position").values_list("key", "name"))
    given = Counter(answer.value for answer in answers if answer.value)
    found = [(label_in_words(kind.from_text(text), names), count) for text, count in given.most_common()]
    if not kind.several:
        found += [(name, 0) for key, name in names.items() if key not in given]
    return found


def _agreements(
    place: int, sources: Sequence[Source], seen: Sequence[SeenAnswers], *, asked: bool
) -> Iterator[Agreement]:
    """`asked` says whether what models gave in runs may be told."""
    mine = {answer.item: answer.value for answer in seen[place].answers if not answer.reason}
    together = seen[place].basis in KNOWN_BEFORE
    known = {
        one.pk: {answer.item: answer.value for answer in answers.answers if not answer.reason}
        for one, answers in zip(sources, seen, strict=True)
        if together and answers.basis in KNOWN_BEFORE
    }
    for other in sources[place].project.sources.order_by("position"):
        if other.pk == sources[place].pk:
            continue
        theirs: Mapping[int, str] | None = known.get(other.pk)
        if theirs is None and asked:
            theirs = _given_in_its_newest_run(other, list(mine))
        if both := (theirs or {}).keys() & mine.keys():
            same = sum(theirs[item] == mine[item] for item in both) if theirs else 0
            yield Agreement(other.name, len(both), same)


def _given_in_its_newest_run(source: Source, items: Sequence[int]) -> Mapping[int, str]:
    newest = (
        RunSource.objects.filter(source=source).exclude(run__state__in=OPEN).order_by("-run__number").first()
    )
    if newest is None:
        return {}
    found: dict[int, str] = {}
    for start in range(0, len(items), AT_ONCE):
        rows = Prediction.objects.filter(
            item__in=items[start : start + AT_ONCE],
            source=source,
            fingerprint=newest.fingerprint,
            value__isnull=False,
        )
        found |= {item: remembered_value(value) for item, value in rows.values_list("item_id", "value")}
    return found
