"""Along which policies a rule would go, and what a pilot that nobody labelled foretells of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy  # whose parts are read when they are used

from routing.core.arrays import Floats, Ints
from routing.core.chain import Chain, build_chains, cut_slices
from routing.core.every_score.build import build_score_chains
from routing.core.every_score.items import ScoredItems
from routing.core.keys import V_MAX
from routing.core.losses import Loss
from routing.core.pilot import PilotData
from routing.core.pilot_losses import disagreement, isotonic
from routing.core.plan import Plan
from routing.core.rules import every_score, split_fixed_sequence

SHARED = 0.25
"""Part of a model's mean error that is added, times the squared rank: errors that models share."""
LIKE = 2_000
"""Items of a pool that is taken to look like the pilot."""


@dataclass(frozen=True)
class ForecastPath:
    """The J policies of one chain, in the order of its tests, people alone first.

    Attributes
    ----------
    wrong : (J,)
        Foretold loss of each over all items, as a share of the largest possible.
    model_cost : (J,)
        Cost of later models per item that is not asked about, in the currency of the plan.
    people : (J,)
        Share of the items that go to people.
    share : Fraction
        Of alpha, at which its tests are made.
    asking_cost : (J,), optional
        Cost of later models per item that people are asked about; by default each of them answers it.
    """

    wrong: Floats
    model_cost: Floats
    people: Floats
    share: Fraction = Fraction(1)
    asking_cost: Floats | None = None


def suspected(pilot: PilotData, loss: Loss) -> Floats:
    """Foretold loss (g, K) of each model's answer on each pilot item, as a share of the largest; 0 for one
    that cannot be used.

    Where two models disagree one at least is wrong: a disagreement with the last model is split between the
    two in proportion to their own uncertainties. Where the last has no score, the other one is charged with
    all of it and the last with half of what its predecessor is charged with, as in `by_disagreement`.

    Parameters
    ----------
    pilot
        With ``own_scores``, of the first model too; at least two models.
    """
    scores = pilot.own_scores
    own = np.full(pilot.answers.shape, np.nan) if scores is None else scores
    last = pilot.answers.shape[1] - 1
    found = np.zeros(pilot.answers.shape)
    for k in range(last):
        differs = disagreement(pilot.answers[:, k], pilot.answers[:, last], loss) / loss.bound
        total = own[:, k] + own[:, last]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(total > 0, own[:, k] / total, 0.5)
        known = ~np.isnan(total)
        found[:, k] = differs * np.where(known, share, 1.0)
        if k == last - 1:
            found[:, last] = differs * np.where(known, 1 - share, 0.5)
    unusable = np.array([[answer is None for answer in row] for row in pilot.answers], dtype=np.bool_)
    return np.where(unusable, 0.0, found)


PathForecaster = Callable[[Plan, PilotData, Floats], Sequence[ForecastPath]]


def along_first_score(plan: Plan, pilot: PilotData, wrong: Floats) -> tuple[ForecastPath, ...]:
    """The paths of the rules whose thresholds all lie on the first model's score.

    The pool is taken to look like the pilot: its scores stand for those of all items.
    """
    shape, u, v = like_pilot(plan, pilot)
    slices = cut_slices(shape, u=u, v=v)
    rho = slices.ranks(pilot.u)
    final = _final(pilot, wrong)
    losses = [
        isotonic(rho, of_model, slices.rho) + SHARED * of_model.mean() * slices.rho**2 for of_model in final.T
    ]
    edges = np.concatenate([[0], np.cumsum(slices.sizes)])
    sums = [np.concatenate([[0.0], np.cumsum(of_model * slices.sizes)]) for of_model in losses]
    chains = build_chains(shape, u=u, v=v, pilot=pilot if plan.sources > 2 else None)
    return tuple(_path(chain, edges, sums, float(plan.costs[-1]), len(chains)) for chain in chains)


