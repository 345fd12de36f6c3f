"""Usable answers: which of a run's sources can label an item, in one place for draw, pilot, routing and
delivery.

A run whose models gave many answers that cannot be used stops before people are asked, until somebody says
that it may go on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from annotation import failures
from annotation.common import audit
from annotation.common.ranges import of_items
from annotation.common.value_reader import as_text, reader_of
from annotation.errors import ConflictError, JobFailedError
from annotation.jobs import jobs
from annotation.models import Job, User
from routing.common.states import State
from routing.models import DrawItem, ItemScore, PilotItem, PoolItem, Prediction, Run, RunSource
from routing.runs.score import score_of
from routing.sources.judged_answers import LOOKED_AT
from routing.sources.storable import REASON, stored_reason
from routing.sources.usability import MOST, SourcesUsability, Unusable, Usability, group_reasons, known_labels
from routing.sources.warnings import reasons_in_words


def has_answered(run_source: RunSource) -> Exists:
    """Whether the source has answered at all, for rows that have an `item_id`."""
    return Exists(
        Prediction.objects.filter(
            item=OuterRef("item_id"), source=run_source.source_id, fingerprint=run_source.fingerprint
        )
    )


def has_usable_answer(run_source: RunSource) -> Exists:
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
        condition = Q(position=run_source.position + 1) | (condition & ~Q(has_usable_answer(run_source)))
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
        condition &= ~Q(has_usable_answer(run_source))
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


class UnusableError(JobFailedError):
    """Nobody has said that a run may go on with answers of which so many cannot be used."""


def _too_many(params: Mapping[str, Any]) -> str:
    told = ". ".join(
        _("%(source)s: %(unusable)s of %(total)s, among them %(why)s")
        % {
            "source": seen["source"],
            "unusable": f"{seen['unusable']:,}",
            "total": f"{seen['total']:,}",
            "why": reasons_in_words(Unusable(code, count) for code, count in seen["reasons"]),
        }
        for seen in params["sources"]
    )
    return _(
        "Too many answers cannot be used. %(told)s. People have not been asked yet. Accept it on the page of "
        "the run, and it goes on; or cancel the run, mend the source and plan another one."
    ) % {"told": told}


TOO_MANY = failures.register("too_many_unusable", _too_many)


def refuse_unusable(run: Run, run_sources: Sequence[RunSource]) -> None:
    """Raises UnusableError where more than a tenth of a source's answers in this run cannot be used, and
    nobody has accepted that. No answer is quoted: people may be asked about any of these items.
    """
    if run.accepts_unusable:
        return
    refused = []
    for run_source in run_sources:
        unusable = [rows.filter(~has_usable_answer(run_source)) for rows in _asked_about(run, run_source)]
        total = sum(rows.count() for rows in _asked_about(run, run_source))
        count = sum(rows.count() for rows in unusable)
        if count > 1 and count > MOST * total:
            reasons = [(reason.code, reason.count) for reason in _kinds(run, run_source, unusable)]
            name = run_source.source.name
            refused.append({"source": name, "unusable": count, "total": total, "reasons": reasons})
    if refused:
        raise TOO_MANY.error(raised_as=UnusableError, sources=refused)


def stopped_at_unusable(job: Job | None) -> bool:
    """Whether the job waits for somebody to accept that many answers cannot be used."""
    return job is not None and job.state == Job.State.FAILED and job.error_code == TOO_MANY.code


def accept_unusable(*, run: Run, user: User | None) -> Run:
    """Let a run go on that stopped for unusable answers. Raises ConflictError where it does not wait for
    that.
    """
    with transaction.atomic():
        stored = (
            Run.objects.select_for_update(of=("self",), no_key=True).select_related("project").get(pk=run.pk)
        )
        newest = stored.project.jobs.filter(params__run=stored.pk).order_by("-id").first()
        if stored.state != State.PREPARING or newest is None or not stopped_at_unusable(newest):
            raise ConflictError(
                _("Run %(run)s does not wait for anybody to accept unusable answers.")
                % {"run": stored.number},
                code="no_confirmation_awaited",
            )
        stored.accepts_unusable = True
        stored.save(update_fields=["accepts_unusable"])
        record_unusable_accepted(run=stored, user=user, what={"told": newest.error})
        jobs.retry(job=newest)
    return stored


def record_unusable_accepted(*, run: Run, user: User | None, what: dict[str, Any]) -> None:
    """Keep what somebody has accepted, as it was told."""
    audit.record(
        project=run.project, actor=user, action="run.unusable_accepted", target=f"run:{run.number}", data=what
    )


def accepted_unusable(looked: SourcesUsability) -> dict[str, Any]:
    """What a start accepts, for the record."""
    return {"sources": [_numbers(seen) for seen in looked.asking]}


def _numbers(seen: Usability) -> dict[str, Any]:
    return {
        "source": seen.source,
        "looked_at": seen.looked_at,
        "unusable": seen.unusable,
        "reasons": {reason.code: reason.count for reason in seen.reasons},
        "score_values": seen.score_values,
    }


def _asked_about(run: Run, run_source: RunSource) -> list[QuerySet[Any]]:
    """Rows of the items that the source has answered for: the first all, the others pilot and draw."""
    if run_source.position == 1:
        return [PoolItem.objects.filter(run=run)]
    # Where every model's own score decides, a dear one has not been asked about all of these.
    asked = DrawItem.objects.filter(has_answered(run_source), draw__run=run, asked=True)
    return [PilotItem.objects.filter(run=run), asked]


def _kinds(run: Run, run_source: RunSource, unusable: Sequence[QuerySet[Any]]) -> tuple[Unusable, ...]:
    """Of the first ones that cannot be used."""
    ids = [
        item
        for rows in unusable
        for item in rows.order_by("item_id").values_list("item", flat=True)[:LOOKED_AT]
    ]
    reasons = []
    for start in range(0, len(ids), 500):
        found = Prediction.objects.filter(
            item__in=ids[start : start + 500],
            source=run_source.source_id,
            fingerprint=run_source.fingerprint,
        )
        of_answers = {pk: stored_reason(*reason) for pk, *reason in found.values_list("pk", *REASON)}
        scores = ItemScore.objects.filter(prediction__in=list(of_answers), name=score_of(run, run_source).key)
        of_scores = {
            pk: stored_reason(*reason) for pk, *reason in scores.values_list("prediction_id", *REASON)
        }
        reasons += [reason or of_scores.get(pk, "") for pk, reason in of_answers.items()]
    return group_reasons(reasons, known_labels(reader_of(run.project)), examples=False)
