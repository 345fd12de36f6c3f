"""How many answers of a source a run could use, and why not the others: said before money and people's time
are spent on them.

Of answers that are there already, in columns or sent in, up to `LOOKED_AT` items are looked at, spread over
all of the project: no more, however many there are. Of a model that is asked, what its newest run or try
gave. Which item an answer is for is never told, and none is quoted while a run is open, nor one that a run
gave before model output may be shown: so labels stay blind.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from django.db.models import Max, Min, QuerySet
from django.utils.translation import gettext as _

from annotation.common.value_reader import ValueReader, reader_of
from annotation.models import Project
from routing.common.states import OPEN
from routing.core.scores import score_key
from routing.models import ItemScore, Prediction, RunSource, Source, SourceTry
from routing.sources.backend_for import backend_for
from routing.sources.backends import backend_class
from routing.sources.known_answers import LOOKED_AT, JudgedAnswer, known_answers
from routing.sources.storable import REASON, reason_columns, stored_reason
from routing.sources.trials import any_hidden, reasons_of_try, way_of_asking
from routing.visibility import output_is_open

EXAMPLES = 5
SHOWN = 60
UNKNOWN, NEARLY_A_LABEL, OTHER = "unknown_label", "nearly_a_label", "other"
WORDS: dict[str, Callable[[], str]] = {
    UNKNOWN: lambda: _("no label of this project"),
    NEARLY_A_LABEL: lambda: _("a label of this project but for capitals"),
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
    return _("Write labels exactly as the project has them, capitals included.")


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


PARTS = 20
"""Of the answers of a run so many stretches are looked at."""
MOST = Fraction(1, 10)
"""The share of answers that may be unusable without being asked about."""
FEW_VALUES, ENOUGH, NEARLY_ALL = 10, 50, Fraction(9, 10)
"""A score of so few values, seen on so many answers, hardly orders them where one value has this share."""


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
    def too_many(self) -> bool:
        """Whether so many cannot be used that a run asks once more; a single one says nothing."""
        return self.unusable > 1 and self.unusable > MOST * self.looked_at

    @property
    def hardly_orders(self) -> bool:
        """Whether the score is about the same for all, so that no thresholds could tell answers apart."""
        if self.score_values is None or self.usable < ENOUGH:
            return False
        return self.score_values < FEW_VALUES and self.commonest >= NEARLY_ALL * self.usable

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
        return first.basis not in ("columns", "sent") or bool(first.usable) or not first.items

    @property
    def asking(self) -> tuple[Usability, ...]:
        """Those about which a start asks once more."""
        return tuple(source for source in self.sources if source.asks)


@dataclass
class _Seen:
    """Reasons and scores of the answers of one source; "" is the reason of a usable one. `of` says for how
    many they stand.
    """

    basis: str = ""
    of: int = 0
    reasons: list[str] = field(default_factory=list)
    scores: Counter[float] = field(default_factory=Counter)
    labels: int = 0

    def add_all(self, answers: Iterable[JudgedAnswer]) -> "_Seen":
        for reason, score, is_label in answers:
            self.reasons.append(reason)
            self.labels += is_label
            if not reason and score is not None:
                self.scores[score] += 1
        return self


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
    params = score_params or {}
    known = known_answers(project, sources, score=score, params=params)
    reader = reader_of(project)
    spelled, quotes = known_labels(reader), _quotes(project)
    found = []
    for source in sources:
        first = source is sources[0]
        if source.pk in known:
            known_from = backend_class(source.backend).known_from
            seen = _Seen(known_from, project.items.count()).add_all(known[source.pk])
        else:
            seen = _of_a_model(source, _key(source, score, params) if first else "")
        reasons = group_reasons(filter(None, seen.reasons), spelled, examples=seen.basis in quotes)
        found.append(
            Usability(
                source=source.name,
                position=source.position,
                basis=seen.basis,
                looked_at=len(seen.reasons),
                items=seen.of,
                labels=seen.labels,
                usable=seen.reasons.count(""),
                reasons=reasons,
                score_values=len(seen.scores) if first and seen.scores else None,
                commonest=max(seen.scores.values(), default=0),
            )
        )
    return SourcesUsability(tuple(found), _nobody(sources, known))


def usability_of(source: Source) -> Usability:
    """The same of one source, at the place that it has."""
    sources = list(source.project.sources.order_by("position"))
    first = sources[0] == source
    # Before another one, a score is not asked for.
    looked = usability_of_sources(source.project, [source] if first else [sources[0], source])
    return looked.sources[-1]


def _quotes(project: Project) -> frozenset[str]:
    """Of which bases answers may be quoted now, to those who may look: they may label, too."""
    if project.runs.filter(state__in=OPEN).exists():
        return frozenset()
    before = frozenset({"columns", "sent", "try"})
    return before | {"run"} if output_is_open(project) else before


def _nobody(sources: Sequence[Source], known: Mapping[int, Sequence[JudgedAnswer]]) -> Fraction:
    """The share of the sampled items for which no source has a usable answer, as far as that is known."""
    if not sources or any(source.pk not in known for source in sources):
        return Fraction(0)
    answers = list(zip(*(known[source.pk] for source in sources), strict=True))
    without = sum(all(reason for reason, _score, _label in of_item) for of_item in answers)
    return Fraction(without, len(answers)) if answers else Fraction(0)


def _key(source: Source, score: str, params: Mapping[str, Any]) -> str:
    """The name under which values of the score are stored that the first source is routed by."""
    return score_key(score, params) if score else backend_for(source).default_score


def _of_a_model(source: Source, key: str) -> _Seen:
    """What its newest run or try gave; with the score `key` of the first source, "" for another."""
    seen = _of_newest_run(source, key)
    return seen if seen.reasons else _of_newest_try(source, key)


def _of_newest_run(source: Source, key: str) -> _Seen:
    """Of answers, spread over those of the newest run of the source that may be counted. Where none of them
    has that score, the answers alone are counted.
    """
    newest = (
        RunSource.objects.filter(source=source)
        .exclude(run__state__in=OPEN)
        .select_related("run")
        .order_by("-run__number")
        .first()
    )
    if newest is None:
        return _Seen()
    reasons, count = _spread_reasons(newest)
    scores: dict[int, tuple[str, float]] = {}
    if key:
        found = ItemScore.objects.filter(prediction__in=list(reasons), name=key)
        scores = {
            pk: (stored_reason(*reason), u)
            for pk, u, *reason in found.values_list("prediction_id", "value", *REASON)
        }
    return _Seen("run", count).add_all(
        (reason or scores.get(pk, ("", 0.0))[0], scores[pk][1] if pk in scores else None, not reason)
        for pk, reason in reasons.items()
    )


def _spread_reasons(asked: RunSource) -> tuple[dict[int, str], int]:
    """By prediction why it is none, of at most `LOOKED_AT`, and how many there are."""
    rows = Prediction.objects.filter(source=asked.source_id, fingerprint=asked.fingerprint)
    found = _reasons(rows.order_by("item")[: LOOKED_AT + 1])
    if len(found) <= LOOKED_AT:
        return found, len(found)
    ends = rows.aggregate(first=Min("item"), last=Max("item"))
    spread: dict[int, str] = {}
    for part in range(PARTS):
        start = ends["first"] + (ends["last"] + 1 - ends["first"]) * part // PARTS
        stretch = rows.filter(item__gte=start).order_by("item")
        spread |= _reasons(stretch[: LOOKED_AT // PARTS])
    return spread, rows.count()


def _reasons(rows: QuerySet[Prediction]) -> dict[int, str]:
    return {pk: stored_reason(*reason) for pk, *reason in rows.values_list("pk", *REASON)}


def _of_newest_try(source: Source, key: str) -> _Seen:
    """Of the few items that it was tried on, if it would be asked in the same way now."""
    tried = SourceTry.objects.filter(source=source).order_by("-job_id").first()
    if tried is None or any_hidden([row["item"] for row in tried.rows]):
        return _Seen()
    if any(row.get("asked_as") not in (None, way_of_asking(source)) for row in tried.rows):
        return _Seen()
    return _Seen("try", len(tried.rows)).add_all(
        (reason or of_score, row.get("score"), not reason)
        if key and row.get("score_name") == key
        else (reason, None, not reason)
        for row, (reason, of_score) in zip(tried.rows, reasons_of_try(tried), strict=True)
    )
