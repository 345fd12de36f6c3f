"""What each answer to "whose label is right" will probably cost, from a pilot that nobody labelled.

People's error has to be assumed, or taken from an earlier run: models cannot show it.  As `core.forecast`,
this promises nothing; it is there to choose a reference before money is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.chain import cut_slices, number_of_chains
from routing.core.forecast import forecast
from routing.core.forecast_paths import like_pilot, paths_of
from routing.core.outlook import smallest_n
from routing.core.pilot import PilotData
from routing.core.pilot_losses import FLOOR
from routing.core.plan import Plan
from routing.core.reference.chain import ALL, MODELS, NO_PERSON, SliceChain, hull_chain
from routing.core.reference.forecast import BEST_MODEL, CHEAP_MODEL, Foretold, PeopleForecast, foretell
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.recheck import judge_weighted, recheck_levels
from routing.core.reference.sources import CHECKED, EXPERT, PERSON
from routing.core.reference.words import settled_cost
from routing.core.rules import fixed_sequence
from routing.core.targets.dataset import Levels

PEOPLES_WORD, SETTLED, WITH_PEOPLE, ALONE, EVERYTHING = "person", "settled", "expert", "alone", "everything"
NAMES = (PEOPLES_WORD, SETTLED, WITH_PEOPLE, ALONE, EVERYTHING)
COUNTS_PEOPLE = (WITH_PEOPLE, ALONE, EVERYTHING)
"""Ways whose promise counts the mistakes of people, too."""
INDEPENDENT, SHARED = 0.0, 0.6
ASSUMED = tuple(
    PeopleForecast(error, shared) for error in (0.02, 0.05, 0.08) for shared in (INDEPENDENT, SHARED)
)
"""What is assumed where nobody knows: each error alone, and with most of it the best model's, too."""
DRAWS, SEED = 40, 20_261_124
"""Calibrations of a foretold world that are simulated."""


@dataclass(frozen=True)
class Way:
    """A reference, and what a run with it will probably take.

    Attributes
    ----------
    name : str
    cost : float
        Of everything, in the currency of the plan.
    people, expert : float
        Labels that annotators and the expert give.
    """

    name: str
    cost: float
    people: float
    expert: float

    @property
    def counts_people(self) -> bool:
        return self.name in COUNTS_PEOPLE


def ways(run: ExpertPlan, pilot: PilotData, wrong: Floats, people: PeopleForecast) -> tuple[Way, ...]:
    """Each reference, if annotators err as ``people`` says; those that can certify nothing are left out.

    Parameters
    ----------
    run
        Its plan is the one with one person's word, the labels of which cost c_h.
    wrong : (g, K)
        As from `core.forecast_paths.suspected`.
    """
    return tuple(
        way
        for way in (
            _by_people(PEOPLES_WORD, run.plan, pilot, against_person(wrong, people)),
            _settled(run.plan, pilot, wrong, people),
            _with_people(run, pilot, people),
            _alone(run, pilot, people),
            Way(EVERYTHING, run.plan.pool_size * float(run.expert_cost), 0.0, float(run.plan.pool_size)),
        )
        if way is not None
    )


def recommended(found: tuple[Way, ...]) -> Way:
    """The cheapest of those that count people's mistakes."""
    return min((way for way in found if way.counts_people), key=lambda way: way.cost)


def against_person(wrong: Floats, people: PeopleForecast) -> Floats:
    """Foretold loss (g, K) against one person's label: her own mistakes are charged to the models, but for
    those that she shares with them.
    """
    own, shared = people.error * (1 - people.shared), people.error * people.shared
    mean = wrong.mean(axis=0)
    copied = np.divide(shared, mean, out=np.zeros_like(mean), where=mean > 0)
    return np.asarray(np.clip(wrong * (1 - np.minimum(copied, 1.0)) + own, 0.0, 1.0))


def _by_people(name: str, plan: Plan, pilot: PilotData, wrong: Floats, each: float = 1.0) -> Way | None:
    if plan.expected_labels < smallest_n(plan, chains=number_of_chains(plan)):
        return None
    found = forecast(plan, paths_of(plan, pilot, wrong))
    return Way(name, found.net_cost, found.people * each, 0.0)


def _settled(plan: Plan, pilot: PilotData, wrong: Floats, people: PeopleForecast) -> Way | None:
    """Two people's independent mistakes hardly ever agree, so that the models are charged with their own."""
    differ = 2 * people.error * (1 - people.error)
    cost = settled_cost(plan.costs[-1], Decimal(repr(differ)))
    dear = replace(plan, costs=(*plan.costs[:-1], cost))
    return _by_people(SETTLED, dear, pilot, wrong, 2 + differ)


def _with_people(run: ExpertPlan, pilot: PilotData, people: PeopleForecast) -> Way | None:
    """The three chains of a run, over slices, which it freezes without knowing how people err."""
    world = _World(run, pilot, people)
    chains = [hull_chain(name, world.slices, world.assumed, use) for name, use in world.sources.items()]
    levels = run.levels(world.asked)
    if levels.wide < 0:
        return None
    return world.simulated(WITH_PEOPLE, chains, levels, run.rechecked(world.asked))


