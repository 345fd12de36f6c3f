"""Cascaded selective evaluation (paper, Appendix E; Jung et al. 2024), with people at its end."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log1p
from typing import ClassVar

import numpy as np
from scipy import special

from routing.core.arrays import Floats
from routing.core.baselines.base import Labelled
from routing.core.cascade import Decision, Stage
from routing.core.messages import Message, declare, gettext_noop, say


@dataclass(frozen=True)
class CascadedSelectiveEvaluation:
    """Each model labels what it is sure enough of, on its own score, and passes the rest on, at last to
    people.

    Tier k is calibrated on the asked items that reach it, at level alpha / K (Bonferroni over the K tiers):
    from the most certain on, each score that occurs is tested as a limit, "more than epsilon of the items up
    to here are wrong", by the exact binomial tail, until one is not rejected.  Limits with fewer items than
    could pass without any error are not tested.  What is promised is the error among the items that models
    label, not in the whole data set.  A model runs on every item that reaches it.
    """

    name: str = "cse"
    bound: str = "binomial"
    holds_level: bool = False
    own_sample: bool = False
    summary: ClassVar[Message] = say("baseline.cse")

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        if not all(scored):
            return say("baseline.score_missing", baseline=self.name, model=scored.index(False) + 1)
        if not binary:
            return say("baseline.needs_binary", baseline=self.name)
        if not constant_p:
            return say("baseline.needs_constant_p", baseline=self.name)
        return None

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        level = alpha / max(sample.models, 1)
        waiting = sample.asked.copy()
        stages = []
        for model in range(sample.models):
            score = sample.u[:, model]
            limit = _limit(score[waiting], sample.loss[waiting, model], epsilon, level)
            stages.append(Stage(model, model, limit))
            waiting &= ~(score <= limit)
        return Decision(tuple(range(sample.models)), tuple(stages))


def _limit(score: Floats, loss: Floats, epsilon: float, level: float) -> float:
    """The last limit before the first that is not rejected; -inf where none is."""
    order = np.argsort(score, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(score[order]) > 0, True)) if len(score) else np.empty(0, np.int64)
    ends = ends[ends + 1 >= ceil(log(level) / log1p(-epsilon))]
    wrong = np.cumsum(loss[order])[ends]
    rejected = special.bdtr(wrong, ends + 1, epsilon) <= level
    failures = np.flatnonzero(~rejected)
    count = int(failures[0]) if len(failures) else len(ends)
    return float(score[order][ends[count - 1]]) if count else -np.inf


SAYS = {
    "baseline.cse": gettext_noop(
        "Each model labels what it is sure enough of by its own score; people label the rest."
    ),
    "baseline.score_missing": gettext_noop(
        "'%(baseline)s' needs a score of every model itself, and model %(model)s has none (a column "
        "conf%(model)s or u%(model)s)"
    ),
    "baseline.needs_binary": gettext_noop(
        "'%(baseline)s' uses the exact binomial test, which needs a loss of 0 or 1"
    ),
    "baseline.needs_constant_p": gettext_noop(
        "'%(baseline)s' uses the exact binomial test, which needs one probability of asking"
    ),
}
declare(SAYS)
