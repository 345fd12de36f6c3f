"""BARGAIN with an accuracy target (Zeighami, Shankar and Parameswaran 2025, arXiv 2509.02896)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from routing.core.arrays import Bools, Floats
from routing.core.baselines.base import Labelled, missing_score, needs_even_labels
from routing.core.cascade import Decision, Stage
from routing.core.messages import Message, declare, gettext_noop, say

CANDIDATES = 20
"""Thresholds that are tried, evenly spaced in the ranks of the score."""
BATCH = 10
"""Labels that are asked for before the test of a threshold is looked at again."""
PATIENCE = 50
"""After so many labels a threshold is given up where the share of right answers less one standard deviation
is below what is demanded: the rule of the authors' implementation."""
ROUNDING = 1e-12
"""By which a share as a float may be off."""
STAKE = 0.75
"""Largest part of the capital that one label can cost."""


@dataclass(frozen=True)
class Bargain:
    """One model labels up to a threshold on its own score, people the rest, and the labels behind the choice
    are asked for as they are needed.

    Thresholds are tried from the most certain items on.  The items below one, n of N, must be right in at
    least 1 - epsilon N / n of cases, so that the whole data set is right in 1 - epsilon.  That is tested on a
    simple random sample of them, without replacement, by a bet on each label (Lemma B.1): the capital reaches
    1 / alpha with probability at most alpha where they are not right that often, whenever one looks.  A label
    that an earlier threshold asked for costs nothing again.  The first threshold that does not pass ends the
    search (Algorithm 2 without tolerance), so all tests together hold the level alpha.

    What it promises: with probability at least 1 - alpha at most epsilon of the answers of this data set
    differ from people's, at every sample size and however good the score is.  What it assumes: people are
    right, and it may ask for labels one after the other, seeing each before the next.  The model runs on
    every item.
    """

    name: str
    model: int
    bound: str = "betting_upper"
    holds_level: bool = True
    own_sample: bool = True

    @property
    def summary(self) -> Message:
        return say("baseline.bargain", model=self.model + 1)

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        return missing_score(self.name, self.model, scored) or needs_even_labels(
            self.name, binary=binary, constant_p=constant_p
        )

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        score = sample.u[:, self.model]
        ranks = np.ceil(np.arange(1, CANDIDATES + 1) * len(score) / CANDIDATES).astype(np.int64)
        limit, read = -np.inf, np.zeros(len(score), dtype=np.bool_)
        for candidate in np.unique(np.sort(score)[ranks - 1]).tolist():
            below = score <= candidate
            share = float(below.mean())
            demand = 1 - epsilon / share
            if demand <= 0:  # it could be wrong everywhere: nothing to ask
                continue
            rows = np.flatnonzero(below & sample.asked)
            right = 1 - sample.alone[rows, self.model]
            passed, labels = sequential_test(
                right, demand, alpha=alpha, items=round(share * sample.pool_size)
            )
            read[rows[:labels]] = True
            if not passed:
                break
            limit = candidate
        stage = Stage(self.model, self.model, limit)
        return Decision((self.model,), (stage,), labelled=np.flatnonzero(read))


def sequential_test(right: Floats, demand: float, *, alpha: float, items: int) -> tuple[bool, int]:
    """Whether answers are shown to be right at least as often as demanded, and how many labels that took.

    Parameters
    ----------
    right : (n,)
        1 where the model is right, else 0, in the random order in which labels are asked for.
    demand : float
        Least share of right answers among all the items, above 0 and below 1.
    items : int
        How many items there are, labelled or not.

    Returns
    -------
    passed : bool
        False also where labels run out before the test ends.
    labels : int
        How many of ``right`` were looked at.
    """
    known = len(right)
    # Most tests end after a few looks: the capital is computed for the first labels, and for all if need be.
    for size in sorted({min(known, 20 * BATCH), known}):
        seen = np.cumsum(right[:size])
        gained, lost = _capital(right[:size], demand, alpha, items)
        for labels in (*range(BATCH, size, BATCH), size):
            if not labels:
                break
            mean = float(seen[labels - 1]) / labels
            often_enough = mean >= demand - ROUNDING
            if labels == items or (gained if often_enough else lost)[labels - 1]:
                return often_enough, labels
            if labels >= PATIENCE and mean - sqrt(mean * (1 - mean)) < demand:
                return False, labels
    return False, known


def _capital(right: Floats, demand: float, alpha: float, items: int) -> tuple[Bools, Bools]:
    """Whether a bet against "right less often than demanded", and one against "more often", has won by then;
    each (n,).

    Stakes are those of Waudby-Smith and Ramdas (2024) with the variance seen before the label; the
    mean that is bet against follows the items that are left.
    """
    step = np.arange(1.0, len(right) + 1)
    seen = np.cumsum(right)
    before = seen - right
    centre = (0.5 + before) / step
    # The sum of (x - centre)^2 over the labels before, each 0 or 1.
    spread = before - 2 * centre * before + (step - 1) * centre**2
    bet = np.sqrt(2 * log(2 / alpha) / (np.log(step + 1) * (0.25 + spread)))
    mean = (items * demand - before) / (items - step + 1)
    certain, hopeless = mean <= 0, mean >= 1
    inside = np.where(certain | hopeless, 0.5, mean)
    aim = log(1 / alpha)
    up = np.cumsum(np.log1p(np.minimum(bet, STAKE / inside) * (right - inside)))
    down = np.cumsum(np.log1p(-np.minimum(bet, STAKE / (1 - inside)) * (right - inside)))
    gained, lost = certain | (up >= aim), hopeless | (down >= aim)
    return np.logical_or.accumulate(gained), np.logical_or.accumulate(lost)


SAYS = {
    "baseline.bargain": gettext_noop(
        "Model %(model)s labels what tests of one threshold after the other find right often enough, by its "
        "own score; people label the rest. It promises the error of what is delivered, at every sample size, "
        "where it chooses by itself what people label."
    ),
}
declare(SAYS)
