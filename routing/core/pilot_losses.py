"""What a pilot foretells of each slice of the pool: losses, and the cost of passing unusable answers on.

Two ways to predict losses without a single label, each of which makes a chain of its own:

* `by_disagreement`: where models disagree, at least one is wrong.  A cheap model is charged with its
  disagreement with the best model, the best model with half of what its predecessor is charged with, and
  both with a little more, because a pilot cannot show what is rare.
* `by_attribution`, where the best model has a score of its own: a disagreement is split between the two
  models in proportion to their uncertainties; what neither is charged with grows with the rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from routing.core.arrays import Floats, Keys
from routing.core.bins import Bins
from routing.core.keys import pack_thresholds
from routing.core.losses import Loss, LossError
from routing.core.losses.base import BatchLoss, LossUnavailableError
from routing.core.pilot import PilotData

SHARED = 0.25
"""Part of the mean disagreement that is added to both models, times the squared rank: errors they share."""
FLOOR = 1e-6
"""Smallest predicted loss: zeros would leave moves unordered."""
LINE_WEIGHT = 100
"""Pilot items that the straight line counts as; chosen by net savings in `testbed/known_truth.py`."""
UNSEEN = 2
"""Wrong answers of each model that a pilot may well have missed; chosen likewise."""
LEARNT_DIGITS = 9
"""Decimals of losses learnt from labels: the last digits of a float may depend on the machine."""


@dataclass(frozen=True)
class Costs:
    """Expected cost per item beyond source 1 by nominal source and slice (S, b): later models, people."""

    models: Floats
    people: Floats


def assumed(bins: Bins, models: int) -> Floats:
    """Losses (S, b) without a pilot: they grow with the rank and halve from one model to the next."""
    halves = 0.5 ** np.arange(models)
    return _with_people(halves[:, None] * bins.rho[None, :])


def by_disagreement(bins: Bins, pilot: PilotData, loss: Loss) -> Floats:
    """Losses (S, b) from how often each model disagrees with the best one along the ranks.

    Half isotonic, half logistic regression on the rank, drawn towards a straight line from zero of the same
    mean, which weighs as much as `LINE_WEIGHT` pilot items; a low disagreement of confident items is more
    often the fault of the other model than a regression can see.  To all, the errors are added that a pilot
    of this size does not show, `UNSEEN` items' worth.
    """
    rho = bins.ranks(pilot.u)
    answers = final_answers(pilot.answers)
    items, models = answers.shape
    losses = np.empty((models, len(bins.rho)))
    for k in range(models - 1):
        outcome = disagreement(answers[:, k], answers[:, -1], loss)
        line = 2 * outcome.mean() * bins.rho
        fit = half_isotonic_half_logistic(rho, outcome, bins.rho, loss.bound)
        losses[k] = (items * fit + LINE_WEIGHT * line) / (items + LINE_WEIGHT)
    losses[-1] = losses[-2] / 2
    return _with_people(losses + UNSEEN * loss.bound / items)


def by_attribution(bins: Bins, pilot: PilotData, loss: Loss) -> Floats | None:
    """Losses (S, b) from splitting each disagreement by the two models' own uncertainties; None without
    those.
    """
    scores = pilot.own_scores
    if scores is None or np.all(np.isnan(scores[:, -1])):
        return None
    rho = bins.ranks(pilot.u)
    answers = final_answers(pilot.answers)
    models = answers.shape[1]
    losses = np.empty((models, len(bins.rho)))
    for k in range(models - 1):
        outcome = disagreement(answers[:, k], answers[:, -1], loss)
        own = pilot.u if k == 0 else scores[:, k]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = own / (own + scores[:, -1])
        share = np.where(np.isnan(share), 0.5, share)
        shared = SHARED * outcome.mean() * bins.rho**2
        losses[k] = isotonic(rho, outcome * share, bins.rho) + shared
        if k == models - 2:
            losses[-1] = isotonic(rho, outcome * (1 - share), bins.rho) + shared
    return _with_people(losses)


def by_labels(bins: Bins, keys: Keys, losses: Floats, loss: Loss) -> Floats:
    """Losses (S, b) learnt from labelled items with ``keys`` (n,) and ``losses`` (n, S - 1).

    Half isotonic, half logistic regression on the rank of the slice that holds the item.

    Only the slices' ends, sizes and ranks are read, and the result is rounded, so that whoever holds these
    and the items learns the same on any machine.
    """
    ends = pack_thresholds([bins.ends])[0]
    rho = bins.rho[np.minimum(np.searchsorted(ends, keys, side="left"), len(ends) - 1)]
    predicted = np.empty((losses.shape[1], len(bins.rho)))
    for k in range(losses.shape[1]):
        predicted[k] = half_isotonic_half_logistic(rho, losses[:, k], bins.rho, loss.bound)
    return _with_people(np.round(predicted, LEARNT_DIGITS))


def pass_on_costs(bins: Bins, prices: Floats, pilot: PilotData | None) -> Costs:
    """Expected costs where a model without a usable answer passes the item to the next source.

    Parameters
    ----------
    prices : (S,)
        Cost per label.  Source 1 is free here: it is paid on every item, because it makes the score.
    pilot
        Gives the share of unusable answers of each model along the ranks, and what its answers cost there;
        without one every answer is usable and costs its price.
    """
    sources, slices = len(prices), len(bins.rho)
    models, people = np.zeros((sources, slices)), np.zeros((sources, slices))
    people[-1] = prices[-1]
    rho = None if pilot is None else bins.ranks(pilot.u)
    for k in range(sources - 2, -1, -1):
        unusable = np.zeros(slices)
        if pilot is not None and rho is not None:
            missing = np.array([answer is None for answer in pilot.answers[:, k]], dtype=np.float64)
            if missing.any():
                unusable = isotonic(rho, missing, bins.rho)
        models[k] = (_price(bins, rho, pilot, k, prices[k]) if k else 0.0) + unusable * models[k + 1]
        people[k] = unusable * people[k + 1]
    return Costs(models, people)


def _price(bins: Bins, rho: Floats | None, pilot: PilotData | None, model: int, price: float) -> Floats:
    """Cost (b,) of an answer of a later model along the ranks: uncertain items make longer answers."""
    if rho is not None and pilot is not None and pilot.costs is not None:
        cost = pilot.costs[:, model]
        known = ~np.isnan(cost)
        if known.any():
            return isotonic(rho[known], cost[known], bins.rho)
    return np.full(len(bins.rho), price)


def final_answers(answers: NDArray[np.object_]) -> NDArray[np.object_]:
    """Answer of whoever finally labels, (n, S - 1): the next usable one, None where that is people."""
    final = answers.copy()
    for k in range(final.shape[1] - 2, -1, -1):
        missing = np.array([answer is None for answer in final[:, k]], dtype=np.bool_)
        final[missing, k] = final[missing, k + 1]
    return final


def half_isotonic_half_logistic(rho: Floats, outcome: Floats, at: Floats, largest: float) -> Floats:
    """Half isotonic, half logistic regression of ``outcome`` in [0, largest] on ``rho``, at ``at``."""
    smooth = logistic(rho, outcome / largest, at) * largest
    return np.asarray((isotonic(rho, outcome, at) + smooth) / 2, dtype=np.float64)


def disagreement(first: NDArray[np.object_], best: NDArray[np.object_], loss: Loss) -> Floats:
    """Loss (n,) of a model's answers if the best model's were true; people against a model is a full loss."""
    values = np.array(
        [0.0 if a is b is None else loss.bound for a, b in zip(first, best, strict=True)], dtype=np.float64
    )
    both = [row for row, (a, b) in enumerate(zip(first, best, strict=True)) if not (a is None or b is None)]
    if both:
        values[both] = _supposed(loss, [best[row] for row in both], [first[row] for row in both])
    return values


def _supposed(loss: Loss, labels: list[str], answers: list[str]) -> Floats:
    """Losses (n,) of ``answers`` if the model's answers ``labels`` were true.

    A label of record that cannot be read is an error; an answer that cannot be, is merely unlike the others.
    """
    if isinstance(loss, BatchLoss):
        try:
            return loss.many(labels, answers)
        except LossUnavailableError:
            raise
        except LossError:
            pass  # of one pair at least: look at each
    return np.array([_of_pair(loss, *pair) for pair in zip(labels, answers, strict=True)], dtype=np.float64)


def _of_pair(loss: Loss, label: str, answer: str) -> float:
    try:
        return loss(label, answer)
    except LossUnavailableError:
        raise
    except LossError:
        return 0.0 if label == answer else loss.bound


def _with_people(losses: Floats) -> Floats:
    """Losses of the models, kept above zero, with those of people, zero, as the last row."""
    return np.vstack([np.maximum(losses, FLOOR), np.zeros((1, losses.shape[1]))])


# whose parts are read when they are used: `optimize` takes half a second


RIDGE = 1e-3
"""Keeps the logistic regression finite where the ranks separate the two outcomes."""
ITERATIONS = 50


def isotonic(rho: Floats, outcome: Floats, at: Floats) -> Floats:
    """Non-decreasing least-squares fit of ``outcome`` (n,) on ``rho`` (n,), read off at ``at``, linear in
    between.
    """
    distinct, where, counts = np.unique(rho, return_inverse=True, return_counts=True)
    means = np.bincount(where, weights=outcome) / counts
    fit = scipy.optimize.isotonic_regression(means, weights=counts.astype(np.float64))
    return np.interp(at, distinct, fit.x)


def logistic(rho: Floats, outcome: Floats, at: Floats) -> Floats:
    """Logistic regression of ``outcome`` in {0, 1} on logit(rho), by Newton's method, read off at ``at``."""
    # Sums instead of matrix products: two parameters are not worth the threads of a linear algebra library.
    x = special.logit(rho)
    intercept = slope = 0.0
    for _ in range(ITERATIONS):
        mean = special.expit(intercept + slope * x)
        residual, weight = outcome - mean, mean * (1 - mean)
        g0, g1 = residual.sum() - RIDGE * intercept, (residual * x).sum() - RIDGE * slope
        h00, h01, h11 = weight.sum() + RIDGE, (weight * x).sum(), (weight * x * x).sum() + RIDGE
        determinant = h00 * h11 - h01 * h01
        step0, step1 = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        intercept += float(np.clip(step0, -2.0, 2.0))
        slope += float(np.clip(step1, -2.0, 2.0))
        if max(abs(step0), abs(step1)) < 1e-9:
            break
    return np.asarray(special.expit(intercept + slope * special.logit(at)), dtype=np.float64)
