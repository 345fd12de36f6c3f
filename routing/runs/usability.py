"""A run whose models gave many answers that cannot be used stops before people are asked, until somebody says
that it may go on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation import failures
from annotation.common import audit
from annotation.common.values import reader_of
from annotation.errors import ConflictError, JobFailedError
from annotation.jobs import running as jobs
from annotation.models import Job, User
from routing.common.states import State
from routing.models import DrawItem, ItemScore, PilotItem, PoolItem, Prediction, Run, RunSource
from routing.runs.score import score_of
from routing.runs.usable_answers import usable
from routing.sources.known_answers import LOOKED_AT
from routing.sources.storable import REASON, stored_reason
from routing.sources.usability import MOST, Looked, Unusable, Usability, grouped, known_labels
from routing.sources.warnings import kinds_in_words


class UnusableError(JobFailedError):
    """Nobody has said that a run may go on with answers of which so many cannot be used."""


def _too_many(params: Mapping[str, Any]) -> str:
    told = ". ".join(
        _("%(source)s: %(unusable)s of %(total)s, among them %(why)s")
        % {
            "source": seen["source"],
            "unusable": f"{seen['unusable']:,}",
            "total": f"{seen['total']:,}",
            "why": kinds_in_words(Unusable(code, count) for code, count in seen["reasons"]),
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
        unusable = [rows.filter(~usable(run_source)) for rows in _asked_about(run, run_source)]
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
        stored = Run.objects.select_for_update().select_related("project").get(pk=run.pk)
        newest = stored.project.jobs.filter(params__run=stored.pk).order_by("-id").first()
        if stored.state != State.PREPARING or newest is None or not stopped_at_unusable(newest):
            raise ConflictError(
                _("Run %(run)s does not wait for anybody to accept unusable answers.")
                % {"run": stored.number}
            )
        stored.accepts_unusable = True
        stored.save(update_fields=["accepts_unusable"])
        record_accepted(run=stored, user=user, what={"told": newest.error})
        jobs.retry(job=newest)
    return stored


def record_accepted(*, run: Run, user: User | None, what: dict[str, Any]) -> None:
    """Keep what somebody has accepted, as it was told."""
    audit.record(
        project=run.project, actor=user, action="run.unusable_accepted", target=f"run:{run.number}", data=what
    )


def accepted(looked: Looked) -> dict[str, Any]:
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
    return [PilotItem.objects.filter(run=run), DrawItem.objects.filter(draw__run=run, asked=True)]


def _kinds(run: Run, run_source: RunSource, unusable: Sequence[QuerySet[Any]]) -> tuple[Unusable, ...]:
    """Of the first ones that cannot be used."""
    ids = [
        item for rows in unusable for item in rows.order_by("item").values_list("item", flat=True)[:LOOKED_AT]
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
    return grouped(reasons, known_labels(reader_of(run.project)), examples=False)
