"""The baselines on the labels of one run: what each would have chosen, and what it would have shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from routing.core.answer_losses import losses_of_answers
from routing.core.arrays import Bools, Floats, Ints
from routing.core.baselines import BASELINES, Baseline, Labelled
from routing.core.bounds import BOUNDS, Evidence
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.cascade import Decision
from routing.core.messages import Message, declare, gettext_noop, say, sentences
from routing.core.plan import Plan


@dataclass(frozen=True)
class Observed:
    """One baseline on the labels of a run.

    Attributes
    ----------
    rule, bound : str
        ``bound`` is '' where the baseline uses none.
    limits : S - 1 scores or None
        Up to which score each model labels; None where it labels nothing or everything.
    own_scores : bool
        Whether a later model is limited on its own score and not on that of the first.
    everything : int or None
        Place of the model that labels whatever is left, whatever its score.
    routing_saving : float
        1 - cost of whoever labels / cost of people, on the items it was computed on.
    observed_errors : float
        Summed loss on the asked items.
    upper_bound : float or None
        Its own bound of its choice, as if this were the only one looked at.
    holds_level : bool
    said : messages
    refused : message or None
        Why it cannot be computed here; everything else is then empty.
    """

    rule: str
    bound: str = ""
    limits: tuple[float | None, ...] = ()
    own_scores: bool = False
    everything: int | None = None
    routing_saving: float = 0.0
    observed_errors: float = 0.0
    upper_bound: float | None = None
    holds_level: bool = False
    said: tuple[Message, ...] = ()
    refused: Message | None = None

    @property
    def sentence(self) -> str:
        """What it promises, in English."""
        return sentences(self.said)

    @property
    def refusal(self) -> str:
        """Why it cannot be computed, in English, or ''."""
        return "" if self.refused is None else str(self.refused)


@dataclass(frozen=True)
class Sample:
    """The labels of one run as baselines read them.

    With one probability of asking for all, the asked items are a simple random sample, on which every model
    ran: they alone are the sample then, each certain to be asked.  Where the probabilities vary, it is all
    drawn items, and only the first model has a score on each.

    Attributes
    ----------
    labelled : Labelled
    v : (n,)
        Tie-breaks.
    usable : (n, S - 1)
        Whether the model has an answer; False where nobody was asked.
    scored : S - 1 flags
        Whether the model has a score of its own on the sample.
    partly : S - 1 flags
        Whether it has one on any drawn item.
    """

    plan: Plan
    labelled: Labelled
    v: Ints
    usable: Bools
    scored: tuple[bool, ...]
    partly: tuple[bool, ...]

    @classmethod
    def of(cls, plan: Plan, calibration: Calibration, own_scores: Floats) -> Sample:
        """``own_scores`` (m, S - 1) in draw order are each model's own; NaN where there is none."""
        kept = calibration.asked if plan.constant_p else np.ones(len(calibration.rows), dtype=np.bool_)
        rows = [row for row, keep in zip(calibration.rows, kept.tolist(), strict=True) if keep]
        scores = np.where(np.isnan(own_scores[kept]), 1.0, own_scores[kept])
        scores[:, 0] = calibration.u[kept]
        loss, alone, usable = _losses(rows, plan)
        prices = np.array([float(cost) for cost in plan.costs])
        partly = (True, *(bool(np.isfinite(column).any()) for column in own_scores.T[1:]))
        scored = partly if plan.constant_p else (True, *(False for _ in partly[1:]))
        p = [1.0 if plan.constant_p else float(row.p) for row in rows]
        function = plan.loss_function()
        labelled = Labelled(
            u=scores,
            asked=np.array([row.asked for row in rows], dtype=np.bool_),
            p=np.array(p),
            loss=loss,
            alone=alone,
            cost=np.broadcast_to(prices, (len(rows), len(prices))),
            loss_bound=function.bound,
            binary=function.binary,
            constant_p=plan.constant_p,
            pool_size=plan.pool_size,
        )
        return cls(plan, labelled, calibration.v[kept], usable, scored, partly)

    def refusal(self, baseline: Baseline) -> Message | None:
        """Why the baseline cannot be computed on this sample, in words of a run; None if it can."""
        every = (True,) * len(self.scored)
        known = {"binary": self.labelled.binary, "constant_p": self.plan.constant_p}
        if refusal := baseline.refusal(scored=every, **known):
            return refusal
        if baseline.refusal(scored=self.scored, **known):
            in_part = any(self.partly[1:])
            return say("baseline.run_score_in_part" if in_part else "baseline.run_score_missing")
        return None

    def decide(self, baseline: Baseline, epsilon: Decimal) -> Decision:
        return baseline.decide(self.labelled, epsilon=float(epsilon), alpha=float(self.plan.alpha))

    def outcome(self, decision: Decision) -> tuple[Floats, float]:
        """Losses (n,) of whoever finally labels under ``decision``, and its routing saving."""
        nominal, _ = decision.apply(self.labelled.u, self.v)
        rows = np.arange(len(nominal))
        loss = np.zeros((len(nominal), len(decision.models) + 1))
        paid = np.empty_like(loss)
        paid[:, -1] = self.labelled.cost[:, -1]
        for place in range(len(decision.models) - 1, -1, -1):
            model = decision.models[place]
            here = self.usable[:, model]
            loss[:, place] = np.where(here, self.labelled.alone[:, model], loss[:, place + 1])
            paid[:, place] = self.labelled.cost[:, model]
        loss[~self.labelled.asked] = 0.0
        people = float(self.labelled.cost[:, -1].sum())
        saving = 1 - float(paid[rows, nominal].sum()) / people if people else 0.0
        return loss[rows, nominal], saving


