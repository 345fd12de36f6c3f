"""Uncertainty scores of a run: which one it uses, what has to be learnt for it first, and the values."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common.bulk import copy_rows
from annotation.common.value_reader import ValueReader, as_text
from annotation.errors import InputError
from annotation.jobs.context import JobContext
from annotation.labelling.labels_of_record import batches_with_overlap, record_values
from annotation.models import Label, Project
from annotation.words import Words
from routing.core.losses import Loss, LossNotComputedError, losses_of
from routing.core.registry import UnknownNameError
from routing.core.scores import SCORES, Example, ScoreError, fields_read, fit_score, make_score, score_key
from routing.core_language import message_in_words, refusal_in_words
from routing.models import (
    REMOVED,
    BudgetOwner,
    FrozenSource,
    ItemScore,
    PoolItem,
    Prediction,
    Run,
    RunSource,
    Source,
)
from routing.sources import storable
from routing.sources.backend_for import backend_for, fingerprint_of, frozen_backend
from routing.sources.backends.base import shortened
from routing.sources.mends import reader_for
from routing.sources.score_fields import fields_of, lacking_for
from routing.visibility import hidden_batches

# More than enough for a few coefficients, and quick enough for a page that says at once what is missing.
MAX_EXAMPLES = 5_000
# Predictions, and places of the pool, that a transaction holds.
CHUNK = 2_000
KEYS_CHUNK = 50_000


@dataclass(frozen=True)
class ChosenScore:
    """A score with its parameters."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name under which its values are stored."""
        return score_key(self.name, self.params)


def score_of(budget_owner: BudgetOwner, frozen_source: FrozenSource) -> ChosenScore:
    """Which uncertainty score is computed for a source: the run's for the first, for the others, and for all
    that are only measured, their backend's own.
    """
    if isinstance(budget_owner, Run) and frozen_source.position == 1:
        return ChosenScore(budget_owner.score, budget_owner.score_params)
    return ChosenScore(frozen_backend(frozen_source).default_score)


def resolve_score(
    project: Project,
    first_source: Source,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    loss: Loss | None = None,
) -> tuple[str, dict[str, Any]]:
    """Name and parameters that a run freezes: checked, and with what has to be learnt before.

    Without a name the score of the source's backend is taken. Of a calibrated score without parameters the
    backend's own score is the one it is learnt from. What is learnt comes from labelled items: none of them
    is in the pool of a run that starts now. What is right and wrong among them `loss` says, that of the run;
    without one, an answer is wrong that is not the label.

    Raises InputError, `where` being "score" or "score_params", where there is no such score, the source's
    answers do not bring what it reads, a parameter cannot be used, or too few labels are there to learn from.
    """
    backend = backend_for(first_source)
    own = backend.default_score
    name, given = name or own, dict(params or {})
    if name == "calibrated":
        given.setdefault("scores", [own])
    try:
        needed = fields_read(name, given)
    except UnknownNameError as error:
        where = "score" if name not in SCORES else "score_params"
        raise InputError(refusal_in_words(error), where=where) from None
    except ScoreError as error:
        raise _refused(error) from None
    if refusal := lacking_for(first_source, backend.fields, needed, name):
        raise InputError(refusal, where="score")
    try:
        resolved = fit_score(name, given, lambda: _examples(project, first_source, loss))
    except ScoreError as error:
        raise _refused(error) from None
    return name, resolved


def _refused(error: ScoreError) -> InputError:
    words = _("This score cannot be used: %(error)s.") % {"error": message_in_words(error.said)}
    return InputError(words, where="score_params")


def _examples(project: Project, source: Source, loss: Loss | None) -> list[Example]:
    """The newest stored predictions of the source for items that people have labelled. Where a loss is more
    than right or wrong, those count as wrong whose loss is above the mean.

    Not those of a calibration set that is being labelled: what is said of them here would tell how many of
    its answers are wrong before the analysis does.
    """
    hidden = hidden_batches(project)
    current = (
        Label.objects.filter(item__project=project, superseded_by__isnull=True)
        .exclude(work_item__batch__in=hidden)
        .order_by("-id")
    )
    labels = dict(reversed(list(current.values_list("item_id", "value")[:MAX_EXAMPLES])))
    if labels and batches_with_overlap(project):
        labels = _records(project, sorted(labels), hidden)
    if not labels:
        return []
    # Only now: a server may have to be asked for it, and pages come here at every change of a field.
    fingerprint = fingerprint_of(source)
    ids, reader = sorted(labels), reader_for(source)
    found: list[Prediction] = []
    for start in range(0, len(ids), 500):
        kept = Prediction.objects.filter(
            item__in=ids[start : start + 500], source=source, fingerprint=fingerprint, value__isnull=False
        )
        found += kept.exclude(raw=REMOVED).order_by("item_id")
    wrong = _wrong([labels[row.item_id] for row in found], [row.value for row in found], loss)
    return [Example(fields_of(row, reader), is_wrong) for row, is_wrong in zip(found, wrong, strict=True)]


