"""The rule `every_score` as a method of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.every_score.build import ChainBuilder, ScoreChains, chains_from
from routing.core.every_score.chain import ScoreChain
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import PilotCosts, select_every_score
from routing.core.experiment.split import Split
from routing.core.plan import Plan


@dataclass(frozen=True)
class ScoreDecision:
    """One policy on every model's own score.

    Attributes
    ----------
    chain : ScoreChain
        Of one policy.
    scored : K bools
    pilot, asked_calls
        As of `Decision`.
    """

    chain: ScoreChain
    scored: tuple[bool, ...]
    pilot: bool
    asked_calls: Bools | None

    labelled = None
    looked_at = frozenset({0})

    @property
    def models(self) -> tuple[int, ...]:
        return tuple(range(len(self.scored)))

    def route(self, u: Floats, v: Ints, usable: Bools) -> tuple[Ints, Bools]:
        """Who labels (n,), and who was run (n, K): the first model and the one whose key decides first on
        all items, the last one where the policy calls it.
        """
        items = ScoredItems.of(u, v, usable, scored=self.scored)
        ran = np.zeros(usable.shape, dtype=np.bool_)
        ran[:, [0, self.chain.models[0]]] = True
        for model, called in self.chain.calls(items).items():
            ran[:, model] |= called[0]
        return self.chain.delivers(items)[0].astype(np.int64), ran


def decide_by_every_score(split: Split, plan: Plan) -> ScoreDecision:
    """What a run of ``plan`` would choose on this draw."""
    # The start of a cascade looks at epsilon, so each has its own chains.
    key = ("every_score", plan.target, plan.epsilon)
    return decide_with(split, plan, split.once(key, lambda: score_chains_of(split, plan)))


def decide_with(split: Split, plan: Plan, chains: ScoreChains) -> ScoreDecision:
    """What the tests of these chains choose on this draw."""
    items = _items(split, chains.scored)
    asked = split.asked_items
    # A loss of somebody who steps in is not the model's own, which alone is asked for here.
    losses = np.where(split.table.usable[asked], split.table.loss[asked], 0.0)
    seen = AskedItems.of(
        items.rows(asked),
        losses,
        drawn=len(split.drawn),
        places=np.flatnonzero(split.asked),
        weights=None if isinstance(split.p, float) else 1.0 / split.p[split.asked],
    )
    pilot = split.pilot_items(plan.target, plan.pilot) if split.table.answers is not None else asked[:0]
    outside = pilot[~np.isin(pilot, asked)]
    chosen = select_every_score(plan, chains, seen, PilotCosts.of(plan, chains, items.rows(outside)))
    policy = chosen.chain.only(chosen.index)
    return ScoreDecision(policy, chains.scored, len(pilot) > 0, chosen.called)


def score_chains_of(split: Split, plan: Plan) -> ScoreChains:
    """The chains that a run of ``plan`` would freeze."""
    return chains_from(chain_builder_of(split, plan))


def chain_builder_of(split: Split, plan: Plan) -> ChainBuilder:
    """What these chains may look at."""
    table = split.table
    return ChainBuilder.of(
        plan,
        u=table.u[:, 0],
        v=split.v,
        usable=table.usable[:, 0],
        pilot=split.pilot(plan.target, plan.pilot),
        reference=split.outside if plan.target == "population" else None,
    )


def _items(split: Split, scored: tuple[bool, ...]) -> ScoredItems:
    table = split.table
    return split.once(
        ("scored items", scored), lambda: ScoredItems.of(table.u, split.ties, table.usable, scored=scored)
    )
