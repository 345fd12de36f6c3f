"""Every rule that an experiment can run, under one interface: certifying rules, the paper's, baselines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.baselines import BASELINES, Baseline, Labelled
from routing.core.bins import Bins
from routing.core.bounds import BOUNDS
from routing.core.cascade import Decision
from routing.core.certify import select
from routing.core.chain import Chain, build_chains, cut_slices
from routing.core.compare import Comparison, compare_losses
from routing.core.experiment.every_score import decide_by_every_score
from routing.core.experiment.measure import Decides
from routing.core.experiment.split import Split
from routing.core.experiment.table import Table
from routing.core.experiment.with_expert import (
    WITH_EXPERT,
    ExpertDecision,
    decide_with_expert,
    refusal_with_expert,
)
from routing.core.grid import score_grid
from routing.core.plan import Plan, PlanError, validate
from routing.core.registry import Registry
from routing.core.rules import RULES, every_score, split_fixed_sequence
from routing.core.targets import TARGETS

PAPER_BOUND = "clt"
"""With which the paper's rules run where no bound is asked for, as in its experiments."""


class Method(Protocol):
    """One rule of an experiment."""

    @property
    def name(self) -> str: ...

    def holds_level(self, target: str) -> bool:
        """Whether it keeps P(error > epsilon) <= alpha, by proof."""

    def bounds(self, requested: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the bounds to run it with; "" stands for the default of the target."""

    def refusal(self, table: Table, plan: Plan) -> str:
        """Why it cannot run on the table with this plan, in a sentence; '' if it can."""

    def decide(self, split: Split, plan: Plan) -> Decides | ExpertDecision: ...


@dataclass(frozen=True)
class Certifying:
    """A rule that holds its level: chains fixed without the draw, tested on it."""

    name: str

    def holds_level(self, target: str) -> bool:
        return True

    def bounds(self, requested: tuple[str, ...]) -> tuple[str, ...]:
        return requested or ("",)

    def refusal(self, table: Table, plan: Plan) -> str:
        try:
            validate(plan)
        except PlanError as error:
            return str(error)
        return ""

    def decide(self, split: Split, plan: Plan) -> Decides:
        if self.name == every_score.RULE.name:
            return decide_by_every_score(split, plan)
        # Chains depend on neither epsilon nor bound: one set serves all of a draw.
        if self.name == split_fixed_sequence.RULE.name:
            slices = split.once(("slices", plan.target), lambda: _slices(split, plan))
            return Decision.of_thresholds(select(plan, (), split.losses, slices=slices).policy.thresholds)
        chains = split.once((self.name, plan.target), lambda: chains_of(split, plan))
        chosen = select(plan, chains, split.losses).policy
        return Decision.of_thresholds(chosen.thresholds, pilot=plan.pilot > 0)


def _reference(split: Split, plan: Plan) -> Bools | None:
    return split.outside if plan.target == "population" else None


def chains_of(split: Split, plan: Plan) -> tuple[Chain, ...]:
    """The chains that a run of ``plan`` would test on this draw."""
    return build_chains(
        plan,
        u=split.table.u[:, 0],
        v=split.v,
        pilot=split.pilot(plan.target, plan.pilot),
        reference=_reference(split, plan),
    )


def _slices(split: Split, plan: Plan) -> Bins:
    return cut_slices(plan, u=split.table.u[:, 0], v=split.v, reference=_reference(split, plan))


@dataclass(frozen=True)
class OfThePaper:
    """`pointwise_argmin` or `lexicographic`: for comparison, does not hold its level."""

    name: str

    def holds_level(self, target: str) -> bool:
        return False

    def bounds(self, requested: tuple[str, ...]) -> tuple[str, ...]:
        return requested or (PAPER_BOUND,)

    def refusal(self, table: Table, plan: Plan) -> str:
        bound = BOUNDS.get(plan.bound)
        known = {"binary": table.binary, "constant_p": table.p is None}
        refusals = [bound.refusal(target=target.name, **known) for target in TARGETS]
        # A bound that never certifies is refused everywhere, and is what these rules are reproduced with.
        return str(refusals[-1]) if all(refusals) and bound.certifies else ""

    def decide(self, split: Split, plan: Plan) -> Decision:
        both = split.once(("paper", plan.bound, plan.epsilon), lambda: _comparisons(split, plan))
        chosen = next(one for one in both if one.rule == self.name)
        return Decision.of_thresholds(chosen.thresholds)


def _comparisons(split: Split, plan: Plan) -> list[Comparison]:
    table, drawn = split.table, split.drawn
    u, costs = table.u[drawn, 0], table.path_cost[drawn]
    grid = split.once("grid", lambda: score_grid(plan, u, split.losses, costs=costs))
    return compare_losses(plan, u, split.losses, bound=plan.bound, grid=grid)


@dataclass(frozen=True)
class FromLiterature:
    """A baseline."""

    baseline: Baseline

    @property
    def name(self) -> str:
        return self.baseline.name

    def holds_level(self, target: str) -> bool:
        """What is promised from labels of its own choice holds for the pool that it chose from."""
        return self.baseline.holds_level and not (self.baseline.own_sample and target == "population")

    def bounds(self, requested: tuple[str, ...]) -> tuple[str, ...]:
        """Its own, whatever is asked for."""
        return (self.baseline.bound,)

    def refusal(self, table: Table, plan: Plan) -> str:
        refusal = self.baseline.refusal(scored=table.scored, binary=table.binary, constant_p=table.p is None)
        return "" if refusal is None else str(refusal)

    def decide(self, split: Split, plan: Plan) -> Decision:
        return split.once((self.name, plan.epsilon), lambda: self._decide(split, plan))

    def _decide(self, split: Split, plan: Plan) -> Decision:
        own = self.baseline.own_sample
        sample = split.once(("labelled", own), lambda: _everything(split) if own else _drawn(split))
        decision = self.baseline.decide(sample, epsilon=float(plan.epsilon), alpha=float(plan.alpha))
        rows = decision.labelled
        return decision if rows is None else replace(decision, labelled=split.shuffled[rows])


def _drawn(split: Split) -> Labelled:
    p = np.broadcast_to(np.asarray(split.p, dtype=np.float64), split.drawn.shape)
    return _labelled(split.table, split.drawn, asked=split.asked, p=p)


def _everything(split: Split) -> Labelled:
    """The whole pool in random order, for a method that chooses by itself whom it asks about what."""
    size = split.table.size
    return _labelled(split.table, split.shuffled, asked=np.ones(size, np.bool_), p=np.ones(size))


def _labelled(table: Table, items: Ints, *, asked: Bools, p: Floats) -> Labelled:
    return Labelled(
        u=table.u[items],
        asked=asked,
        p=p,
        loss=table.final_loss[items, :-1],
        alone=np.where(table.usable[items], table.loss[items], 0.0),
        cost=table.path_cost[items],
        loss_bound=table.loss_bound,
        binary=table.binary,
        constant_p=table.p is None,
        pool_size=table.size,
    )


@dataclass(frozen=True)
class WithExpert:
    """The reference `expert`, with people as a source that may err."""

    name: str = WITH_EXPERT

    def holds_level(self, target: str) -> bool:
        return True

    def bounds(self, requested: tuple[str, ...]) -> tuple[str, ...]:
        """Its own, whatever is asked for."""
        return ("",)

    def refusal(self, table: Table, plan: Plan) -> str:
        return refusal_with_expert(table, plan)

    def decide(self, split: Split, plan: Plan) -> ExpertDecision:
        return decide_with_expert(split, plan)


METHODS: Registry[Method] = Registry(
    "rule",
    *(Certifying(rule.name) if rule.holds_level else OfThePaper(rule.name) for rule in RULES),
    *(FromLiterature(baseline) for baseline in BASELINES),
    WithExpert(),
)
