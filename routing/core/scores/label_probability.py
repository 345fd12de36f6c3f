"""1 - the probability of the answer among the labels that may be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from routing.core.messages import gettext_noop
from routing.core.reasons import MISSING, score_missing
from routing.core.scores.base import (
    ItemScore,
    Score,
    complement,
    entries_of,
    probability_or_reason,
    refuse_unknown,
    spelled,
    unusable,
)
from routing.core.scores.logits import from_logarithm


@dataclass(frozen=True)
class LabelProbability:
    """U = 1 - P(answer) / sum over the allowed labels of P(label).

    From ``label_logprobs`` (label -> natural logarithm), else ``probabilities`` (label -> probability, or a
    list in the order of ``classes``).  Spellings of one label add up; what spells no label is left out.
    """

    name: str = "label_probability"
    title: str = gettext_noop("Probability of the answer")
    summary: str = gettext_noop(
        "1 minus the probability of the given answer, renormalised among the allowed labels."
    )
    reads: tuple[str, ...] = ("probabilities", "label_logprobs")
    parameters: ClassVar[Mapping[str, str]] = {}

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        return label_probability


def label_probability(prediction: Mapping[str, object]) -> ItemScore:
    """The score of one prediction."""
    label = prediction.get("label")
    if label is None:
        return unusable(MISSING)
    table, logarithms = _table(prediction)
    if not table:
        return unusable(score_missing("the probabilities of the labels are missing"))
    allowed = prediction.get("allowed")
    keys = set(map(str, allowed.values())) if isinstance(allowed, Mapping) else None
    total, mine, found = 0.0, 0.0, False
    for name, entry in table.items():
        key = spelled(prediction, name)
        if keys is not None and key not in keys:
            continue
        what = f"the probability of {key[:40]!r}"
        value = (
            from_logarithm(entry, f"the logarithm of {what}")
            if logarithms
            else probability_or_reason(entry, what)
        )
        if isinstance(value, str):
            return unusable(value)
        total += value
        if key == str(label):
            mine, found = mine + value, True
    if not found:
        return unusable(f"no probability is stored for the answer {str(label)[:40]!r}")
    if total <= 0.0:
        return unusable("the probabilities of the allowed labels are all 0")
    return ItemScore(min(1.0, max(0.0, complement(mine / total))))


def _table(prediction: Mapping[str, object]) -> tuple[Mapping[object, object], bool]:
    """What is stored for each label, and whether these are logarithms."""
    logprobs = prediction.get("label_logprobs")
    if isinstance(logprobs, Mapping) and logprobs:
        return logprobs, True
    stored = prediction.get("probabilities")
    if isinstance(stored, Mapping):
        return stored, False
    values, classes = entries_of(stored), entries_of(prediction.get("classes"))
    return (dict(zip(map(str, classes), values, strict=True)) if len(values) == len(classes) else {}), False
