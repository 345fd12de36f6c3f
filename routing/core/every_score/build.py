"""The chains of `every_score`, fixed without the draw: from plan, pool and pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, sqrt

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Bools
from routing.core.bins import Bins
from routing.core.bounds import Evidence
from routing.core.chain import ChainError, cut_slices
from routing.core.every_score.chain import CASCADE, FIRST_SCORE, OWN, ScoreChain
from routing.core.every_score.first_score import budget_of, first_score_chain
from routing.core.every_score.forecast import POLICIES, CascadeForecast, CascadePath, PilotPair
from routing.core.every_score.quantiles import PilotQuantiles, PoolQuantiles, Quantiles
from routing.core.keys import V_MAX, pack
from routing.core.pilot import PilotData
from routing.core.pilot_losses import disagreement, final_answers
from routing.core.plan import Plan
from routing.core.rules import every_score

DEAR = Fraction(5, 100)
"""rho = c_K / c_h from which on the last model is called only where a policy needs it, and below which a
model is cheap."""
BEFORE_LAST, CASCADE_BESIDE, CHEAP = Fraction(3, 10), Fraction(2, 10), Fraction(2, 10)
"""Shares of alpha: of own_{K-1} and of the cascade beside own_K, of own of a cheap model beside the
cascade."""
IN_RESERVE = Fraction(1, 10)
"""Share of own_K beside a cascade before a dear last model; measured, `routing.core.every_score.reserve`."""
DEVIATIONS = 0.6
"""How many standard deviations the forecast errors of the cascade that is taken stay below the limit."""

Planned = tuple[str, tuple[int, ...], Fraction | None]
"""Shape, models and share of alpha of a chain; the first model of a cascade is left open."""


@dataclass(frozen=True)
class ScoreChains:
    """What a run of `every_score` freezes before its draw.

    Attributes
    ----------
    scored : K bools
        Which models have a score of their own that may decide: the first one alone where the last has none.
    chains : tuple
        The main chain first: the one that gets what the others leave of alpha.
    lazy : bool
        Whether the later models are called on asked items only as policies are reached (rho >= .05).
    """

    scored: tuple[bool, ...]
    chains: tuple[ScoreChain, ...]
    lazy: bool

    @property
    def main(self) -> ScoreChain:
        return self.chains[0]

    @property
    def reserve(self) -> int | None:
        """Place of the chain of a dear last model alone, which is tested only where that pays."""
        last = (len(self.scored) - 1,)
        found = [number for number, chain in enumerate(self.chains) if number and chain.models == last]
        return found[0] if self.lazy and found else None

    @property
    def on_all_asked(self) -> tuple[int, ...]:
        """Places of the later models that the tests need on every asked item, whatever the labels say."""
        tested = [chain for number, chain in enumerate(self.chains) if number != self.reserve]
        if self.lazy:
            needed = {chain.models[0] for chain in tested}
        else:
            needed = {model for chain in tested for model in chain.models}
        return tuple(sorted(needed - {0}))

    def fault(self, plan: Plan) -> str:
        """Why these are not the chains that `every_score` tests for ``plan``; '' if they are.

        What counts is which chains there are and their shares of alpha: all chains of the rule, and which
        of the models with a score is the first of the cascade may be any, as may their thresholds.
        """
        models, prices = plan.sources - 1, _prices(plan)
        if len(self.scored) != models or not self.scored[0]:
            return f"it is said of {len(self.scored)} models whether they have scores, of {models}"
        for chain in self.chains:
            if fault := chain.fault(models):
                return f"chain {chain.name!r}: {fault}"
            needed = (0,) if chain.shape == FIRST_SCORE else chain.models
            if not all(self.scored[k] for k in needed):
                return f"chain {chain.name!r} is on the score of a model that has none"
        told = [_planned(chain) for chain in self.chains]
        if told != chains_of_the_rule(self.scored, prices, few=few_labels(plan)):
            return "which chains there are and their shares of alpha are not those of the rule"
        if self.lazy != (prices[-1] >= DEAR):
            return "whether the last model is dear does not follow from the costs"
        return ""


def few_labels(plan: Plan) -> bool:
    """Whether a share of alpha is too little for a chain beside the main one: no error may show up at it."""
    asked = floor(plan.expected_labels)
    return most_errors(plan, asked, BEFORE_LAST * plan.exact_alpha) < 0


def chains_of_the_rule(scored: Sequence[bool], prices: Sequence[Fraction], *, few: bool) -> list[Planned]:
    """The chains that `every_score` tests, the main one first.

    Unlike there, a small share is kept for the last model alone beside a cascade before a dear one
    (`routing.core.every_score.reserve`); and where the labels are so ``few`` that one chain alone can be
    tested, this is the cascade, which starts where both models are sure and agree: the last model alone ends
    at its first confident error.
    """
    last = len(scored) - 1
    if last == 0:
        return [(OWN, (0,), None)]
    if not scored[last]:
        return [(FIRST_SCORE, tuple(range(len(scored))), None)]
    before = [k for k in range(last) if scored[k]]
    if prices[last] >= DEAR:
        cheap = [k for k in before if prices[k] < DEAR]
        alone = [(OWN, (k,), CHEAP) for k in cheap[-1:]]
        return [(CASCADE, (last,), None), *alone, (OWN, (last,), IN_RESERVE)]
    if few:
        return [(CASCADE, (last,), None), (OWN, (last,), BEFORE_LAST)]
    beside = [(OWN, (before[-1],), BEFORE_LAST), (CASCADE, (last,), CASCADE_BESIDE)]
    return [(OWN, (last,), None), *beside]


def _planned(chain: ScoreChain) -> Planned:
    return chain.shape, chain.models[1:] if chain.shape == CASCADE else chain.models, chain.share


def build_score_chains(
    plan: Plan,
    *,
    u: ArrayLike,
    v: ArrayLike,
    usable: ArrayLike | None = None,
    pilot: PilotData | None = None,
    reference: Bools | None = None,
) -> ScoreChains:
    """The chains that `every_score` tests, with their shares of alpha.

    Parameters
    ----------
    u, v : (N,)
        Uncertainties and tie-breaks of the first model on the pool, in pool order.
    usable : (N,), optional
        Whether its answer can be used; all can by default.
    pilot
        What all models said about the pilot, with ``own_scores`` (NaN where there is none).  Without one, or
        without a score of the last model, there is one chain, on the first model's score alone.
    reference : (N,), optional
        As in `build_chains`: required for the target "population", where it leaves out the calibration set.

    Raises
    ------
    ChainError
        Shapes, scores or the reference do not fit the plan.
    """
    return chains_from(ChainBuilder.of(plan, u=u, v=v, usable=usable, pilot=pilot, reference=reference))


def chains_from(builder: ChainBuilder) -> ScoreChains:
    """`build_score_chains` on what was gathered already."""
    planned = chains_of_the_rule(builder.scored, builder.prices, few=few_labels(builder.plan))
    return ScoreChains(builder.scored, tuple(builder.chain(*chain) for chain in planned), builder.dear)


def _prices(plan: Plan) -> list[Fraction]:
    """c_k / c_h of each model."""
    return [Fraction(cost) / Fraction(plan.costs[-1]) for cost in plan.costs[:-1]]


def _scored(plan: Plan, pilot: PilotData | None) -> tuple[bool, ...]:
    """Which models have a score of their own that may decide; the first always has one.

    Where the last has none, no later one's does: as in the routing, their answers then need no score.
    """
    later = plan.sources - 2
    if pilot is None or pilot.own_scores is None or np.isnan(pilot.own_scores[:, -1]).all():
        return (True, *[False] * later)
    return (True, *(not np.isnan(column).all() for column in pilot.own_scores.T[1:]))


class ChainBuilder:
    """What a chain may look at: the first model's scores on the pool, and the pilot.

    Attributes
    ----------
    scored : K bools
        As of `ScoreChains`.
    prices : K fractions
        c_k / c_h, from the plan.
    quantiles : mapping
        Of each model with a score: of the first in the pool, of later ones in the pilot.
    """

    def __init__(self, plan: Plan, pilot: PilotData | None, pool: Quantiles, slices: Bins) -> None:
        self.plan, self.pilot, self.slices = plan, pilot, slices
        self.prices = _prices(plan)
        self.scored = _scored(plan, pilot)
        self.quantiles = {0: pool}
        if pilot is None:
            return
        own = np.full(pilot.answers.shape, np.nan) if pilot.own_scores is None else pilot.own_scores.copy()
        own[:, 0] = pilot.u
        answers = pilot.answers.copy()
        answers[np.isnan(own) & np.array(self.scored)] = None  # an answer without its score is not usable
        unusable = np.array([[answer is None for answer in row] for row in answers], dtype=np.bool_)
        self.u = np.where(unusable, 1.0, own)
        self.answers = final_answers(answers)
        ties = np.where(unusable, V_MAX, 0)
        for k in range(1, len(self.scored)):
            if self.scored[k]:
                keys = pack(self.u[:, k], ties[:, k])
                self.quantiles[k] = PilotQuantiles(keys, whole_ties=plan.target == "population")

    @property
    def dear(self) -> bool:
        """Whether rho = c_K / c_h is at least .05, so that the last model is called lazily."""
        return self.prices[-1] >= DEAR

    @classmethod
    def of(
        cls,
        plan: Plan,
        *,
        u: ArrayLike,
        v: ArrayLike,
        usable: ArrayLike | None = None,
        pilot: PilotData | None = None,
        reference: Bools | None = None,
    ) -> ChainBuilder:
        """Parameters and errors as of `build_score_chains`."""
        scores, ties = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.int64)
        good = np.ones(scores.shape, dtype=np.bool_) if usable is None else np.asarray(usable, dtype=np.bool_)
        if not good.shape == scores.shape == ties.shape:
            raise ChainError(
                f"{scores.size} scores, {ties.size} tie-breaks and {good.size} marks of usable answers came"
            )
        scores, ties = np.where(good, scores, 1.0), np.where(good, ties, V_MAX)
        slices = cut_slices(plan, u=scores, v=ties, reference=reference)
        if pilot is not None and not len(pilot.u):
            pilot = None
        if pilot is not None and (problem := pilot.problem(plan.sources)):
            raise ChainError(problem)
        population = plan.target == "population"
        if population and reference is not None:
            scores, ties = scores[reference], ties[reference]
        return cls(plan, pilot, PoolQuantiles(pack(scores, ties), whole_ties=population), slices)

    def chain(self, shape: str, models: tuple[int, ...], share: Fraction | None) -> ScoreChain:
        """The chain of the rule; of a cascade the first model is chosen here."""
        if shape == OWN:
            return replace(self.own(models[0]), share=share)
        if shape == CASCADE:
            return replace(self.cascade(lazy=self.dear), share=share)
        return first_score_chain(self.plan, self.slices, self.pilot, start=self.dear)

    def own(self, model: int) -> ScoreChain:
        """own_k: 201 thresholds at evenly spread quantiles; the last one takes everything."""
        thresholds = self.quantiles[model].at(np.linspace(0.0, 1.0, POLICIES))
        return ScoreChain(f"model {model + 1}", OWN, (model,), thresholds[:, None])

    def cascade(self, *, lazy: bool) -> ScoreChain:
        """The cascade of the model of least forecast cost before the last one, its own price
        on every item included; with ``lazy`` its first model starts alone.
        """
        prices, last = [float(price) for price in self.prices], len(self.prices) - 1
        found = {k: self._forecast(k) for k in range(last) if self.scored[k]}
        paths = {k: forecast.path(prices[-1]) for k, forecast in found.items()}
        # The first model is paid on every item whatever the policy.
        k = min(paths, key=lambda k: (self._least_cost(paths[k]) + (prices[k] if k else 0.0), k))
        path = paths[k]
        if lazy:
            whole = self.plan.pool_size * self.plan.loss_function().bound
            x = found[k].start(path, budget_of(self.plan) / whole)
            path = found[k].with_start(path, prices[-1], x)
        first, final = self.quantiles[k], self.quantiles[last]
        thresholds = np.column_stack([first.at(path.t1), first.at(path.th), final.at(path.t2)])
        return ScoreChain(f"model {k + 1} before {last + 1}", CASCADE, (k, last), thresholds)

    def _forecast(self, model: int) -> CascadeForecast:
        loss, last = self.plan.loss_function(), len(self.scored) - 1
        return CascadeForecast(
            PilotPair(
                first=self.quantiles[model].ranks(self.u[:, model]),
                last=self.quantiles[last].ranks(self.u[:, last]),
                u_first=self.u[:, model],
                u_last=self.u[:, last],
                differs=disagreement(self.answers[:, model], self.answers[:, last], loss) / loss.bound,
            )
        )

    def _least_cost(self, path: CascadePath) -> float:
        """Least forecast cost among policies with F n / N <= c + 1/2 - .6 sqrt(c + 1/2)."""
        asked = floor(self.plan.expected_labels)
        fits = path.errors * asked <= likely_errors(self.plan, asked, self.plan.exact_alpha)
        return float(path.cost[fits].min(initial=1.0))


def called_where_needed(plan: Plan) -> tuple[int, ...]:
    """Places of the later models that a run of this plan need not call on every asked item: where the last
    one is dear, all but the dearest that is not, whose own chain is always tested (`on_all_asked`).
    """
    prices = _prices(plan)
    if plan.rule != every_score.RULE.name or prices[-1] < DEAR:
        return ()
    cheap = [place for place, price in enumerate(prices) if price < DEAR]
    return tuple(place for place in range(1, len(prices)) if place not in cheap[-1:])


def likely_errors(plan: Plan, asked: int, level: Fraction) -> float:
    """c + 1/2 - .6 sqrt(c + 1/2): what a policy may be expected to show so that it passes at ``level``.

    c is c_s for ``asked`` labels; for another bound the errors that it lets pass.
    """
    most = most_errors(plan, asked, level)
    return most + 0.5 - DEVIATIONS * sqrt(most + 0.5) if most >= 0 else 0.0


def most_errors(plan: Plan, asked: int, level: Fraction) -> int:
    """c: the most errors among ``asked`` labels with which a policy passes at ``level``; -1: none passes."""
    loss, none = plan.loss_function(), np.zeros(1)
    evidence = Evidence(
        none,
        none,
        asked,
        plan.m,
        plan.exact_p,
        plan.pool_size,
        loss.bound,
        loss.binary,
        p_min=None if plan.p_min is None else Fraction(plan.p_min),
    )
    return plan.target_rule().allowed(
        bound=plan.bound_rule(), evidence=evidence, epsilon=plan.risk_limit, level=level
    )
