"""What the rule `every_score` makes of a draw of a world, how false it is and what it saves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.core.every_score.build import ScoreChains, build_score_chains
from routing.core.every_score.chain import CASCADE, FIRST_SCORE, ScoreChain
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import PilotCosts, ScoreSelection, select_every_score
from testbed.draws import Draw, Pool
from testbed.known_truth import Scored


@dataclass(frozen=True)
class Prepared:
    """What is frozen for a target, and what is known of its items."""

    chains: ScoreChains
    items: ScoredItems
    asked: AskedItems
    pilot: NDArray[np.int64]


def certify(draw: Draw, target: str, rule: str, bound: str) -> ScoreSelection:
    """What a run with this bound makes of the draw."""
    plan, ready = draw.setting.plan(target, rule=rule, bound=bound), prepared(draw, target)
    outside = ready.pilot[~np.isin(ready.pilot, draw.pool(target).asked)]
    costs = PilotCosts.of(plan, ready.chains, ready.items.rows(outside))
    return select_every_score(plan, ready.chains, ready.asked, costs)


def prepared(draw: Draw, target: str) -> Prepared:
    """Chains from the pilot that all rules share, made once for each side of a draw."""
    side = "population" if target == "population" else "finite"
    if side not in draw.scored:
        plan, pool = draw.setting.plan(target, rule="every_score"), draw.pool(target)
        pilot = draw.chains(target, "fixed_sequence")[1]
        free = pool.reference(target) if target == "population" else None
        world = pool.world
        chains = build_score_chains(
            plan,
            u=world.u,
            v=world.v,
            pilot=world.pilot(pilot) if len(pilot) else None,
            reference=free,
        )
        own = world.own if world.own is not None else np.full(world.losses.shape, np.nan)
        u = np.column_stack([world.u, own[:, 1:]])
        items = ScoredItems.of(u, world.ties, scored=chains.scored)
        draw.scored[side] = Prepared(chains, items, _asked(pool, items, plan.m), pilot)
    found = draw.scored[side]
    assert isinstance(found, Prepared)
    return found


def _asked(pool: Pool, items: ScoredItems, drawn: int) -> AskedItems:
    upper, lower = pool.world.observed(pool.asked)
    return AskedItems.of(items.rows(pool.asked), upper, lower, drawn=drawn)


def false(draw: Draw, target: str, chosen: ScoreSelection) -> bool:
    """Whether the chosen policy breaks the promise of the target."""
    policy, plan = chosen.chain.only(chosen.index), draw.plans[target]
    if target == "population":
        return _risk(draw, policy) > float(plan.epsilon)
    ready, pool = prepared(draw, target), draw.pool(target)
    source = policy.delivers(ready.items)[0]
    rows = np.arange(ready.items.size)
    losses = np.column_stack([pool.world.losses, np.zeros(len(rows))])[rows, source]
    mended = 0.0
    if target == "dataset":
        mended = float(ready.asked.totals(policy)[2][0])
    return float(losses.sum()) - mended > plan.budget


def _risk(draw: Draw, policy: ScoreChain) -> float:
    """R of one policy; thresholds for new items are scores alone."""
    setting, thresholds = draw.setting, policy.policy(0)
    if policy.shape == FIRST_SCORE or not isinstance(setting, Scored):
        models = len(setting.costs) - 1
        return setting.risk(thresholds if len(thresholds) == models else (thresholds[0],) * models)
    t1, *rest = (0.0 if key is None else min(key.u, 1.0) for key in thresholds)
    first = policy.models[0]
    if policy.shape != CASCADE and first:
        return setting.band(first, 0, (0.0, 1.0), t1)  # its score may depend on the first one's
    alone = setting.band(first, first, (0.0, t1), 1.0)
    if policy.shape != CASCADE:
        return alone
    th, t2 = rest
    return alone + setting.band(policy.models[1], first, (t1, th), t2)


def saving(draw: Draw, target: str, chosen: ScoreSelection) -> float:
    """Net saving; every item is paid once per source."""
    ready, pool = prepared(draw, target), draw.pool(target)
    policy, size = chosen.chain.only(chosen.index), ready.items.size
    prices = np.asarray([float(cost) for cost in draw.setting.costs])
    paid = np.zeros((size, len(prices)), dtype=np.bool_)
    paid[:, [0, policy.models[0]]] = True
    for model, called in policy.calls(ready.items).items():
        paid[:, model] |= called[0]
    paid[:, -1] = policy.delivers(ready.items)[0] == ready.items.models
    paid[ready.pilot, :-1] = True
    paid[pool.asked, -1] = True
    paid[pool.asked, :-1] |= chosen.called
    return float(1 - (paid * prices).sum() / (size * prices[-1]))