def _records(project: Project, item_ids: Sequence[int], hidden: Collection[int]) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for start in range(0, len(item_ids), 500):
        records = record_values(project, item_ids[start : start + 500], hidden=hidden)
        found |= {item: record.value for item, record in records.items()}
    return found


def _wrong(labels: Sequence[Any], answers: Sequence[Any], loss: Loss | None) -> list[bool]:
    if loss is None or not labels:
        return [answer != label for label, answer in zip(labels, answers, strict=True)]
    try:
        losses = losses_of(loss, [as_text(label) for label in labels], [as_text(value) for value in answers])
    except LossNotComputedError:
        raise InputError(
            _("The losses that this score is learnt from are still being computed. Try again in a moment."),
            where="score_params",
        ) from None
    return [bool(value) for value in losses > (0 if loss.binary else losses.mean())]


def score_missing(context: JobContext, *, run_source: RunSource, score: ChosenScore) -> None:
    """Compute `score` for the stored predictions of a source that lack it. No model is called."""
    missing = Prediction.objects.filter(
        ~Exists(ItemScore.objects.filter(prediction=OuterRef("pk"), name=score.key)),
        source=run_source.source_id,
        fingerprint=run_source.fingerprint,
    ).order_by("pk")
    _refuse_removed(run_source, score, missing.filter(raw=REMOVED))
    missing = missing.exclude(raw=REMOVED)
    rows = list(missing[:CHUNK])
    if not rows:
        return
    reader = reader_for(run_source.source)
    while rows:
        with context.chunk(stage=Words(gettext_noop("Scores of %(source)s"), source=run_source.source.name)):
            store_scores(rows, score, reader)
        rows = list(missing.filter(pk__gt=rows[-1].pk)[:CHUNK])


RAW_REMOVED = failures.register(
    "raw_output_removed",
    gettext_noop(
        "The score %(score)s cannot be computed for %(count)s answers of %(source)s: what it is computed "
        "from was removed, as this server keeps it for a while alone (HYPAC_RETAIN_RAW_OUTPUT_DAYS). Cancel "
        "the run, and plan one with the score that they have, or with a source that is asked in another way "
        "and so answers anew."
    ),
)


def _refuse_removed(run_source: RunSource, score: ChosenScore, removed: QuerySet[Prediction]) -> None:
    """Such an answer would count as one that cannot be used. Others than those of the run's items are of no
    account.
    """
    needed = PoolItem.objects.filter(run=run_source.run_id, item=OuterRef("item"))
    if count := removed.filter(Exists(needed)).count():
        raise RAW_REMOVED.error(score=score.name, count=count, source=run_source.source.name)


def store_scores(rows: Iterable[Prediction], score: ChosenScore, reader: ValueReader) -> None:
    """Compute and store one score of predictions that do not have it.

    An answer that cannot be used is as uncertain as can be, whatever the model thought of it.
    """
    compute, name = make_score(score.name, score.params), score.key
    results = ((row.pk, compute(fields_of(row, reader))) for row in rows)
    copy_rows(
        ItemScore,
        ("prediction", "name", "value", "reason", "reason_code", "reason_quotes"),
        [
            (pk, name, result.u, shortened(result.reason), *storable.reason_columns(result.reason).values())
            for pk, result in results
        ],
    )


def copy_scores_to_pool(
    context: JobContext, run: Run, first: RunSource, positions: range | None = None
) -> None:
    """Copy the first source's scores to the pool, where they are the keys of the routing; or to what is taken
    in at these positions.
    """
    score = ItemScore.objects.filter(
        prediction__item=OuterRef("item"),
        prediction__source=first.source_id,
        prediction__fingerprint=first.fingerprint,
        name=score_of(run, first).key,
    )
    places = range(run.pool_size) if positions is None else positions
    for start in range(places.start, places.stop, KEYS_CHUNK):
        end = min(start + KEYS_CHUNK, places.stop)
        part = run.pool_items.filter(position__gte=start, position__lt=end, u__isnull=True)
        with context.chunk(stage=Words(gettext_noop("Order of the items"))):
            part.update(u=Subquery(score.values("value")[:1]))