def like_pilot(plan: Plan, pilot: PilotData) -> tuple[Plan, Floats, Ints]:
    """The plan for a pool that looks like the pilot, and the keys of that pool (u, v)."""
    copies = max(1, min(plan.pool_size, LIKE) // len(pilot.u))
    size = len(pilot.u) * copies
    shape = replace(
        plan,
        m=max(1, plan.m * size // plan.pool_size),
        rule="fixed_sequence" if plan.rule == split_fixed_sequence.RULE.name else plan.rule,
        target="dataset",
        pool_size=size,
        data_set_size=None,
    )
    v = np.tile(np.arange(copies, dtype=np.int64) * (V_MAX // copies), len(pilot.u))
    return shape, np.repeat(pilot.u, copies), v


def _final(pilot: PilotData, wrong: Floats) -> Floats:
    """Foretold loss (g, K) of whoever finally labels: a model without a usable answer passes it on."""
    final = wrong.copy()
    later = np.zeros(len(wrong))
    for k in reversed(range(wrong.shape[1])):
        unusable = np.array([answer is None for answer in pilot.answers[:, k]], dtype=np.bool_)
        later = np.where(unusable, later, wrong[:, k])
        final[:, k] = later
    return final


def _path(chain: Chain, edges: Floats, sums: Sequence[Floats], people: float, chains: int) -> ForecastPath:
    reach = np.cumsum([policy.counts for policy in chain.policies], axis=1)
    total = np.zeros(len(reach))
    for k, along in enumerate(sums):
        start = reach[:, k - 1] if k else 0
        total += np.interp(reach[:, k], edges, along) - np.interp(start, edges, along)
    return ForecastPath(
        wrong=total / edges[-1],
        model_cost=np.array([policy.model_cost for policy in chain.policies]),
        people=np.array([policy.people_cost for policy in chain.policies]) / people,
        share=Fraction(1, chains),
    )


def by_every_score(plan: Plan, pilot: PilotData, wrong: Floats) -> tuple[ForecastPath, ...]:
    """The paths of `every_score`: what its chains would do to the items of the pilot.

    Each model's losses are smoothed along the ranks of its own score. The main chain gets all that the others
    leave of alpha.
    """
    shape, u, v = like_pilot(plan, pilot)
    chains = build_score_chains(shape, u=u, v=v, pilot=pilot)
    own = pilot.u[:, None] if pilot.own_scores is None else pilot.own_scores.copy()
    own = np.hstack([own, np.full((len(own), plan.sources - 1 - own.shape[1]), np.nan)])
    own[:, 0] = pilot.u
    usable = np.array([[answer is not None for answer in row] for row in pilot.answers], dtype=np.bool_)
    items = ScoredItems.of(own, np.zeros(own.shape, dtype=np.int64), usable, scored=chains.scored)
    losses = np.column_stack([*map(_smoothed, np.nan_to_num(own, nan=1.0).T, wrong.T), np.zeros(len(own))])
    prices = [float(cost) for cost in plan.costs]
    left = Fraction(1) - sum((chain.share or Fraction(0) for chain in chains.chains), Fraction(0))
    paths = []
    for chain in chains.chains:
        source = chain.delivers(items)
        people = (source == items.models).mean(axis=1)
        cost = chain.paid(items, prices) / items.size - people * prices[-1]
        paths.append(
            ForecastPath(
                wrong=np.take_along_axis(losses, source.T, axis=1).mean(axis=0),
                model_cost=cost,
                people=people,
                share=left if chain.share is None else chain.share,
                asking_cost=cost if chains.lazy and not plan.measured_elsewhere else None,
            )
        )
    return tuple(paths)


def _smoothed(score: Floats, wrong: Floats) -> Floats:
    """Foretold loss (g,) along the ranks of a score, with what models share."""
    ranks = (scipy.stats.rankdata(score) - 0.5) / len(score)
    return np.asarray(isotonic(ranks, wrong, ranks) + SHARED * wrong.mean() * ranks**2, dtype=np.float64)


PATH_FORECASTERS: dict[str, PathForecaster] = {every_score.RULE.name: by_every_score}
"""By the rule that has paths of its own; all others go along the first model's score."""


def paths_of(plan: Plan, pilot: PilotData, wrong: Floats) -> tuple[ForecastPath, ...]:
    """The paths of the plan's rule.

    Parameters
    ----------
    pilot
        What the models of the plan answered; ``u`` is the first one's score.
    wrong : (g, S - 1)
        Foretold loss of their answers, as from `suspected`, which may know of further models.
    """
    return tuple(PATH_FORECASTERS.get(plan.rule, along_first_score)(plan, pilot, wrong))
