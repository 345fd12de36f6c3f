"""The cascade of LOTUS, its precision step (Patel et al. 2025, arXiv 2407.11418, after Kang et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from routing.core.baselines.base import Labelled, missing_score, needs_even_labels
from routing.core.cascade import Decision, Stage
from routing.core.messages import Message, declare, gettext_noop, say

CANDIDATES = 50
"""Quantiles of the scores that a threshold may be."""


@dataclass(frozen=True)
class LotusCascade:
    """One model labels up to a threshold on its own score, people the rest.

    LOTUS answers questions with yes or no and promises precision and recall.  For labels and an accuracy
    target its precision step carries over, where "the model is right" takes the place of "yes": of the 50
    quantiles of the score the largest is taken at which mean - sd sqrt(2 ln(n / alpha) / k), of the k among n
    labels up to there, is above 1 - epsilon; sd is theirs.  All labels count alike, so they have to be drawn
    alike; LOTUS offers that beside draws that favour high scores, for which this step does not correct.

    What it promises: with probability about 1 - alpha at most epsilon of the items that the model labels are
    wrong.  What it assumes: many labels, for a sum to be nearly normal and sd the true one; where k labels
    are all right, sd is 0 and k = 1 is enough.  The model runs on every item.
    """

    name: str
    model: int
    bound: str = "clt"
    holds_level: bool = False
    own_sample: bool = False

    @property
    def summary(self) -> Message:
        return say("baseline.lotus", model=self.model + 1)

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        return missing_score(self.name, self.model, scored) or needs_even_labels(
            self.name, binary=binary, constant_p=constant_p
        )

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        score = sample.u[:, self.model]
        asked = np.flatnonzero(sample.asked)
        own = score[asked]
        order = np.argsort(own, kind="stable")
        right = 1 - sample.alone[asked[order], self.model]
        ranks = np.ceil(np.arange(1, CANDIDATES + 1) * len(score) / CANDIDATES).astype(np.int64)
        limits = np.unique(np.sort(score)[ranks - 1])
        counts = np.searchsorted(own[order], limits, side="right")
        limits, counts = limits[counts > 0], counts[counts > 0]
        mean = np.cumsum(right)[counts - 1] / counts
        deviation = np.sqrt(mean * (1 - mean))
        lower = mean - deviation * np.sqrt(2 * log(max(len(asked), 1) / alpha) / counts)
        passed = np.flatnonzero(lower > 1 - epsilon)
        limit = float(limits[passed[-1]]) if len(passed) else -np.inf
        return Decision((self.model,), (Stage(self.model, self.model, limit),))


SAYS = {
    "baseline.lotus": gettext_noop(
        "Model %(model)s labels where its own score is below one threshold, else people. It promises the "
        "error among the items that the model labels, in the limit of many labels."
    ),
}
declare(SAYS)
