"""One random draw of a world, with all that is needed to judge the rules on it: prepared once, used often.

The chains, the pilot and the labels are those of a run; the truth, the money really paid and the chain that
an oracle would have walked are known here only.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.core.bins import Bins, make_bins
from routing.core.calibration import along, cumulative
from routing.core.certify import Selection, select, select_in
from routing.core.chain import BINS, Chain, build_chains, greedy_chain
from routing.core.keys import Thresholds, count_at_or_below, pack, pack_thresholds
from routing.core.pilot_losses import pass_on_costs
from routing.core.plan import Plan
from routing.core.sample_split import SampleSplit, split_sample
from testbed.known_truth import Cliff
from testbed.settings import Setting, World

SPLIT = "split_fixed_sequence"


class Draw:
    """A pool, the calibration set drawn from it, and for each target the pilot and the chains.

    ``side`` is "finite" for the targets that speak about the pool, whose pilot may overlap the draw, and
    "population", where the chain sees only items outside the calibration set.
    """

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting = setting
        self.plans = {target: setting.plan(target) for target in setting.targets}
        self.rng = rng
        self.pools: dict[str, Pool] = {}
        world = setting.draw(rng)
        drawn = rng.permutation(setting.size)[: setting.m]
        asked = drawn[rng.random(setting.m) < float(setting.p)]
        self.pools["finite"] = Pool(setting, world, drawn, asked)
        if "population" in setting.targets:
            # A cliff in a pool of fixed size is no sample of a source; every other pool is.
            fresh = setting.draw_from_source(rng) if isinstance(setting, Cliff) else world
            self.pools["population"] = Pool(setting, fresh, drawn, asked)
        self.scored: dict[str, object] = {}
        """What `every_score_draws` prepared for each side."""
        self._chains: dict[str, tuple[tuple[Chain, ...], NDArray[np.int64]]] = {}

    def pool(self, target: str) -> Pool:
        return self.pools["population" if target == "population" else "finite"]

    def certify(self, target: str, rule: str, bound: str) -> Selection:
        """What a run with this rule and bound makes of the draw."""
        plan = self.setting.plan(target, rule=rule, bound=bound)
        pool = self.pool(target)
        if rule != SPLIT:
            return select(plan, self.chains(target, rule)[0], pool.losses)
        # What the first labels teach depends on neither the bound nor, in one pool, on the target.
        if pool.learnt is None:
            pool.learnt = split_sample(plan, (), pool.losses, pool.slices(target))[1]
        return select_in(SampleSplit.of(plan, pool.losses), pool.learnt)

    def chains(self, target: str, rule: str) -> tuple[tuple[Chain, ...], NDArray[np.int64]]:
        """The chains of a rule and the items of the pilot that they were learnt from.

        Those of `fixed_sequence` are the first of `multi_chain`, which `check_shared_chains` makes sure of.
        """
        side = "population" if target == "population" else "finite"
        if side not in self._chains:
            self._chains[side] = self._build(target, "multi_chain")
        chains, items = self._chains[side]
        return (chains[:1] if rule == "fixed_sequence" else chains), items

    def check_shared_chains(self) -> None:
        """Raise `AssertionError` where building the chains of a rule by itself gives others."""
        for target in self.plans:
            for rule in ("fixed_sequence", "multi_chain"):
                built, shared = self._build(target, rule)[0], self.chains(target, rule)[0]
                if built != shared:
                    raise AssertionError(f"{self.setting.name}, {target}: other chains for {rule}")

    def _build(self, target: str, rule: str) -> tuple[tuple[Chain, ...], NDArray[np.int64]]:
        side = "population" if target == "population" else "finite"
        plan, pool = self.setting.plan(target, rule=rule), self.pools[side]
        free = pool.reference(target)
        items = self._pilot(side, free, plan)
        pilot = pool.world.pilot(items) if len(items) else None
        world = pool.world
        return build_chains(plan, u=world.u, v=world.v, pilot=pilot, reference=free), items

    def _pilot(self, side: str, free: NDArray[np.bool_], plan: Plan) -> NDArray[np.int64]:
        """The pilot is one for all rules: the first items of one random order of those it may come from."""
        pool = self.pools[side]
        if pool.order is None:
            pool.order = self.rng.permutation(np.flatnonzero(free))
        return pool.order[: plan.pilot]

    def false(self, target: str, thresholds: Thresholds) -> bool:
        """Whether these thresholds break the promise of the target."""
        pool, plan = self.pool(target), self.plans[target]
        if target == "population":
            return self.setting.risk(thresholds) > float(plan.epsilon)
        mended = 0.0
        if target == "dataset":
            mended = float(pool.losses.totals(pack_thresholds([thresholds]))[2][0])
        return pool.wrong(thresholds) - mended > plan.budget

    def saving(self, target: str, rule: str, thresholds: Thresholds) -> float:
        """1 - everything really paid / what people would have cost."""
        pilot = np.empty(0, dtype=np.int64) if rule == SPLIT else self.chains(target, rule)[1]
        return self.pool(target).saving(thresholds, pilot)

    def hindsight(self, target: str, bound: str) -> float:
        """Net saving of the greedy chain on the true errors of each slice, tested with the same labels.

        Nobody could know that chain, so it pays for no pilot.
        """
        pool = self.pool(target)
        slices = pool.slices(target)
        models = self.setting.bin_losses(pool.world, slices)
        losses = np.vstack([models, np.zeros(len(slices.sizes))])
        prices = np.asarray(self.setting.costs, dtype=np.float64)
        chain = greedy_chain("hindsight", slices, losses, pass_on_costs(slices, prices, None))
        plan = self.setting.plan(target, bound=bound, pilot_size=0)
        result = select(plan, (chain,), pool.losses)
        return pool.saving(result.policy.thresholds, np.empty(0, dtype=np.int64))


class Pool:
    """The pool of one draw: what people find out, and the truth."""

    def __init__(
        self, setting: Setting, world: World, drawn: NDArray[np.int64], asked: NDArray[np.int64]
    ) -> None:
        self.setting, self.world, self.drawn, self.asked = setting, world, drawn, asked
        self.losses = world.observe(asked, setting.m)
        self.order: NDArray[np.int64] | None = None
        self.learnt: tuple[Chain, ...] | None = None
        self._slices: dict[bool, Bins] = {}

    def reference(self, target: str) -> NDArray[np.bool_]:
        """The items that a chain may be learnt from."""
        free = np.ones(self.setting.size, dtype=np.bool_)
        if target == "population":
            free[self.drawn] = False
        return free

    def slices(self, target: str) -> Bins:
        """The slices that a chain is made of."""
        population = target == "population"
        if population not in self._slices:
            free = self.reference(target)
            self._slices[population] = make_bins(
                self.world.u[free], self.world.v[free], count=BINS, whole_ties=population
            )
        return self._slices[population]

    @cached_property
    def _sorted(self) -> tuple[Any, Any, Any]:
        keys = pack(self.world.u, self.world.v)
        order = np.argsort(keys, kind="stable")
        return keys[order], order, cumulative(self.world.losses[order])

    def wrong(self, thresholds: Thresholds) -> float:
        """T(theta)."""
        keys, _, sums = self._sorted
        return float(along(sums, count_at_or_below(keys, pack_thresholds([thresholds])))[0])

    def saving(self, thresholds: Thresholds, pilot: NDArray[np.int64]) -> float:
        """Net saving; every item is paid once per source.

        Source 1 on all items; the other models on the pilot, the asked items and their band; people on the
        asked items and their band.
        """
        keys, order, _ = self._sorted
        size = len(keys)
        prices = np.asarray(self.setting.costs, dtype=np.float64)
        ends = [*count_at_or_below(keys, pack_thresholds([thresholds]))[0].tolist(), size]
        was_asked = np.zeros(size, dtype=np.bool_)
        was_asked[self.asked] = True
        ran = was_asked.copy()
        ran[pilot] = True
        was_asked, ran = was_asked[order], ran[order]
        total = size * prices[0]
        for source in range(1, len(prices)):
            paid = was_asked if source == len(prices) - 1 else ran
            band = slice(ends[source - 1], ends[source])
            total += prices[source] * (np.count_nonzero(paid) + np.count_nonzero(~paid[band]))
        return float(1 - total / (size * prices[-1]))
