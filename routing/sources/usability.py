"""How many answers of a source a run could use, and why not the others: said before money and people's time
are spent on them.

Of answers that are there already, in columns or sent in, up to `LOOKED_AT` items are looked at, spread over
all of the project: no more, however many there are. Of a model that is asked, what its newest run or try
gave. Which item an answer is for is never told, and none is quoted while a run is open, nor one that a run
gave before model output may be shown: so labels stay blind.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext as _

from annotation.common.value_reader import ValueReader, reader_of
from annotation.models import Project
from routing.models import Source
from routing.sources.seen_answers import KNOWN_BEFORE, SeenAnswers, quoted_bases, seen_answers
from routing.sources.storable import reason_columns

EXAMPLES = 5
SHOWN = 60
UNKNOWN, NEARLY_A_LABEL, OTHER = "unknown_label", "nearly_a_label", "other"
WORDS: dict[str, Callable[[], str]] = {
    UNKNOWN: lambda: _("no label of this project"),
    NEARLY_A_LABEL: lambda: _("a label of this project but for capitals or blanks"),
    "no_answer": lambda: _("no answer"),
    "cut_off": lambda: _("cut off"),
    "score_missing": lambda: _("nothing that says how sure the model was"),
    "score_outside": lambda: _("a confidence or uncertainty that is not from 0 to 1"),
    "score_no_number": lambda: _("a confidence or uncertainty that is no number"),
    "not_a_number": lambda: _("no number"),
    OTHER: lambda: _("another reason"),
}


def where_unusable_go(*, first: bool) -> str:
    """Who labels an item for which the first model, or a later one, has no usable answer."""
    if first:
        return _(
            "An item without a usable answer of the first model counts as most uncertain: the next model "
            "labels it only if that model's threshold reaches that far, else people do."
        )
    return _("Where a later model has no usable answer, the item goes to the one after it, or to people.")


def where_all_unusable_go() -> str:
    """The same of whichever model it is."""
    return f"{where_unusable_go(first=True)} {where_unusable_go(first=False)}"


@dataclass(frozen=True)
class Unusable:
    """So many answers for one kind of reason, with some of them."""

    code: str
    count: int
    examples: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return WORDS[self.code]()


def _about_labels() -> str:
    return _(
        "Say on the page of its answers which label another spelling means, or write labels exactly as the "
        "project has them, capitals included."
    )


def _about_scores() -> str:
    return _("Write how sure the model was as a number from 0 to 1 with a point, for example 0.87.")


ADVICE: dict[str, Callable[[], str]] = {
    UNKNOWN: _about_labels,
    NEARLY_A_LABEL: _about_labels,
    "score_missing": _about_scores,
    "score_outside": _about_scores,
    "score_no_number": _about_scores,
}


def advice(reasons: Iterable[Unusable], *, basis: str) -> str:
    """What to write instead in columns or in what is sent, and how to bring it in; "" where nothing helps."""
    ways = {
        "columns": _(
            "Correct the file, take its import back on the page of that import, and import it again, "
            "as long as nobody has worked on its items."
        ),
        "sent": _("Correct the file and send it again under a new revision."),
    }
    told = dict.fromkeys(ADVICE[reason.code]() for reason in reasons if reason.code in ADVICE)
    return " ".join([*told, ways[basis]]) if told and basis in ways else ""


def known_labels(reader: ValueReader) -> frozenset[str]:
    """The labels of a project without what tells spellings apart."""
    return frozenset(map(_folded, reader.keys))


def group_reasons(
    reasons: Iterable[str], labels: Collection[str], *, examples: bool = True
) -> tuple[Unusable, ...]:
    """The kinds among `reasons`, the commonest first, each with up to `EXAMPLES` different examples."""
    counts: Counter[str] = Counter()
    seen: dict[str, dict[str, None]] = {}
    for reason in reasons:
        code, example = kind_of_reason(reason, labels)
        counts[code] += 1
        if example and examples and len(shown := seen.setdefault(code, {})) < EXAMPLES:
            shown[example] = None
    return tuple(Unusable(code, count, tuple(seen.get(code, ()))) for code, count in counts.most_common())


def kind_of_reason(reason: str, labels: Collection[str]) -> tuple[str, str]:
    """The kind of a reason, and the answer or score that it quotes, "" where it quotes none. Of one without a
    code that is known here the words are all there is.
    """
    columns = reason_columns(reason)
    code, example = columns["reason_code"], columns["reason_quotes"]
    if code not in WORDS:
        return OTHER, reason[:SHOWN]
    nearly = code == UNKNOWN and _folded(example) in labels
    return NEARLY_A_LABEL if nearly else code, example[:SHOWN]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


MOST = Fraction(1, 10)
"""The share of answers that may be unusable without being asked about."""
FEW_VALUES, ENOUGH = 10, 50
"""A score of fewer values, seen on so many answers, hardly orders them."""


@dataclass(frozen=True)
class Usability:
    """What was seen of one source's answers.

    Attributes
    ----------
    basis
        Where the answers are from: "columns", "sent", "run", "try"; "" where nothing is known.
    looked_at, labels, usable
        Answers; those that are labels; those that a run could use, which of the first source have a usable
        score as well.
    items
        Whose answers these stand for.
    score_values, commonest
        How many values the score of the usable ones takes, and how many have the commonest. None, 0: not the
        first source.
    """

    source: str
    source_id: int
    position: int
    basis: str
    looked_at: int = 0
    items: int = 0
    labels: int = 0
    usable: int = 0
    reasons: tuple[Unusable, ...] = ()
    score_values: int | None = None
    commonest: int = 0

    @property
    def unusable(self) -> int:
        return self.looked_at - self.usable

    @property
    def unusable_share(self) -> float:
        return self.unusable / self.looked_at if self.looked_at else 0.0

    @property
    def too_many(self) -> bool:
        """Whether so many cannot be used that a run asks once more; a single one says nothing."""
        return self.unusable > 1 and self.unusable > MOST * self.looked_at

    @property
    def hardly_orders(self) -> bool:
        """Whether the score takes so few values that hardly any threshold could tell answers apart."""
        return self.score_values is not None and self.usable >= ENOUGH and self.score_values < FEW_VALUES

    @property
    def asks(self) -> bool:
        return self.too_many or self.hardly_orders

    @property
    def sampled(self) -> bool:
        return self.looked_at < self.items


@dataclass(frozen=True)
class SourcesUsability:
    """At all sources of a project. `nobody` is the share of items for which no source has a usable answer, as
    far as that is known before a model is asked.
    """

    sources: tuple[Usability, ...]
    nobody: Fraction = Fraction(0)

    @property
    def scored(self) -> bool:
        """Whether any answer of the first source has a usable score, as far as that is known before a run:
        without one, none of its answers can be kept.
        """
        first = self.sources[0]
        return first.basis not in KNOWN_BEFORE or bool(first.usable) or not first.items

    @property
    def asking(self) -> tuple[Usability, ...]:
        """Those about which a start asks once more."""
        return tuple(source for source in self.sources if source.asks)


def usability_of_sources(
    project: Project,
    sources: Sequence[Source],
    *,
    score: str = "",
    score_params: Mapping[str, Any] | None = None,
) -> SourcesUsability:
    """At `sources`, the project's in their order; `score` is that of the first one, its backend's own if
    none is named.
    """
    reader = reader_of(project)
    spelled, quotes = known_labels(reader), quoted_bases(project)
    seen = seen_answers(project, sources, score=score, score_params=score_params)
    found = tuple(
        usability_from(source, one, spelled, first=source is sources[0], examples=one.basis in quotes)
        for source, one in zip(sources, seen, strict=True)
    )
    return SourcesUsability(found, _nobody(seen))


def usability_from(
    source: Source, seen: SeenAnswers, labels: Collection[str], *, first: bool, examples: bool
) -> Usability:
    reasons = [answer.reason for answer in seen.answers]
    scores = Counter(
        answer.score for answer in seen.answers if not answer.reason and answer.score is not None
    )
    return Usability(
        source=source.name,
        source_id=source.pk,
        position=source.position,
        basis=seen.basis,
        looked_at=len(reasons),
        items=seen.of,
        labels=sum(answer.is_label for answer in seen.answers),
        usable=reasons.count(""),
        reasons=group_reasons(filter(None, reasons), labels, examples=examples),
        score_values=len(scores) if first and scores else None,
        commonest=max(scores.values(), default=0),
    )


def usability_of(source: Source) -> Usability:
    """The same of one source, at the place that it has. Raises Source.DoesNotExist where it was removed."""
    sources = list(source.project.sources.order_by("position"))
    if source not in sources:
        raise Source.DoesNotExist
    first = sources[0] == source
    # Before another one, a score is not asked for.
    looked = usability_of_sources(source.project, [source] if first else [sources[0], source])
    return looked.sources[-1]


def _nobody(seen: Sequence[SeenAnswers]) -> Fraction:
    """The share of the sampled items for which no source has a usable answer, as far as that is known."""
    if not seen or any(one.basis not in KNOWN_BEFORE for one in seen):
        return Fraction(0)
    answers = list(zip(*(one.answers for one in seen), strict=True))
    without = sum(all(answer.reason for answer in of_item) for of_item in answers)
    return Fraction(without, len(answers)) if answers else Fraction(0)