def _alone(run: ExpertPlan, pilot: PilotData, people: PeopleForecast) -> Way | None:
    """One chain of the models, at all of alpha; the expert labels what is asked, and annotators nothing."""
    alone = replace(run, plan=replace(run.plan, costs=(*run.plan.costs[:-1], Decimal(0))))
    world = _World(alone, pilot, people)
    asked, plan = world.asked, run.plan
    levels = recheck_levels(
        pool_size=plan.pool_size,
        asked=asked,
        rechecked=asked,
        weight=1,
        budget=plan.budget,
        level=plan.exact_alpha,
    )
    if levels.wide < 0:
        return None
    chain = hull_chain(MODELS, world.slices, world.assumed, world.sources[MODELS])
    found = world.simulated(ALONE, [chain], levels, asked)
    return replace(found, people=0.0)


def _of_which_one_is_wrong(found: Foretold) -> Foretold:
    """Where two models differ one of them is wrong: a chain's forecast charges them with more than that, as
    only the order of its steps hangs on it.
    """
    losses = found.losses.copy()
    losses[: found.models] /= CHEAP_MODEL + BEST_MODEL
    return replace(found, losses=losses)


class _World:
    """Slices of a pool that looks like the pilot, and what is foretold of each."""

    def __init__(self, run: ExpertPlan, pilot: PilotData, people: PeopleForecast) -> None:
        self.run, self.people, self.models = run, people, run.plan.sources - 1
        self.asked = int(run.plan.expected_labels)
        shape, u, v = like_pilot(run.plan, pilot)
        like = replace(run, plan=replace(shape, rule=fixed_sequence.RULE.name))
        self.slices = cut_slices(like.plan, u=u, v=v)
        self.assumed = foretell(like, self.slices, pilot)
        self.truth = _of_which_one_is_wrong(foretell(like, self.slices, pilot, people))
        self.weights = self.slices.sizes / self.slices.sizes.sum()
        every = range(self.models + 3)
        person, checked = self.models + PERSON, self.models + CHECKED
        self.sources = {
            ALL: list(every),
            NO_PERSON: [source for source in every if source != person],
            MODELS: [source for source in every if source not in (person, checked)],
        }
        alike = [row[0] is not None and len(set(row)) == 1 for row in pilot.answers.tolist()]
        self.alike = float(np.mean(alike))

    def simulated(self, name: str, chains: Sequence[SliceChain], levels: Levels, rechecked: int) -> Way:
        """Means over `DRAWS` calibrations, each with the cheapest policy that it certifies."""
        run, plan, models = self.run, self.run.plan, self.models
        expert = np.zeros_like(self.truth.losses)
        expert[models + CHECKED] = np.minimum(self.truth.losses[models - 1] + self.people.error, 1.0)
        expert[models + EXPERT] = 1.0
        human, unasked = np.zeros_like(expert), np.zeros_like(expert)
        human[[models + PERSON, models + CHECKED]] = 1.0
        unasked[models + EXPERT] = 1.0
        tables = (self.truth.costs, human, expert, unasked)
        along = [[chain.along(values * self.weights) for values in tables] for chain in chains]
        ends = np.zeros(len(tables))
        rng = np.random.default_rng(SEED)
        for _ in range(DRAWS):
            where, losses, alike = self._calibration(rng)
            counted = ~alike | (np.arange(self.asked) < rechecked)
            weighted = np.where(alike & counted, run.weight if rechecked < self.asked else 1, counted)
            found = []
            for chain, sums in zip(chains, along, strict=True):
                upper, lower = (
                    self._totals(chain, where, losses * by[:, None]) for by in (weighted, counted)
                )
                eligible = judge_weighted(upper, lower, levels).eligible
                best = int(np.argmin(np.where(eligible, sums[0], np.inf))) if eligible.any() else 0
                found.append([float(one[best]) for one in sums])
            ends += np.array(min(found)) / DRAWS
        cost, by_people, by_expert, share_of_expert = (float(one) for one in ends)
        own = self.people.error * (1 - self.people.shared)
        seen = rechecked + (self.asked - rechecked) * (1 - self.alike * (1 - own))
        seen += (self.asked - seen) * share_of_expert
        first, *later, person = (float(price) for price in plan.costs)
        rest = plan.pool_size - self.asked
        paid = plan.pool_size * first + (plan.pilot + self.asked) * sum(later) + self.asked * person
        return Way(
            name,
            paid + seen * float(run.expert_cost) + rest * cost,
            self.asked + rest * by_people,
            seen + rest * by_expert,
        )

    def _totals(self, chain: SliceChain, where: Ints, losses: Floats) -> Floats:
        count = len(self.weights)
        values = [np.bincount(where, weights=column, minlength=count) for column in losses.T]
        return np.rint(chain.along(np.array(values)))

    def _calibration(self, rng: np.random.Generator) -> tuple[Ints, Floats, Bools]:
        """Slices (n,), losses (n, K + 3) and whether annotator and all models agree where she errs (n,).

        Annotators' own mistakes lie anywhere, and those they share where the best model errs.
        """
        n, models, losses = self.asked, self.models, self.truth.losses
        where = rng.choice(len(self.weights), size=n, p=self.weights)
        found = np.zeros((n, models + 3))
        found[:, :models] = rng.random((n, models)) < losses[:models, where].T
        copies = losses[models + CHECKED, where] / np.maximum(losses[models - 1, where], FLOOR)
        copied = (found[:, models - 1] > 0) & (rng.random(n) < copies)
        own = rng.random(n) < self.people.error * (1 - self.people.shared)
        found[:, models + PERSON] = copied | own
        found[:, models + CHECKED] = copied
        return where, found, copied & found[:, :models].all(axis=1)
