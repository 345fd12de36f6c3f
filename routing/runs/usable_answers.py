"""Usable answers: which of a run's sources can label an item, in one place for draw, pilot, routing and
delivery.
"""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast

from annotation.common.ranges import of_items
from annotation.common.value_reader import as_text
from routing.models import ItemScore, Prediction, Run, RunSource
from routing.runs.score import score_of


def answered(run_source: RunSource) -> Exists:
    """Whether the source has answered at all, for rows that have an `item_id`."""
    return Exists(
        Prediction.objects.filter(
            item=OuterRef("item_id"), source=run_source.source_id, fingerprint=run_source.fingerprint
        )
    )


def usable(run_source: RunSource) -> Exists:
    """Whether the source has a usable answer, for rows that have an `item_id`.

    Of the first source the score must be usable, too: an answer without one is treated as none.
    """
    answers = Prediction.objects.filter(
        item=OuterRef("item_id"),
        source=run_source.source_id,
        fingerprint=run_source.fingerprint,
        value__isnull=False,
    )
    if run_source.position == 1:
        score = ItemScore.objects.filter(
            prediction=OuterRef("pk"), name=score_of(run_source.run, run_source).key, reason=""
        )
        answers = answers.filter(Exists(score))
    return Exists(answers)


def reaches(run_sources: Sequence[RunSource], position: int) -> Q:
    """Routes whose item comes to the source at `position`: sent there, or passed on by those before without
    an answer.

    `run_sources` are the run's, in order; the position after the last one is people's.
    """
    condition = Q(position=1)
    for run_source in run_sources[: position - 1]:
        condition = Q(position=run_source.position + 1) | (condition & ~Q(usable(run_source)))
    return condition


def usable_values(run_source: RunSource, item_ids: Sequence[int]) -> QuerySet[Prediction, tuple[int, str]]:
    """(item id, answer as JSON text) of the items that the source has a usable answer for, as `usable` says;
    maybe of others, too (annotation.common.ranges).
    """
    answers = Prediction.objects.filter(
        of_items("item", item_ids),
        source=run_source.source_id,
        fingerprint=run_source.fingerprint,
        value__isnull=False,
    )
    if run_source.position == 1:
        score = score_of(run_source.run, run_source).key
        answers = answers.filter(scores__name=score, scores__reason="")
    return answers.values_list("item_id", Cast("value", TextField()))


def passed_on(run_sources: Sequence[RunSource], start: int, position: int) -> Q:
    """Routes to the source at `start` whose item comes to the one at `position`: those of `reaches`, apart.

    Without an OR, so that a database can look at many of them by joins and not one by one.
    """
    condition = Q(position=start)
    for run_source in run_sources[start - 1 : position - 1]:
        condition &= ~Q(usable(run_source))
    return condition


def table_of_answers(
    run: Run, run_sources: Sequence[RunSource], item_ids: Sequence[int]
) -> tuple[dict[int, list[str | None]], dict[int, list[float | None]]]:
    """Usable answers as texts (annotation.common.value_reader.as_text), and usable own scores, of every
    source: item id -> one entry per source, None where there is none.
    """
    answers: dict[int, list[str | None]] = {item: [None] * len(run_sources) for item in item_ids}
    scores: dict[int, list[float | None]] = {item: [None] * len(run_sources) for item in item_ids}
    for index, run_source in enumerate(run_sources):
        name = score_of(run, run_source).key
        for start in range(0, len(item_ids), 500):
            rows = ItemScore.objects.filter(
                name=name,
                prediction__item__in=item_ids[start : start + 500],
                prediction__source=run_source.source_id,
                prediction__fingerprint=run_source.fingerprint,
                prediction__value__isnull=False,
            ).values_list("prediction__item_id", "prediction__value", "value", "reason")
            for item, value, score, reason in rows:
                if not reason:
                    scores[item][index] = score
                if not reason or run_source.position > 1:
                    answers[item][index] = None if value is None else as_text(value)
    return answers, scores
