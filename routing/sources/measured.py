"""How often a source was right, on the items that people were asked about in runs that are analysed.

Those are a random sample of the pools of these runs; items that were routed to people are none and are left
out. Of many the first ones of each draw are looked at, whose order is random.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotation.common.value_reader import as_text
from annotation.labelling.labels_of_record import record_values
from annotation.permissions import Access
from annotation.task_types import TASK_TYPES
from routing.common.states import OPEN
from routing.core.arrays import Floats
from routing.core.experiment.reliability import interval, reliability
from routing.core.losses import Loss, losses_of, make_loss
from routing.core.scores import score_key
from routing.models import DrawItem, ItemScore, Prediction, RunSource, Source
from routing.sources.backend_for import backend_for, fingerprint_of
from routing.sources.backends import backend_class
from routing.visibility import hidden_batches, may_see_model_output

MOST = 2_000
AT_ONCE = 500
MOST_CLASSES = 12


@dataclass(frozen=True)
class Confusion:
    """How often which label of people (a row) met which answer (a column), both in the order of `labels`, by
    key; of labels beyond those it has `others` pairs.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    others: int


@dataclass(frozen=True)
class MeasuredAccuracy:
    """Of a source as it was in its newest analysed run.

    Attributes
    ----------
    runs
        Their numbers, the newest first.
    changed
        Whether it would answer otherwise now, None where nobody can tell.
    asked
        Items with a label of people, of the draws of these runs, that were looked at; `of` there are.
    answered
        Those with a usable answer, on which the rest is counted.
    random
        Whether these are a random sample: each with the same chance, and none because of what models said.
    binary
        Whether an answer is right or wrong; else `right` is the sum of 1 - loss / B.
    low, high
        The exact 95 % interval of the share that is right; None where the answers are no random sample, or
        the loss is more than right or wrong.
    bins, ece
        As of a run's figures: how often it was right by how sure it was.
    """

    runs: tuple[int, ...]
    changed: bool | None
    asked: int
    of: int
    answered: int
    random: bool
    binary: bool
    right: float
    low: float | None
    high: float | None
    confusion: Confusion | None
    bins: tuple[dict[str, Any], ...]
    ece: float | None

    @property
    def accuracy(self) -> float:
        return self.right / self.answered


def measured_accuracy(source: Source, access: Access) -> MeasuredAccuracy | None:
    """None where it may not be seen by this person now, and where no analysed run has such items.

    Raises LossNotComputedError where losses are still to be computed, which a job does.
    """
    project = source.project
    if not may_see_model_output(project, access):
        return None
    rows = list(
        RunSource.objects.filter(source=source, run__certificate__isnull=False)
        .exclude(run__state__in=OPEN)
        .select_related("run")
        .order_by("-run__number")
    )
    rows = [row for row in rows if row.fingerprint == rows[0].fingerprint]
    # What the team's own program measured stands in that run's certificate, and cannot be computed here.
    if not rows or rows[0].run.measured_elsewhere:
        return None
    drawn = DrawItem.objects.filter(draw__run__in=[row.run_id for row in rows], asked=True)
    ids = sorted(set(drawn.order_by("order", "draw_id").values_list("item", flat=True)[:MOST]))
    labels = _labels(source, ids)
    answers = _answers(rows[0], list(labels))
    pairs = [(item, labels[item], answers[item][1]) for item in labels if answers.get(item, (0, None))[1]]
    if not pairs:
        return None
    run = rows[0].run
    loss = make_loss(run.loss, run.loss_params)
    losses = losses_of(loss, [label for _, label, _ in pairs], [str(answer) for _, _, answer in pairs])
    right = float((1 - losses / loss.bound).sum())
    random = len(answers) == len(labels) and not any(row.run.p_column for row in rows)
    exact = interval(round(right), len(pairs)) if random and loss.binary else {"low": None, "high": None}
    return MeasuredAccuracy(
        runs=tuple(row.run.number for row in rows),
        changed=_changed(source, rows[0]),
        asked=len(labels),
        of=drawn.values("item").distinct().count(),
        answered=len(pairs),
        random=random,
        binary=loss.binary,
        right=right,
        low=exact["low"],
        high=exact["high"],
        confusion=_confusion(source, pairs),
        **_reliability(rows[0], {item: answers[item][0] for item, *_ in pairs}, losses, loss),
    )


def _labels(source: Source, ids: Sequence[int]) -> dict[int, str]:
    """What people say of the items, those without a label left out."""
    hidden = hidden_batches(source.project)
    found: dict[int, str] = {}
    for start in range(0, len(ids), AT_ONCE):
        records = record_values(source.project, ids[start : start + AT_ONCE], hidden=hidden)
        found |= {item: as_text(record.value) for item, record in records.items()}
    return found


def _answers(asked: RunSource, ids: Sequence[int]) -> dict[int, tuple[int, str | None]]:
    """By item the prediction and its value as text, None where it is none; those not asked are left out."""
    found: dict[int, tuple[int, str | None]] = {}
    for start in range(0, len(ids), AT_ONCE):
        rows = Prediction.objects.filter(
            item__in=ids[start : start + AT_ONCE], source=asked.source_id, fingerprint=asked.fingerprint
        )
        for pk, item, value in rows.values_list("pk", "item_id", "value"):
            found[item] = (pk, None if value is None else as_text(value))
    return found


def _changed(source: Source, asked: RunSource) -> bool | None:
    """Not where a server would have to be asked: a page does not wait for it."""
    known = backend_class(source.backend).known_from
    return fingerprint_of(source) != asked.fingerprint if known else None


def _confusion(source: Source, pairs: Sequence[tuple[int, str, str | None]]) -> Confusion | None:
    if not TASK_TYPES[source.project.task_type].one_choice:
        return None
    met = Counter((label, str(answer)) for _, label, answer in pairs)
    often = Counter(label for _, label, _ in pairs) + Counter(str(answer) for _, _, answer in pairs)
    shown = {label for label, _count in often.most_common(MOST_CLASSES)}
    order = source.project.choices.order_by("position").values_list("key", flat=True)
    labels = tuple(key for key in order if key in shown)
    counts = tuple(tuple(met[label, answer] for answer in labels) for label in labels)
    return Confusion(labels, counts, len(pairs) - sum(map(sum, counts)))


def _reliability(
    asked: RunSource, predictions: Mapping[int, int], losses: Floats, loss: Loss
) -> dict[str, Any]:
    run = asked.run
    first = asked.position == 1
    key = score_key(run.score, run.score_params) if first else backend_for(asked.source).default_score
    scores: dict[int, float] = {}
    ids = list(predictions.values())
    for start in range(0, len(ids), AT_ONCE):
        rows = ItemScore.objects.filter(prediction__in=ids[start : start + AT_ONCE], name=key, reason="")
        scores |= dict(rows.values_list("prediction_id", "value"))
    scored = np.array([prediction in scores for prediction in ids], dtype=bool)
    if not scored.any():
        return {"bins": (), "ece": None}
    u = np.array([scores[prediction] for prediction in ids if prediction in scores])
    diagram = reliability(u, losses[scored], loss_bound=loss.bound)
    bins = zip(diagram.confidence, diagram.accuracy, diagram.counts, strict=True)
    return {
        "ece": diagram.ece,
        "bins": tuple(
            {
                "confidence": float(confidence),
                "accuracy": float(accuracy),
                "count": int(count),
                **(interval(round(accuracy * count), int(count)) if loss.binary else {}),
            }
            for confidence, accuracy, count in bins
        ),
    }
