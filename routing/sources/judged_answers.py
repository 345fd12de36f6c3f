"""Answers that are there before a run asks, in columns or sent in: looked at on a bounded sample of items.

Of an item no more is read than the columns that a source names, of all of them together at most
`limits.PAGE_CHARACTERS`. What came of it is remembered for a while: a form asks at each change of a field.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db.models import Max, QuerySet, Value
from django.db.models.functions import Coalesce, Length

from annotation.common import limits
from annotation.common.value_reader import as_text, reader_of
from annotation.models import Item, Project
from routing.common.sql import DataCell
from routing.core.reasons import NO_ANSWER
from routing.core.scores import Score, make_score, score_key
from routing.models import SentAnswer, Source
from routing.sources.backend_for import backend_for, fingerprint_of
from routing.sources.backends import backends_that, predict_all
from routing.sources.backends.base import digest
from routing.sources.mends import reader_for
from routing.sources.score_fields import score_fields

LOOKED_AT = 1_000
AT_ONCE = 50
"""Answers that are in memory at a time, with all that they came with."""
REMEMBERED_SECONDS = 600

MOST_VALUE = 200
"""Characters of a value that are remembered; a longer one is known again by its digest."""


class JudgedAnswer(NamedTuple):
    """Why an answer cannot be used ("" where it can), its score, whether it is a label, of which item it is,
    and its value as text ("" where there is none).
    """

    reason: str
    score: float | None
    is_label: bool
    item: int
    value: str


def remembered_value(value: str | list[str] | None) -> str:
    """The text of a value, to be counted and compared."""
    text = "" if value is None else as_text(value)
    return text if len(text) <= MOST_VALUE else digest(value=text)


def judged_answers(
    project: Project, sources: Sequence[Source], *, score: str, params: Mapping[str, Any]
) -> dict[int, list[JudgedAnswer]]:
    """By the source what its answers for the sampled items are, of all sources for the same items; `score` is
    that of the first of `sources`, its backend's own if none is named.
    """
    before = backends_that(lambda backend: bool(backend.known_from))
    known = [source for source in sources if source.backend in before]
    if not known:
        return {}
    key = _key(project, sources, known, score, params)
    if (found := cache.get(key)) is None:
        items = _sample(project, known)
        found = {
            source.pk: list(_judged(source, items, score, params, first=source == sources[0]))
            for source in known
        }
        cache.set(key, found, REMEMBERED_SECONDS)
    return found


def _key(
    project: Project,
    sources: Sequence[Source],
    known: Sequence[Source],
    score: str,
    params: Mapping[str, Any],
) -> str:
    """Of all that the answers, and how they are read, depend on."""
    reader = reader_of(project)
    sent = SentAnswer.objects.filter(revision__source__in=known).aggregate(last=Max("pk"))["last"]
    items = project.items.aggregate(last=Max("pk"))["last"]
    what = digest(
        items=[project.items.count(), items],
        sent=sent,
        sources=[_asked(source) for source in known],
        first=sources[0].pk,
        score=score_key(score, params) if score else "",
        labels=[reader.task_type, reader.keys],
        looked_at=LOOKED_AT,
    )
    return f"known-answers:{project.pk}:{what}"


def _asked(source: Source) -> list[Any]:
    return [source.pk, source.backend, fingerprint_of(source), sorted(backend_for(source).fields)]


def _judged(
    source: Source, items: Sequence[Item], score: str, params: Mapping[str, Any], *, first: bool
) -> Iterator[JudgedAnswer]:
    backend, reader = backend_for(source), reader_for(source)
    chosen = first and bool(score)
    scored: Score = make_score(score if chosen else backend.default_score, params if chosen else {})
    for start in range(0, len(items), AT_ONCE):
        part = items[start : start + AT_ONCE]
        for item, answer in zip(part, predict_all(backend, part), strict=True):
            value, reason = (None, answer.reason) if answer.value is None else reader(answer.value)
            judged = scored(score_fields(answer.raw, value, reason, answer.finish_reason, reader))
            if value is None:
                yield JudgedAnswer(reason or NO_ANSWER, None, False, item.pk, "")
                continue
            counts = first or answer.finish_reason == "length"
            u = None if judged.reason else judged.u
            yield JudgedAnswer(judged.reason if counts else "", u, True, item.pk, remembered_value(value))


def _sample(project: Project, sources: Sequence[Source]) -> list[Item]:
    """Up to `LOOKED_AT` items, evenly spread over the order of their import, with the columns that `sources`
    read.
    """
    columns = sorted(set().union(*(backend_for(source).hidden_columns() for source in sources)))
    ids = _spread_ids(project)
    if not columns:
        return [Item(pk=pk) for pk in ids]
    # How long they are is asked first: the cells of a thousand items may be more than fits into memory.
    lengths = (Coalesce(Length(DataCell("data", column)), 0) for column in columns)
    sizes = dict(_rows(ids, Item.objects.annotate(size=sum(lengths, Value(0))), ("size",)))
    kept = _within(sizes, limits.PAGE_CHARACTERS)
    names = {f"cell{number}": column for number, column in enumerate(columns)}
    cells = {name: DataCell("data", column) for name, column in names.items()}
    found = {
        pk: {column: cell for column, cell in zip(columns, row, strict=True) if cell is not None}
        for pk, *row in _rows(kept, Item.objects.annotate(**cells), tuple(names))
    }
    return [Item(pk=pk, data=found[pk]) for pk in kept if pk in found]


def _spread_ids(project: Project) -> list[int]:
    items = Item.objects.filter(project=project, erased_at__isnull=True).order_by("position")
    first = list(items.values_list("pk", "position")[: LOOKED_AT + 1])
    if len(first) <= LOOKED_AT:
        return [pk for pk, _position in first]
    last = items.values_list("position", flat=True).last() or 0
    start = first[0][1]
    places = [start + (last - start) * number // (LOOKED_AT - 1) for number in range(LOOKED_AT)]
    return [
        pk
        for part in range(0, LOOKED_AT, 500)
        for pk in items.filter(position__in=places[part : part + 500]).values_list("pk", flat=True)
    ]


def _rows(ids: Sequence[int], rows: QuerySet[Any], names: tuple[str, ...]) -> Iterator[Any]:
    for part in range(0, len(ids), 500):
        yield from rows.filter(pk__in=ids[part : part + 500]).values_list("pk", *names)


def _within(sizes: Mapping[int, int], most: int) -> list[int]:
    """As many of the items as have so many characters together, one at least: every second, or third, ..."""
    ids = sorted(sizes)
    step = 1
    while len(ids[::step]) > 1 and sum(sizes[pk] for pk in ids[::step]) > most:
        step += 1
    return ids[::step]
