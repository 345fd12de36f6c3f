"""People who make mistakes, in worlds where the truth is known: what a run with each reference makes of it.

`independent`: each label is wrong with the same probability.  `shared`: 60 % of the mistakes copy one of the
best model's.  `hard`: mistakes grow with the first model's uncertainty.  The expert gives the truth, but for
slips.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from routing.core.calibration import sorted_losses
from routing.core.certify import select
from routing.core.chain import build_chains
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.keys import count_at_or_below, pack, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.plan import Plan
from routing.core.reference.chain import MODELS, ReferenceChains, build_reference_chains
from routing.core.reference.forecast import PeopleForecast, model_costs
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.select import ReferenceSelection, select_with_expert
from routing.core.reference.sources import CHECKED, EXPERT, PERSON, AskedLabels
from testbed.level import Summed
from testbed.settings import Setting, World

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

INDEPENDENT, SHARED, HARD = "independent", "shared", "hard"
KINDS = (INDEPENDENT, SHARED, HARD)
COPIED = 0.6
"""Part of the shared mistakes that copy the best model's."""
EXPERT_COST = 3
"""Of one label, in labels by a person."""
REFERENCES = ("1", "0.5", "settled")
"""The share r of rechecked items where the reference is an expert, or two people and a decider."""
TODAY, DRIFT = "person", "drift"
"""Negative controls: one person's label counts as right; people err on 15 % once the calibration is over."""
DRIFTED = 0.15
WRONG = 9
"""Wrong answers there are."""


def mistakes(world: World, error: float, kind: str, rng: np.random.Generator) -> Ints:
    """A person's answers (N,): 0 is right."""
    size = len(world.u)
    best = world.answers[:, -1].astype(np.int64)
    chance = np.full(size, error)
    copied = np.zeros(size, dtype=np.bool_)
    if kind == SHARED:
        copies = best != 0
        rate = max(float(copies.mean()), 1e-12)
        copied = copies & (rng.random(size) < COPIED * error / rate)
        chance = np.full(size, (1 - COPIED) * error)
    elif kind == HARD:
        chance = np.minimum(error * hardness(world.u), 1.0)
    wrong = np.where(rng.random(size) < chance, rng.integers(1, WRONG + 1, size), 0)
    return np.where(copied, best, wrong)


