"""Chains: sequences of policies, each a little cheaper and riskier, fixed without the calibration draw.

A chain starts with theta_0, people alone.  The pool is cut into slices along the keys; every further policy
moves one slice from a source to a cheaper one, the move with the most cost saved per predicted new loss
first.  The guarantee holds for any chain, so its construction may be as clever, and as wrong, as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from routing.core.arrays import Bools, Floats, Ints, Keys
from routing.core.bins import Bins, make_bins
from routing.core.keys import Thresholds, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.pilot_losses import (
    Costs,
    assumed,
    by_attribution,
    by_disagreement,
    by_labels,
    pass_on_costs,
)
from routing.core.plan import Plan
from routing.core.rules import multi_chain, split_fixed_sequence

BINS = 200
NOTHING = (-np.inf, 0.0)
"""Worth of a move that saves nothing."""

__all__ = [
    "BINS",
    "Chain",
    "ChainError",
    "PilotData",
    "Policy",
    "build_chains",
    "cut_slices",
    "learn_chain",
    "number_of_chains",
]


class ChainError(ValueError):
    """The data for a chain does not fit the plan."""


@dataclass(frozen=True)
class Policy:
    """One threshold policy of a chain.

    Attributes
    ----------
    thresholds : S - 1 keys or None
    counts : S whole numbers
        Items of the pool (target "population": items outside the calibration set) in the band of each source.
    model_cost, people_cost : float
        Expected cost of later models and of people, per item not asked for calibration.  Source 1 is left
        out: it is paid on every item anyway.
    """

    thresholds: Thresholds
    counts: tuple[int, ...]
    model_cost: float
    people_cost: float

    @property
    def expected_cost(self) -> float:
        """Both costs together."""
        return self.model_cost + self.people_cost


@dataclass(frozen=True)
class Chain:
    """A named chain; ``policies[0]`` is people alone."""

    name: str
    policies: tuple[Policy, ...]

    @cached_property
    def thresholds(self) -> Keys:
        """Thresholds of all policies as sortable numbers (J, S - 1)."""
        return pack_thresholds(policy.thresholds for policy in self.policies)

    def fault(self, sources: int) -> str:
        """Why this is no chain for so many sources, in words; '' if it is one."""
        if not self.policies:
            return "it has no policy; it must start with people alone, where nothing goes to a model"
        lengths = [len(policy.thresholds) for policy in self.policies]
        if min(lengths) != sources - 1 or max(lengths) != sources - 1:
            index = next(index for index, length in enumerate(lengths) if length != sources - 1)
            return f"policy {index} has {lengths[index]} thresholds for {sources} sources"
        falls = np.flatnonzero((self.thresholds[:, :-1] > self.thresholds[:, 1:]).any(axis=1))
        if len(falls):
            return f"the thresholds of policy {falls[0]} fall from one source to the next"
        if any(threshold is not None for threshold in self.policies[0].thresholds):
            return "it must start with people alone, where nothing goes to a model"
        return ""

    @cached_property
    def expected_costs(self) -> Floats:
        """Expected cost of each policy (J,), as `Policy.expected_cost`."""
        return np.array([policy.model_cost + policy.people_cost for policy in self.policies])


def build_chains(
    plan: Plan,
    *,
    u: Floats,
    v: Ints,
    pilot: PilotData | None = None,
    reference: Bools | None = None,
    bins: int = BINS,
) -> tuple[Chain, ...]:
    """The chains that the rule of ``plan`` tests, from the scores of its pool and a pilot.

    `fixed_sequence` has one chain.  `multi_chain` has two more, which use only the first or only the last
    model before people, whichever way the forecast errs.  `split_fixed_sequence` has none yet: see
    `learn_chain`.  Two sources have one chain, whatever the rule.

    Parameters
    ----------
    u, v : (N,)
        Uncertainties and tie-breaks of the pool, in pool order.
    pilot
        Orders the moves where there are two models or more; without one, losses are assumed to grow with the
        rank of U and to halve from one model to the next.
    reference : (N,), optional
        Which items may be looked at.  Required for the target "population": those outside the calibration
        set, the pilot among them.  The other targets look at the whole pool.

    Raises
    ------
    ChainError
        Shapes, scores or the reference do not fit the plan.
    """
    slices = cut_slices(plan, u=u, v=v, reference=reference, bins=bins)
    problem = pilot.problem(plan.sources) if pilot is not None and len(pilot.u) else ""
    if problem:
        raise ChainError(problem)
    prices = np.array([float(cost) for cost in plan.costs])
    pilot = pilot if pilot is not None and len(pilot.u) else None
    costs = pass_on_costs(slices, prices, pilot)
    if plan.rule == split_fixed_sequence.RULE.name:
        return ()
    if plan.sources == 2:
        return (greedy_chain("ordered", slices, assumed(slices, 1), costs),)
    name, losses = foretold_losses(slices, plan, pilot)
    chain = greedy_chain(name, slices, losses, costs)
    if plan.rule != multi_chain.RULE.name:
        return (chain,)
    return (
        chain,
        greedy_chain("first model", slices, losses, costs, use=(0,)),
        greedy_chain("last model", slices, losses, costs, use=(plan.sources - 2,)),
    )


def number_of_chains(plan: Plan) -> int:
    """How many chains the rule of ``plan`` tests, each at alpha divided by it."""
    return 3 if plan.rule == multi_chain.RULE.name and plan.sources > 2 else 1


def cut_slices(plan: Plan, *, u: Floats, v: Ints, reference: Bools | None = None, bins: int = BINS) -> Bins:
    """The slices of the pool that a chain of ``plan`` moves along: what `learn_chain` needs to be told.

    Parameters as in `build_chains`, which cuts the same.

    Raises
    ------
    ChainError
        Shapes, scores or the reference do not fit the plan.
    """
    u, v = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.int64)
    _check(plan, u, v, reference)
    whole_ties = plan.target == "population"
    if whole_ties and reference is not None:
        u, v = u[reference], v[reference]
    return make_bins(u, v, count=bins, whole_ties=whole_ties)


def foretold_losses(slices: Bins, plan: Plan, pilot: PilotData | None) -> tuple[str, Floats]:
    """Name of the forecast and predicted losses (S, b), from the best that the pilot allows.

    Two chains at half the level each cost more than the choice between them is worth; where the last model
    has a score of its own, splitting each disagreement between the models is the better forecast.
    """
    if pilot is None:
        return "assumed", assumed(slices, plan.sources - 1)
    loss = plan.loss_function()
    attributed = by_attribution(slices, pilot, loss)
    if attributed is not None:
        return "attributed", attributed
    return "disagreement", by_disagreement(slices, pilot, loss)


def learn_chain(plan: Plan, slices: Bins, keys: Keys, losses: Floats) -> Chain:
    """The chain of ``split_fixed_sequence``, learnt from the labelled first part of the asked items.

    It follows from the arguments alone, of ``slices`` from ``ends``, ``sizes`` and ``rho``; so a certificate
    that carries these lets anybody learn it again.

    Parameters
    ----------
    slices
        Cut from the pool before the draw (target "population": from items outside the calibration set).
    keys : (n,)
        Keys of the labelled items, as from `pack`, in any order.
    losses : (n, S - 1)
        Loss of whoever finally labels where the nominal source is k.

    Raises
    ------
    ChainError
        The shapes do not fit each other or the plan, or there is no labelled item.
    """
    if len(keys) < 1 or losses.shape != (len(keys), plan.sources - 1):
        raise ChainError(
            f"a chain is learnt from at least one item with a loss per model: {len(keys)} keys and losses of "
            f"shape {losses.shape} came, expected (n, {plan.sources - 1})"
        )
    prices = np.array([float(cost) for cost in plan.costs])
    forecast = by_labels(slices, keys, losses, plan.loss_function())
    return greedy_chain("learnt", slices, forecast, pass_on_costs(slices, prices, None))


def _check(plan: Plan, u: Floats, v: Ints, reference: Bools | None) -> None:
    if u.shape != (plan.pool_size,) or v.shape != (plan.pool_size,):
        raise ChainError(
            f"the pool has {plan.pool_size} items, but {u.size} scores and {v.size} tie-breaks came"
        )
    if not np.all((u >= 0) & (u <= 1)):
        worst = int(np.flatnonzero(~((u >= 0) & (u <= 1)))[0])
        raise ChainError(
            f"the uncertainty of pool item {worst} is {u[worst]}, outside [0, 1]; store 1 with the reason"
        )
    if plan.target == "population":
        if reference is None:
            raise ChainError(
                "for the target 'population' a chain may see only items outside the calibration set: "
                "pass `reference`"
            )
        if np.shape(reference) != u.shape or not 0 < np.count_nonzero(reference) <= plan.pool_size - plan.m:
            raise ChainError(
                "`reference` must mark items outside the calibration set, at least one, at most N - m"
            )


def greedy_chain(
    name: str, bins: Bins, loss: Floats, costs: Costs, *, use: Sequence[int] | None = None
) -> Chain:
    """From people alone, one slice at a time, the move that saves most per predicted new loss.

    Where the thresholds k .. l coincide, raising k' .. l of them moves the slice above from source l + 1 to
    k'. Moves that save nothing are left out.

    Parameters
    ----------
    loss : (S, b)
        Predicted loss of each source in each slice.
    use
        The models, counted from 0, that may get items; all of them by default.
    """
    sizes = bins.sizes.tolist()
    people = len(loss) - 1
    movers = range(people) if use is None else use
    worth = _worth(bins, loss, costs)
    model_cost = (costs.models * bins.sizes).tolist()
    people_cost = (costs.people * bins.sizes).tolist()
    size = sum(sizes)
    ends = (None, *bins.ends)
    level = [0] * people
    counts = [0] * people + [size]
    paid_models, paid_people = sum(model_cost[people]), sum(people_cost[people])
    policies = [Policy((None,) * people, tuple(counts), paid_models / size, paid_people / size)]
    while True:
        best = NOTHING
        move = (0, 0)
        for k in movers:
            b = level[k]
            if b == len(sizes):
                continue
            source = k + 1
            while source < people and level[source] == b:
                source += 1
            value = worth[k][source][b]
            if value > best:
                best, move = value, (k, source)
        if best is NOTHING:
            return Chain(name, tuple(policies))
        k, source = move
        b = level[k]
        counts[source] -= sizes[b]
        counts[k] += sizes[b]
        paid_models += model_cost[k][b] - model_cost[source][b]
        paid_people += people_cost[k][b] - people_cost[source][b]
        level[k:source] = [b + 1] * (source - k)
        thresholds = tuple([ends[end] for end in level])
        policies.append(Policy(thresholds, tuple(counts), paid_models / size, paid_people / size))


def _worth(bins: Bins, loss: Floats, costs: Costs) -> list[list[list[tuple[float, float]]]]:
    """What moving slice b from source l to the cheaper k is worth, at [k][l][b], in the order of the moves.

    Cost saved per item and predicted new loss, infinite where no new loss is predicted; then the cost saved
    in all.  Moves that save nothing are worth `NOTHING`.
    """
    total = costs.models + costs.people
    sources = len(loss)
    table: list[list[list[tuple[float, float]]]] = [[[] for _ in range(sources)] for _ in range(sources - 1)]
    for k in range(sources - 1):
        for source in range(k + 1, sources):
            saved, added = total[source] - total[k], loss[k] - loss[source]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(added > 0, saved / added, np.inf)
            gains = zip(ratio.tolist(), (saved * bins.sizes).tolist(), strict=True)
            table[k][source] = [gain if gain[1] > 0 else NOTHING for gain in gains]
    return table
