"""What a plan will probably save, from a pilot that nobody labelled, and which m and which models are best.

A rule says along which policies it would go, and what the pilot foretells of each (`Path`). Where along the
path the tests end depends on the draw: the number of errors that the asked items show is hypergeometric, so
that each end has its probability, and the plan an expected net saving. A forecast promises nothing: what is
certified rests on labels alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy  # whose parts are read when they are used

from routing.core import outlook as core_outlook
from routing.core.arrays import Floats, Ints
from routing.core.chain import Chain, build_chains, cut_slices, number_of_chains
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
STEPS = 24
"""How many m are looked at."""
PLATEAU = 0.0025
"""Of the m whose expected saving is at most so far below the best, the smallest is proposed."""
LIKE = 2_000
"""Items of a pool that is taken to look like the pilot."""
WORTH = 0.01
"""By how much leaving a model out has to raise the expected saving before it is proposed."""
LIKELY = (0.1, 0.9)
ASTRAY = ((0.5, 0.25), (1.0, 0.5), (2.0, 0.25))
"""By which factors the errors may differ from the foretold ones, and with which weight: a pilot does not show
those that models share."""


@dataclass(frozen=True)
class Path:
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


@dataclass(frozen=True)
class Forecast:
    """What a plan will probably come to.

    Attributes
    ----------
    m, labels : int
        Items drawn, and labels by people for the calibration.
    net_saving : float
        Expected, against people labelling everything.
    low, high : float
        Four of five times it lies between these, over the draw and what the pilot cannot show (`ASTRAY`).
    net_cost : float
        Expected, of everything, in the currency of the plan.
    people : float
        Expected number of items that people label, those of the calibration included.
    certified : float
        Probability that any step beyond people alone is certified.
    """

    m: int
    labels: int
    net_saving: float
    low: float
    high: float
    net_cost: float
    people: float
    certified: float


@dataclass(frozen=True)
class Proposal:
    """The m that is expected to save most, and what half and twice as many would do.

    ``half`` and ``twice`` are None where they can certify nothing or there are not so many items.
    """

    best: Forecast
    half: Forecast | None
    twice: Forecast | None


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


Foreteller = Callable[[Plan, PilotData, Floats], Sequence[Path]]


def along_first_score(plan: Plan, pilot: PilotData, wrong: Floats) -> tuple[Path, ...]:
    """The paths of the rules whose thresholds all lie on the first model's score.

    The pool is taken to look like the pilot: its scores stand for those of all items.
    """
    shape, u, v = _like(plan, pilot)
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


def _like(plan: Plan, pilot: PilotData) -> tuple[Plan, Floats, Ints]:
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


def _path(chain: Chain, edges: Floats, sums: Sequence[Floats], people: float, chains: int) -> Path:
    reach = np.cumsum([policy.counts for policy in chain.policies], axis=1)
    total = np.zeros(len(reach))
    for k, along in enumerate(sums):
        start = reach[:, k - 1] if k else 0
        total += np.interp(reach[:, k], edges, along) - np.interp(start, edges, along)
    return Path(
        wrong=total / edges[-1],
        model_cost=np.array([policy.model_cost for policy in chain.policies]),
        people=np.array([policy.people_cost for policy in chain.policies]) / people,
        share=Fraction(1, chains),
    )


def by_every_score(plan: Plan, pilot: PilotData, wrong: Floats) -> tuple[Path, ...]:
    """The paths of `every_score`: what its chains would do to the items of the pilot.

    Each model's losses are smoothed along the ranks of its own score. The main chain gets all that the others
    leave of alpha.
    """
    shape, u, v = _like(plan, pilot)
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
            Path(
                wrong=np.take_along_axis(losses, source.T, axis=1).mean(axis=0),
                model_cost=cost,
                people=people,
                share=left if chain.share is None else chain.share,
                asking_cost=cost if chains.lazy else None,
            )
        )
    return tuple(paths)


def _smoothed(score: Floats, wrong: Floats) -> Floats:
    """Foretold loss (g,) along the ranks of a score, with what models share."""
    ranks = (scipy.stats.rankdata(score) - 0.5) / len(score)
    return np.asarray(isotonic(ranks, wrong, ranks) + SHARED * wrong.mean() * ranks**2, dtype=np.float64)


FORETELLERS: dict[str, Foreteller] = {every_score.RULE.name: by_every_score}
"""By the rule that has paths of its own; all others go along the first model's score."""