def hardness(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much more often than on average people err, with mean 1 for uniform scores."""
    return 2 * u


@dataclass
class HumanCount(Summed):
    """What became of some draws: certificates that are false against the reference and against the truth."""

    draws: int = 0
    certified: int = 0
    false: int = 0
    untrue: int = 0
    cost: float = 0.0
    alone: int = 0
    """How often the chain of models and expert was chosen."""


class HumanDraw:
    """A pool, its draw and its pilot, and what people and expert would say of every item."""

    def __init__(
        self, setting: Setting, error: float, kind: str, rng: np.random.Generator, *, slips: float = 0.0
    ) -> None:
        self.setting, self.error, self.kind, self.rng = setting, error, kind, rng
        self.world = setting.draw(rng)
        size = setting.size
        drawn = rng.permutation(size)[: setting.m]
        self.asked = drawn[rng.random(setting.m) < float(setting.p)]
        self.plan = setting.plan("dataset")
        self.pilot = rng.permutation(size)[: self.plan.pilot]
        answers = self.world.answers
        if answers.dtype == object:
            # Of a table only who is right is known, and whether the models agree.
            right = self.world.losses == 0
            alike = answers == answers[:, -1:]
            answers = np.where(right, 0, np.where(alike, 1, 2 + np.arange(answers.shape[1])))
        self.answers: Ints = answers.astype(np.int64)
        self.person = mistakes(self._as_world(), error, kind, rng)
        slip = rng.random(size) < slips
        self.expert: Ints = np.where(slip, rng.integers(1, WRONG + 1, size), 0)
        blank = self.world.blank
        self.blank: Bools = np.zeros(size, dtype=np.bool_) if blank is None else blank
        self.was_asked = np.zeros(size, dtype=np.bool_)
        self.was_asked[self.asked] = True
        self._chains: dict[bool, ReferenceChains] = {}

    def _as_world(self) -> World:
        world = self.world
        return World(world.u, world.v, self.answers, world.losses)

    def pilot_data(self) -> PilotData | None:
        if not len(self.pilot):
            return None
        own = None if self.world.own is None else self.world.own[self.pilot]
        texts = self.answers[self.pilot].astype(str).astype(object)
        return PilotData(self.world.u[self.pilot], self.world.v[self.pilot], texts, own)

    def count(self, reference: str) -> HumanCount:
        """One draw under one reference; `TODAY` and `DRIFT` are the negative controls."""
        if reference in (TODAY, "settled"):
            return self._settled(two=reference == "settled")
        if reference == DRIFT:
            return self._with_expert("0.5", drift=True)
        return self._with_expert(reference)

    # --- the reference `expert` ---

    def expert_plan(self, share: str) -> ExpertPlan:
        cost = Decimal(self.plan.costs[-1]) * EXPERT_COST
        return ExpertPlan(self.plan, cost, Decimal(share))

    def chains(self, run: ExpertPlan) -> ReferenceChains:
        """Which share is rechecked makes no difference to them, but for the chain on every score."""
        by_score = run.all_rechecked and self.world.own is not None
        if by_score not in self._chains:
            self._chains[by_score] = build_reference_chains(
                run, u=self.world.u, v=self.world.v, pilot=self.pilot_data(), people=PeopleForecast()
            )
        return self._chains[by_score]

    def labels(self, run: ExpertPlan) -> AskedLabels:
        """What is seen of the asked items."""
        rows = self.asked
        person, models, expert = self.person[rows], self.answers[rows], self.expert[rows]
        return AskedLabels.of(
            pack(self.world.u[rows], self.world.v[rows]),
            models=(models != expert[:, None]).astype(np.float64),
            usable=np.ones(models.shape, dtype=np.bool_),
            person=(person != expert).astype(np.float64),
            answered=np.ones(len(rows), dtype=np.bool_),
            looks=person != models[:, -1],
            labelled=~self.blank[rows],
            alike=(models == person[:, None]).all(axis=1),
            rechecked=run.rechecked(len(rows)),
        )

    def scored(self, chains: ReferenceChains) -> tuple[ScoredItems, AskedItems] | None:
        if chains.scores is None or self.world.own is None:
            return None
        u = np.column_stack([self.world.u, self.world.own[:, 1:]])
        items = ScoredItems.of(u, self.world.ties, scored=chains.scores.scored)
        rows, nobody = self.asked, self.blank[self.asked, None]
        losses = (self.answers[rows] != self.expert[rows, None]).astype(np.float64)
        upper, lower = np.where(nobody, 1.0, losses), np.where(nobody, 0.0, losses)
        return items, AskedItems.of(items.rows(rows), upper, lower, drawn=self.setting.m)

    def _with_expert(self, share: str, *, drift: bool = False) -> HumanCount:
        run = self.expert_plan(share)
        chains, labels = self.chains(run), self.labels(run)
        scored = self.scored(chains)
        spent = model_costs(run, chains.slices, self.pilot_data())
        chosen = select_with_expert(run, chains, labels, spent, scored=scored[1] if scored else None)
        source = chosen.sources(pack(self.world.u, self.world.v), scored[0] if scored else None)
        seen = np.zeros(len(source), dtype=np.bool_)
        seen[self.asked] = labels.seen
        person = self.person
        if drift:
            later = mistakes(self._as_world(), DRIFTED, INDEPENDENT, self.rng)
            person = np.where(self.was_asked, person, later)
        given = self._delivered(source, person)
        blank = self.blank & self._at_expert(source, person)
        given = np.where(seen & ~self.blank, self.expert, given)
        good = (given == self.expert) | blank
        true = (given == 0) | blank
        return self._count(chosen, good, true, self._paid(chosen, source, seen, person, scored))

    def _delivered(self, source: Ints, person: Ints) -> Ints:
        """Each item's label by its source."""
        models, best = self.answers.shape[1], self.answers[:, -1]
        given = np.where(source == models + PERSON, person, self.expert)
        checked = np.where(person == best, person, self.expert)
        given = np.where(source == models + CHECKED, checked, given)
        for model in range(models):
            given = np.where(source == model, self.answers[:, model], given)
        return given

    def _at_expert(self, source: Ints, person: Ints) -> Bools:
        """The items whose source asks the expert."""
        models = self.answers.shape[1]
        looks = (source == models + CHECKED) & (person != self.answers[:, -1])
        return looks | (source == models + EXPERT)

    def _paid(
        self,
        chosen: ReferenceSelection,
        source: Ints,
        seen: Bools,
        person: Ints,
        scored: tuple[ScoredItems, AskedItems] | None,
    ) -> float:
        """Everything paid per item, in labels by a person; every item once per source."""
        models = self.answers.shape[1]
        prices = np.array([float(cost) for cost in self.plan.costs])
        paid = np.zeros((len(source), models + 2), dtype=np.bool_)
        paid[:, 0] = True
        paid[self.pilot, :models] = True
        paid[self.asked, :models] = True
        routed = ~self.was_asked
        if chosen.by_scores and chosen.scores is not None and scored is not None:
            policy = chosen.scores.chain.only(chosen.index)
            paid[:, policy.models[0]] = True
            for model, called in policy.calls(scored[0]).items():
                paid[:, model] |= called[0] & routed
        else:
            for model in range(1, models):
                paid[:, model] |= routed & (source == model)
            paid[:, models - 1] |= routed & (source == models + CHECKED)
        human = (source == models + PERSON) | (source == models + CHECKED)
        paid[:, models] = self.was_asked | (routed & human)
        paid[:, models + 1] = seen | (self._at_expert(source, person) & (routed | seen))
        # An asked item that nobody saw goes to the expert where its source does.
        paid[:, models + 1] |= self.was_asked & (source == models + EXPERT)
        whole = np.append(prices, prices[-1] * EXPERT_COST)
        return float((paid * whole).sum() / (len(source) * prices[-1]))

    # --- people's own word ---

    def _settled(self, *, two: bool) -> HumanCount:
        """Today's rule with one person's label, or with that of two people and a decider, as the truth."""
        y, each = self.person, 1.0
        if two:
            world = self._as_world()
            second, third = (mistakes(world, self.error, self.kind, self.rng) for _ in range(2))
            y = np.where(self.person == second, self.person, third)
            each = 2 + float(np.mean(self.person != second))
        plan = self.plan if not two else self._plan_at(each)
        free = np.ones(len(y), dtype=np.bool_)
        chains = build_chains(plan, u=self.world.u, v=self.world.v, pilot=self.pilot_data(), reference=free)
        rows = self.asked
        losses = (self.answers[rows] != y[rows, None]).astype(np.float64)
        seen = sorted_losses(self.world.u[rows], self.world.v[rows], losses, losses, drawn=self.setting.m)
        chosen = select(plan, chains, seen)
        keys = pack(self.world.u, self.world.v)
        limits = pack_thresholds([chosen.policy.thresholds])[0]
        source = np.sum(keys[:, None] > limits, axis=1)
        assert count_at_or_below(np.sort(keys), limits[:1])[0] == np.count_nonzero(source == 0)
        models = self.answers.shape[1]
        given = y.copy()
        for model in range(models):
            given = np.where(~self.was_asked & (source == model), self.answers[:, model], given)
        prices = np.array([float(cost) for cost in plan.costs])
        paid = np.zeros((len(y), models + 1), dtype=np.bool_)
        paid[:, 0] = True
        paid[self.pilot, :models] = True
        paid[self.asked] = True
        for model in range(1, models + 1):
            paid[:, model] |= source == model
        cost = float((paid * prices).sum() / (len(y) * float(self.plan.costs[-1])))
        found = chosen.index > 0
        wrong, untrue = np.count_nonzero(given != y), np.count_nonzero(given)
        budget = self.plan.budget
        # "People label everything" breaks no promise about people's labels, and may break one about truth.
        return HumanCount(1, int(found), int(found and wrong > budget), int(untrue > budget), cost)

    def _plan_at(self, each: float) -> Plan:
        """The plan with what one settled label costs."""
        costs = (*self.setting.costs[:-1], f"{float(self.setting.costs[-1]) * each:.12g}")
        return self.setting.plan("dataset", costs=costs)

    def _count(self, chosen: ReferenceSelection, good: Bools, true: Bools, cost: float) -> HumanCount:
        budget = self.plan.budget
        found = chosen.index > 0
        false = found and np.count_nonzero(~good) > budget
        untrue = np.count_nonzero(~true) > budget
        return HumanCount(
            1,
            int(found),
            int(false),
            int(untrue),
            cost,
            int((found and chosen.chain == MODELS) or chosen.by_scores is not None),
        )
