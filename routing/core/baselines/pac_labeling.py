"""PAC labeling in two stages: one model and people (paper, Appendix E, Algorithm 2; Candes et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from routing.core.baselines.base import Labelled, missing_score
from routing.core.bounds import BOUNDS, Evidence
from routing.core.cascade import NO_TIES, Decision, Stage
from routing.core.messages import Message, declare, gettext_noop, say


@dataclass(frozen=True)
class PacLabeling:
    """u_hat is the largest calibration score whose bound, Eq. (7), is at most epsilon; the model labels what
    lies strictly below it, as printed, on its own score.

    ``model`` is its place, 0 for the first.  The model runs on every item, since it makes the score; no other
    model is paid.  Many thresholds are looked at with one bound each, so it does not hold its stated level.
    """

    name: str
    model: int
    bound: str = "clt"
    holds_level: bool = False
    own_sample: bool = False

    @property
    def summary(self) -> Message:
        return say("baseline.pac_labeling", model=self.model + 1)

    def refusal(self, *, scored: tuple[bool, ...], binary: bool, constant_p: bool) -> Message | None:
        return missing_score(self.name, self.model, scored)

    def decide(self, sample: Labelled, *, epsilon: float, alpha: float) -> Decision:
        score = sample.u[:, self.model]
        order = np.argsort(score, kind="stable")
        loss = np.where(sample.asked, sample.alone[:, self.model], 0.0)[order]
        weighted = loss / sample.p[order]
        last = np.flatnonzero(np.append(np.diff(score[order]) > 0, True))
        evidence = Evidence(
            total=np.cumsum(loss)[last],
            squares=np.cumsum(loss**2)[last],
            asked=int(sample.asked.sum()),
            drawn=len(score),
            p=Fraction(float(sample.p.mean())),
            pool_size=len(score),
            loss_bound=sample.loss_bound,
            binary=sample.binary,
            weighted=np.cumsum(weighted)[last],
            weighted_squares=np.cumsum(weighted**2)[last],
        )
        upper = BOUNDS.get(self.bound).upper(evidence, alpha, target="population")
        feasible = np.flatnonzero(upper <= epsilon)
        limit = float(score[order][last[feasible[-1]]]) if len(feasible) else -np.inf
        return Decision((self.model,), (Stage(self.model, self.model, limit, NO_TIES),))


SAYS = {
    "baseline.pac_labeling": gettext_noop(
        "Model %(model)s labels where its own score is below one threshold, else people."
    ),
}
declare(SAYS)