def paths_of(plan: Plan, pilot: PilotData, wrong: Floats) -> tuple[Path, ...]:
    """The paths of the plan's rule.

    Parameters
    ----------
    pilot
        What the models of the plan answered; ``u`` is the first one's score.
    wrong : (g, S - 1)
        Foretold loss of their answers, as from `suspected`, which may know of further models.
    """
    return tuple(FORETELLERS.get(plan.rule, along_first_score)(plan, pilot, wrong))


def forecast(plan: Plan, paths: Sequence[Path]) -> Forecast:
    """What ``plan`` will probably save: along the path of most expected saving, where it has several.

    The paths' tests share alpha, so that of several one alone would do better than foretold.
    """
    return max((_along(plan, path) for path in paths), key=lambda found: found.net_saving)


def _along(plan: Plan, path: Path) -> Forecast:
    labels, size = int(plan.expected_labels), plan.pool_size
    tested, allowed = core_outlook.allowed_errors(plan, share=path.share)
    rest = size - labels
    wrong = np.maximum.accumulate(path.wrong) * size
    scenarios = [
        weight * _at_most(allowed, np.minimum(wrong * factor, size), tested / size)
        for factor, weight in ASTRAY
    ]
    passes = np.sum(scenarios, axis=0)
    passes[0] = 1.0  # people alone are never tested
    ends = passes - np.append(passes[1:], 0.0)
    net = np.minimum.accumulate(_net_costs(plan, path, labels))
    chosen = np.maximum.accumulate(np.where(net < np.append(np.inf, net[:-1]), np.arange(len(net)), 0))
    whole = size * float(plan.costs[-1])
    saving = 1 - net / whole
    expected = float(ends @ net)
    low, high = (_quantile(saving, ends, at) for at in LIKELY)
    return Forecast(
        m=plan.m,
        labels=labels,
        net_saving=1 - expected / whole,
        low=low,
        high=high,
        net_cost=expected,
        people=labels + rest * float(ends @ path.people[chosen]),
        certified=float(passes[1]) if len(passes) > 1 else 0.0,
    )


def _at_most(allowed: int, wrong: Floats, asked: float) -> Floats:
    """Probability (J,) that at most ``allowed`` of so many wrong items are among the asked ones, which are a
    share ``asked`` of all: binomial, as a hypergeometric number nearly is where few items are wrong.
    """
    if allowed < 0:
        return np.zeros(len(wrong))
    count = np.maximum(np.rint(wrong), allowed + 1)
    return np.where(wrong <= allowed, 1.0, scipy.special.bdtr(float(allowed), count.astype(np.int64), asked))


def _net_costs(plan: Plan, path: Path, labels: int) -> Floats:
    """Everything that a run pays that ends at each policy (J,), as in `routing.core.savings`."""
    first, *later, people = (float(cost) for cost in plan.costs)
    rest = plan.pool_size - labels
    outside = plan.pilot if plan.target == "population" else plan.pilot * rest / plan.pool_size
    return np.asarray(
        plan.pool_size * first
        + outside * sum(later)
        + labels * ((sum(later) if path.asking_cost is None else path.asking_cost) + people)
        + max(rest - outside, 0) * path.model_cost
        + rest * people * path.people,
        dtype=np.float64,
    )