def compare_baselines(sample: Sample) -> Iterator[Observed]:
    """Every baseline of the registry on ``sample``, at the epsilon and alpha of its plan."""
    for baseline in BASELINES:
        if refusal := sample.refusal(baseline):
            yield Observed(baseline.name, baseline.bound, refused=refusal)
            continue
        decision = sample.decide(baseline, sample.plan.epsilon)
        losses, saving = sample.outcome(decision)
        limits, everything = _limits(decision, sample.plan.sources - 1)
        # What a method promises that chooses what people label does not pass on to the labels of a run.
        holds = baseline.holds_level and not baseline.own_sample
        lost = say("baseline.not_its_labels" if baseline.own_sample else "baseline.not_held")
        yield Observed(
            rule=baseline.name,
            bound=baseline.bound,
            limits=limits,
            own_scores=any(stage.score not in (None, 0) for stage in decision.stages),
            everything=everything,
            routing_saving=saving,
            observed_errors=float(losses.sum()),
            upper_bound=0.0 if holds else _upper(sample, baseline.bound, losses),
            holds_level=holds,
            said=(baseline.summary, *([] if holds else [lost])),
        )


def _limits(decision: Decision, models: int) -> tuple[tuple[float | None, ...], int | None]:
    limits: list[float | None] = [None] * models
    everything = None
    for stage in decision.stages:
        if stage.score is None:
            everything = stage.source
        elif np.isfinite(stage.limit):
            limits[stage.source] = float(stage.limit)
    return tuple(limits), everything


def _upper(sample: Sample, bound: str, losses: Floats) -> float | None:
    if not bound:
        return None
    labelled = sample.labelled
    weighted = losses / labelled.p
    evidence = Evidence(
        total=np.array([losses.sum()]),
        squares=np.array([(losses**2).sum()]),
        asked=int(labelled.asked.sum()),
        drawn=len(losses),
        p=Fraction(1) if labelled.constant_p else Fraction(sample.plan.p),
        pool_size=sample.plan.pool_size,
        loss_bound=labelled.loss_bound,
        binary=labelled.binary,
        weighted=None if labelled.constant_p else np.array([weighted.sum()]),
        weighted_squares=None if labelled.constant_p else np.array([(weighted**2).sum()]),
        p_min=None if sample.plan.p_min is None else Fraction(sample.plan.p_min),
        rows=lambda first, last: losses[None, :],
    )
    upper = BOUNDS.get(bound).upper(evidence, float(sample.plan.alpha), target="population")
    return float(upper[0])


def _losses(rows: Sequence[CalibrationRow], plan: Plan) -> tuple[Floats, Floats, Bools]:
    """Losses (n, S - 1) where later models step in, where people step in at once, and who has an answer.

    An item that nobody could label counts B where a model labels it.
    """
    models = plan.sources - 1
    function = plan.loss_function()
    alone, usable = losses_of_answers(rows, function, models), np.zeros((len(rows), models), dtype=np.bool_)
    for index, row in enumerate(rows):
        if row.asked:
            usable[index] = [answer is not None for answer in row.answers]
            if row.label is None:
                alone[index, usable[index]] = function.bound
    loss = np.zeros_like(alone)
    for model in range(models - 1, -1, -1):
        later = loss[:, model + 1] if model + 1 < models else 0.0
        loss[:, model] = np.where(usable[:, model], alone[:, model], later)
    return loss, alone, usable


SAYS = {
    "baseline.not_its_labels": gettext_noop(
        "Here it was given the labels of this run, for which that promise does not hold."
    ),
    "baseline.not_held": gettext_noop(
        "It does not hold the stated level for the error of what is delivered."
    ),
    "baseline.run_score_missing": gettext_noop(
        "it needs an own score of a later model on every item that it looks at, and there is none"
    ),
    "baseline.run_score_in_part": gettext_noop(
        "it needs an own score of a later model on every item that it looks at, and where the "
        "probabilities of asking vary, later models answered only for the drawn items that people were "
        "asked about"
    ),
}
declare(SAYS)
