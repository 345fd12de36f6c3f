"""The disagreement of several answers to one item (the paper's ensemble-based score)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum, log
from types import MappingProxyType
from typing import Any, ClassVar

from routing.core.messages import declare, gettext_noop, say
from routing.core.reasons import MISSING
from routing.core.scores.base import (
    ItemScore,
    Score,
    ScoreError,
    entries_of,
    refuse_unknown,
    spelled,
    unusable,
)

Answers = list[str | None]


def _against_answer(samples: Answers, label: str) -> float:
    return (len(samples) - samples.count(label)) / len(samples)


def _against_majority(samples: Answers, label: str) -> float:
    counts = Counter(sample for sample in samples if sample is not None)
    return (len(samples) - max(counts.values(), default=0)) / len(samples)


def _entropy(samples: Answers, label: str) -> float:
    # A sample without an answer agrees with nothing: each is an outcome of its own.
    counts = [*Counter(sample for sample in samples if sample is not None).values()]
    counts += [1] * samples.count(None)
    size = len(samples)
    return min(1.0, max(0.0, -fsum(k / size * log(k / size) for k in counts) / log(size)))


MEASURES: Mapping[str, Callable[[Answers, str], float]] = MappingProxyType(
    {"answer": _against_answer, "majority": _against_majority, "entropy": _entropy}
)


@dataclass(frozen=True)
class Ensemble:
    """Disagreement within ``samples``, a list of at least two answers of one model to one item.

    ``measure``: ``answer`` (default), the share of samples that differ from the answer given; ``majority``,
    1 - the share of the most frequent one; ``entropy``, the Shannon entropy of the samples divided by the
    logarithm of their number. An empty sample agrees with nothing.
    """

    name: str = "ensemble"
    title: str = gettext_noop("Disagreement of samples")
    summary: str = gettext_noop("How much several answers of the same model to the same item disagree.")
    reads: tuple[str, ...] = ("samples",)
    parameters: ClassVar[Mapping[str, str]] = {
        "measure": gettext_noop(
            "'answer' (share of samples that differ from the answer), 'majority' (1 minus the "
            "share of the most frequent sample) or 'entropy'."
        )
    }

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        name = params.get("measure", "answer")
        measure = MEASURES.get(name) if isinstance(name, str) else None
        if measure is None:
            raise ScoreError(say("ensemble.measure", known=", ".join(MEASURES), name=repr(str(name)[:40])))

        def score(prediction: Mapping[str, object]) -> ItemScore:
            label = prediction.get("label")
            if name == "answer" and label is None:
                return unusable(MISSING)
            stored = entries_of(prediction.get("samples"))
            if len(stored) < 2:
                return unusable("fewer than two samples are stored")
            samples = [None if entry in (None, "") else spelled(prediction, entry) for entry in stored]
            return ItemScore(measure(samples, str(label)))

        return score


SAYS = {
    "ensemble.measure": gettext_noop("measure must be one of %(known)s, not %(name)s"),
}
declare(SAYS)
