"""The chance that an answer is wrong, from a logistic model of other scores (the paper's calibrated score).

It is fitted on labels of other items: the guarantee holds whatever the score is, as long as the labels of the
run's own draw had no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import scipy  # whose parts are read when they are used: `optimize` takes half a second
from scipy import special

from routing.core.arrays import Bools, Floats, Ints
from routing.core.losses.base import LossError
from routing.core.messages import declare, gettext_noop, say
from routing.core.scores.base import (
    Example,
    Examples,
    ItemScore,
    Part,
    Score,
    ScoreError,
    refuse_unknown,
    unusable,
)
from routing.core.scores.composite import read_parts

LEAST_EXAMPLES = 30
MARGIN = 1e-6
"""Scores are taken at least this far from 0 and 1, where their logit is infinite."""
RIDGE = 1e-2
"""Keeps intercept and coefficients finite where a score separates right from wrong."""
RIDGE_LABEL = 10.0
"""Pulls the offset of a label that few examples have towards 0.

Measured on 50,000 ImageNet answers in 1,000 classes: with 1, offsets learnt from 5,000 labels order the rest
worse than no offsets do; with 10 they never did."""
DECIMALS = 9


@dataclass(frozen=True)
class Fit:
    """A fitted model: P(wrong) = expit(intercept + coefficients . logit(U) + offset of the label)."""

    intercept: float
    coefficients: tuple[float, ...]
    offsets: Mapping[str, float]
    examples: int

    def as_params(self) -> dict[str, Any]:
        return {
            "intercept": self.intercept,
            "coefficients": list(self.coefficients),
            "offsets": dict(self.offsets),
            "examples": self.examples,
        }


@dataclass(frozen=True)
class Calibrated:
    """U = P(wrong | the entries of ``scores``, the answer), by logistic regression on their logits.

    Parameters: ``scores``; ``by_label``, whether each answer has an offset of its own (unless told
    otherwise, where answers are labels of a list: no text or number comes often enough); ``fitted``, what
    `fit` learnt. Without ``fitted`` the score cannot be made.
    """

    make_part: Callable[[str, Mapping[str, Any]], Score]
    name: str = "calibrated"
    title: str = gettext_noop("Fitted on other labels")
    summary: str = gettext_noop(
        "The chance that the answer is wrong, learnt from labelled items outside the run: it puts several "
        "scores, and which label was given, on one scale."
    )
    reads: tuple[str, ...] = ()
    parameters: ClassVar[Mapping[str, str]] = {
        "scores": gettext_noop("The scores that it is learnt from: a list of names."),
        "by_label": gettext_noop(
            "Whether each label of a list has a level of its own (true unless told otherwise)."
        ),
        "fitted": gettext_noop("What was learnt; filled in when a run starts."),
    }

    def parts(self, params: Mapping[str, Any]) -> list[Part]:
        """Names and parameters of the scores; raises `ScoreError`."""
        return read_parts(self.name, params, never=(self.name, "hybrid"))

    def make(self, params: Mapping[str, Any]) -> Score:
        scores = self._scores(params)
        if "fitted" not in params:
            raise ScoreError(say("calibrated.not_fitted"))
        fit = read_fit(params["fitted"], len(scores))

        def score(prediction: Mapping[str, object]) -> ItemScore:
            row, reason = _features(scores, prediction)
            if reason:
                return unusable(reason)
            terms = [fit.intercept, *(c * x for c, x in zip(fit.coefficients, row, strict=True))]
            offset = fit.offsets.get(str(prediction.get("label")), 0.0)
            return ItemScore(float(special.expit(sum(terms) + offset)))

        return score

    def fit(self, params: Mapping[str, Any], examples: Examples) -> dict[str, Any]:
        """The parameters with ``fitted``; one that is there already stays.

        Raises `ScoreError` where fewer than `LEAST_EXAMPLES` examples have usable scores, or all of these
        are right, or all wrong.
        """
        scores = self._scores(params)
        if "fitted" in params:
            read_fit(params["fitted"], len(scores))
            return dict(params)
        try:
            known = examples()
        except LossError as error:
            raise ScoreError(say("calibrated.no_loss", error=error.said)) from error
        listed = all(example.prediction.get("allowed", True) is not None for example in known)
        by_label = params.get("by_label", listed)
        if by_label and not listed:
            raise ScoreError(say("calibrated.no_list"))
        return {**params, "fitted": fit_examples(scores, known, by_label=by_label).as_params()}

    def _scores(self, params: Mapping[str, Any]) -> list[tuple[str, Score]]:
        refuse_unknown(self.name, params, self.parameters)
        if not isinstance(params.get("by_label", True), bool):
            raise ScoreError(say("calibrated.by_label", value=repr(params["by_label"])))
        return [(name, self.make_part(name, own)) for name, own in self.parts(params)]


def fit_examples(scores: list[tuple[str, Score]], examples: Sequence[Example], *, by_label: bool) -> Fit:
    """The model fitted on the examples whose scores are all usable; raises `ScoreError` (see `fit`)."""
    rows, labels, wrong = [], [], []
    for example in examples:
        row, reason = _features(scores, example.prediction)
        if not reason:
            rows.append(row)
            labels.append(str(example.prediction.get("label")))
            wrong.append(example.wrong)
    if len(rows) < LEAST_EXAMPLES:
        raise ScoreError(say("calibrated.too_few", least=LEAST_EXAMPLES, there=len(rows)))
    if len(set(wrong)) < 2:
        raise ScoreError(say("calibrated.all_wrong" if wrong[0] else "calibrated.all_right", there=len(rows)))
    names = sorted(set(labels)) if by_label else []
    places = {name: place for place, name in enumerate(names)}
    where = np.array([places[label] for label in labels] if by_label else [], dtype=np.int64)
    x = np.array(rows, dtype=np.float64)
    solution = fit_logistic(x, where, len(names), np.array(wrong, dtype=np.bool_))
    values = [round(float(value), DECIMALS) + 0.0 for value in solution]
    split = 1 + len(scores)
    return Fit(values[0], tuple(values[1:split]), dict(zip(names, values[split:], strict=True)), len(rows))


def fit_logistic(x: Floats, groups: Ints, group_count: int, wrong: Bools) -> Floats:
    """Intercept, coefficients and group offsets (1 + J + L,) of a ridge-penalised logistic regression.

    Parameters
    ----------
    x : (n, J) features
    groups : (n,) group of each row, from 0; empty where ``group_count`` L is 0
    wrong : (n,) outcome
    """
    features = x.shape[1]
    penalty = np.concatenate([np.full(1 + features, RIDGE), np.full(group_count, RIDGE_LABEL)])
    y = wrong.astype(np.float64)

    def loss(theta: Floats) -> tuple[float, Floats]:
        eta = theta[0] + (x * theta[1 : 1 + features]).sum(axis=1)
        if group_count:
            eta = eta + theta[1 + features :][groups]
        value = float(np.logaddexp(0.0, eta).sum() - (y * eta).sum() + 0.5 * (penalty * theta**2).sum())
        residual = special.expit(eta) - y
        by_group = np.bincount(groups, weights=residual, minlength=group_count)[:group_count]
        gradient = np.concatenate([[residual.sum()], (x * residual[:, None]).sum(axis=0), by_group])
        return value, gradient + penalty * theta

    start = np.zeros(1 + features + group_count)
    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2_000})
    return np.asarray(found.x, dtype=np.float64)


def read_fit(value: Any, parts: int) -> Fit:
    """A fitted model as `Fit.as_params` wrote it; raises `ScoreError` where it does not fit the scores."""
    try:
        fit = Fit(
            float(value["intercept"]),
            tuple(float(entry) for entry in value["coefficients"]),
            {str(label): float(offset) for label, offset in value["offsets"].items()},
            int(value["examples"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScoreError(say("calibrated.unreadable", error=f"{type(error).__name__}: {error}")) from None
    if len(fit.coefficients) != parts:
        raise ScoreError(say("calibrated.coefficients", there=len(fit.coefficients), scores=parts))
    if not all(map(isfinite, (fit.intercept, *fit.coefficients, *fit.offsets.values()))):
        raise ScoreError(say("calibrated.infinite"))
    return fit


def _features(scores: list[tuple[str, Score]], prediction: Mapping[str, object]) -> tuple[list[float], str]:
    """Logits of the scores, and why one of them is missing ('' if none is)."""
    row = []
    for name, score in scores:
        result = score(prediction)
        if not result.usable:
            return [], f"{name}: {result.reason}"
        row.append(float(special.logit(min(max(result.u, MARGIN), 1.0 - MARGIN))))
    return row, ""


SAYS = {
    "calibrated.no_loss": gettext_noop("what it is learnt from has no loss: %(error)s"),
    "calibrated.not_fitted": gettext_noop(
        "the score 'calibrated' has not been fitted on labelled items yet ('fitted')"
    ),
    "calibrated.no_list": gettext_noop("by_label is for answers that are labels of a list: leave it out"),
    "calibrated.by_label": gettext_noop("by_label must be true or false, not %(value)s"),
    "calibrated.too_few": gettext_noop(
        "the score 'calibrated' needs %(least)s labelled items outside the run's pool that the model has "
        "answered with usable scores; there are %(there)s"
    ),
    "calibrated.all_wrong": gettext_noop(
        "the score 'calibrated' needs right and wrong answers to learn from; all %(there)s answers to "
        "labelled items outside the run's pool are wrong"
    ),
    "calibrated.all_right": gettext_noop(
        "the score 'calibrated' needs right and wrong answers to learn from; all %(there)s answers to "
        "labelled items outside the run's pool are right"
    ),
    "calibrated.unreadable": gettext_noop("fitted cannot be read (%(error)s)"),
    "calibrated.coefficients": gettext_noop("fitted has %(there)s coefficients for %(scores)s scores"),
    "calibrated.infinite": gettext_noop("fitted holds a number that is not finite"),
}
declare(SAYS)