def _quantile(values: Floats, weights: Floats, at: float) -> float:
    """Of values that grow along the path."""
    reached = np.searchsorted(np.cumsum(weights), at * weights.sum())
    return float(values[min(reached, len(values) - 1)])


def propose(plan: Plan, paths: Sequence[Path]) -> Proposal | None:
    """The m of most expected saving; None where no m can certify anything.

    Of nearly equal ones (`PLATEAU`) the smallest is taken: labels take people's time before anything is
    known. What is asked beside ``m`` stays as in ``plan``.
    """
    share = min(path.share for path in paths)

    def at(m: int) -> Forecast | None:
        changed = replace(plan, m=m)
        if not 1 <= m <= _most(plan) or core_outlook.allowed_errors(changed, share=share)[1] < 0:
            return None
        return forecast(changed, paths)

    seen = [one for m in _candidates(plan) if (one := at(m)) is not None]
    if not seen:
        return None
    top = max(one.net_saving for one in seen)
    best = next(one for one in seen if one.net_saving >= top - PLATEAU)
    return Proposal(best, at(best.m // 2), at(2 * best.m))


@dataclass(frozen=True)
class Needless:
    """A model that does not pay: its place among those of the plan, and the expected savings, each at the m
    that is best, with all models and without it."""

    place: int
    now: float
    without: float


def worth_leaving_out(plan: Plan, pilot: PilotData, wrong: Floats) -> Needless | None:
    """The model without which ``plan`` is expected to save most more, by at least `WORTH`; None where each of
    them pays. What the pilot cost is spent and counts for neither.

    Parameters
    ----------
    pilot
        With ``own_scores``, of the first model too; a model without a score cannot be the first.
    """
    models = range(plan.sources - 1)
    if len(models) < 2 or pilot.own_scores is None:
        return None
    plan = replace(plan, pilot_size=0)
    now = _best_saving(plan, pilot, wrong, models)
    savings = {place: _best_saving(plan, pilot, wrong, [k for k in models if k != place]) for place in models}
    place = max(savings, key=lambda place: savings[place])
    if savings[place] <= now + WORTH or savings[place] <= 0:
        return None
    return Needless(place, now, savings[place])


def _best_saving(plan: Plan, pilot: PilotData, wrong: Floats, models: Sequence[int]) -> float:
    """Expected with these models alone; -inf where that cannot be."""
    kept = list(models)
    scores = np.empty((0, 0)) if pilot.own_scores is None else pilot.own_scores[:, kept]
    if np.isnan(scores[:, 0]).all():
        return -np.inf
    unusable = np.isnan(scores[:, 0])
    answers = pilot.answers[:, kept].copy()
    answers[unusable, 0] = None
    part = PilotData(
        np.where(unusable, 1.0, scores[:, 0]),
        pilot.v,
        answers,
        scores,
        None if pilot.costs is None else pilot.costs[:, kept],
    )
    few = replace(plan, costs=(*(plan.costs[k] for k in kept), plan.costs[-1]))
    found = propose(
        few,
        paths_of(few, part, np.where(unusable[:, None] & (np.arange(len(kept)) == 0), 0.0, wrong[:, kept])),
    )
    return found.best.net_saving if found else -np.inf


def _most(plan: Plan) -> int:
    """Largest m: for the target population some items must be left over."""
    return plan.pool_size - (plan.pilot + 1 if plan.target == "population" else 0)


def _candidates(plan: Plan) -> list[int]:
    """Round numbers from the least that certifies to two thirds of the pool, ascending."""
    least = core_outlook.smallest_n(plan, chains=number_of_chains(plan)) / float(plan.p)
    most = max(2 * _most(plan) / 3, least)
    spread = np.geomspace(max(least, 1), max(most, 1), STEPS)
    return sorted({min(_round(m), _most(plan)) for m in spread})


def _round(m: float) -> int:
    """Up to two digits that count."""
    step = 10 ** max(0, len(str(int(m))) - 2)
    return int(-(-m // step) * step)
