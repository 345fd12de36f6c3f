"""The answers of a source that are looked at before a run rests on it: so many at most, of however many.

Of answers that are there already, in columns or sent in, those for a sample of all items; of a model that is
asked, what its newest run or try gave.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from annotation.models import Project
from routing.common.states import OPEN
from routing.core.scores import score_key
from routing.models import ItemScore, Prediction, RunSource, Source, SourceTry
from routing.sources.backend_for import backend_for
from routing.sources.backends import backend_class
from routing.sources.judged_answers import LOOKED_AT, JudgedAnswer, judged_answers, remembered_value
from routing.sources.storable import REASON, stored_reason
from routing.sources.trials import any_hidden, reasons_of_try, way_of_asking
from routing.visibility import output_is_open

KNOWN_BEFORE = ("columns", "sent")
"""Where answers are from that are there before a run asks."""
PARTS = 20
"""Of the answers of a run so many stretches are looked at."""


@dataclass(frozen=True)
class SeenAnswers:
    """`basis` says where the answers are from, "" where nothing is known; `of` for how many they stand, and
    `asked` is the source as a run froze it, where they are that run's.
    """

    basis: str = ""
    of: int = 0
    answers: Sequence[JudgedAnswer] = field(default_factory=tuple)
    asked: RunSource | None = None


def seen_answers(
    project: Project,
    sources: Sequence[Source],
    *,
    score: str = "",
    score_params: Mapping[str, Any] | None = None,
) -> list[SeenAnswers]:
    """Of `sources`, the project's in their order; `score` is that of the first one, its backend's own if none
    is named.
    """
    params = score_params or {}
    known = judged_answers(project, sources, score=score, params=params)
    found = []
    for source in sources:
        if source.pk in known:
            basis = backend_class(source.backend).known_from
            found.append(SeenAnswers(basis, project.items.count(), known[source.pk]))
        else:
            first = source is sources[0]
            key = _key(source, score if first else "", params if first else {})
            found.append(_of_a_model(source, key, counts=first))
    return found


def quoted_bases(project: Project) -> frozenset[str]:
    """Of which bases answers may be quoted now, to those who may look: they may label, too."""
    if project.runs.filter(state__in=OPEN).exists():
        return frozenset()
    before = frozenset({*KNOWN_BEFORE, "try"})
    return before | {"run"} if output_is_open(project) else before


def _key(source: Source, score: str, params: Mapping[str, Any]) -> str:
    """The name under which the values of its score are stored, its backend's own if none is named."""
    return score_key(score, params) if score else backend_for(source).default_score


def _of_a_model(source: Source, key: str, *, counts: bool) -> SeenAnswers:
    """What its newest run or try gave, with the score `key`. Where that `counts`, as of the first source, an
    answer without a usable one cannot be used.
    """
    seen = _of_newest_run(source, key, counts=counts)
    return seen if seen.answers else _of_newest_try(source, key, counts=counts)


def _of_newest_run(source: Source, key: str, *, counts: bool) -> SeenAnswers:
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
        return SeenAnswers()
    answers, count = _spread(newest)
    found = ItemScore.objects.filter(prediction__in=list(answers), name=key)
    scores = {
        pk: (stored_reason(*reason), u)
        for pk, u, *reason in found.values_list("prediction_id", "value", *REASON)
    }
    judged = [_scored(answer, *scores.get(pk, ("", None)), counts=counts) for pk, answer in answers.items()]
    return SeenAnswers("run", count, judged, newest)


def _scored(answer: JudgedAnswer, why: str, u: float | None, *, counts: bool) -> JudgedAnswer:
    """The answer with its score, and why that is none."""
    return answer._replace(reason=answer.reason or (why if counts else ""), score=None if why else u)


def _spread(asked: RunSource) -> tuple[dict[int, JudgedAnswer], int]:
    """By prediction what the answer is, of at most `LOOKED_AT`, and how many there are."""
    rows = Prediction.objects.filter(source=asked.source_id, fingerprint=asked.fingerprint)
    found = _answers(rows.order_by("item_id")[: LOOKED_AT + 1])
    if len(found) <= LOOKED_AT:
        return found, len(found)
    # By their keys, one by one: both ends in one query, or the order of the items, would read all rows.
    items = rows.values_list("item_id", flat=True)
    first, last = items.order_by("item_id")[0], items.order_by("-item_id")[0]
    spread: dict[int, JudgedAnswer] = {}
    for part in range(PARTS):
        start = first + (last + 1 - first) * part // PARTS
        stretch = rows.filter(item__gte=start).order_by("item_id")
        spread |= _answers(stretch[: LOOKED_AT // PARTS])
    return spread, rows.count()


def _answers(rows: QuerySet[Prediction]) -> dict[int, JudgedAnswer]:
    found = {}
    for pk, item, value, *columns in rows.values_list("pk", "item_id", "value", *REASON):
        reason = stored_reason(*columns)
        found[pk] = JudgedAnswer(reason, None, not reason, item, remembered_value(value))
    return found


def _of_newest_try(source: Source, key: str, *, counts: bool) -> SeenAnswers:
    """Of the few items that it was tried on, if it would be asked in the same way now."""
    tried = SourceTry.objects.filter(source=source).order_by("-job_id").first()
    if tried is None or any_hidden([row["item"] for row in tried.rows]):
        return SeenAnswers()
    if any(row.get("asked_as") not in (None, way_of_asking(source)) for row in tried.rows):
        return SeenAnswers()
    answers = []
    for row, (reason, of_score) in zip(tried.rows, reasons_of_try(tried), strict=True):
        answer = JudgedAnswer(reason, None, not reason, row["item"], remembered_value(row["value"] or None))
        if row.get("score_name") == key:
            answer = _scored(answer, of_score, row.get("score"), counts=counts)
        answers.append(answer)
    return SeenAnswers("try", len(tried.rows), answers)
