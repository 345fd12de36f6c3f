"""Chains: what they may look at, how they move, what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from routing.core.bins import Bins, make_bins
from routing.core.chain import Chain, ChainError, PilotData, build_chains, learn_chain
from routing.core.keys import V_MAX, Threshold, increasing, pack
from routing.core.plan import Plan
from routing.core.route import route
from tests.core.worlds import World, make_world, plan_of

SIZE = 1000


def setting(sources: int = 3, **changes: object) -> tuple[Plan, World, PilotData]:
    rng = np.random.default_rng(5)
    world = make_world("power", SIZE, rng)
    if sources == 4:
        world = World(
            world.u,
            world.v,
            np.hstack([world.answers, world.answers[:, 1:]]),
            np.hstack([world.losses] * 2)[:, :3],
        )
    costs = {2: (1000, 32768), 3: (1000, 6000, 32768), 4: (300, 1000, 6000, 32768)}[sources]
    plan = plan_of(SIZE, 200, **{"costs": costs, **changes})
    return plan, world, world.pilot(rng.choice(SIZE, 150, replace=False))


def below(first: Sequence[Threshold], second: Sequence[Threshold]) -> bool:
    """Whether no threshold of the first policy exceeds that of the second."""
    return all(a is None or (b is not None and a <= b) for a, b in zip(first, second, strict=True))


def check(chain: Chain, plan: Plan, world: World) -> None:
    start = chain.policies[0]
    assert start.thresholds == (None,) * (plan.sources - 1)
    assert start.counts[-1] == sum(start.counts)
    for one, other in pairwise(chain.policies):
        assert other.expected_cost < one.expected_cost
        assert below(one.thresholds, other.thresholds)
        assert one.thresholds != other.thresholds
    for policy in chain.policies[:: max(1, len(chain.policies) // 20)]:
        assert increasing(policy.thresholds)
        routed = route(world.u, world.v, policy.thresholds)
        assert np.bincount(routed, minlength=plan.sources).tolist() == list(policy.counts)


@pytest.mark.parametrize("sources", [2, 3, 4])
@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_a_chain_starts_with_people_and_gets_cheaper(sources: int, target: str) -> None:
    plan, world, pilot = setting(sources, target=target)
    for chain in build_chains(plan, u=world.u, v=world.v, pilot=pilot if sources > 2 else None):
        check(chain, plan, world)
        assert chain.policies[-1].counts[0] == SIZE  # the cheapest policy of all is its end


def test_expected_costs_are_counts_times_prices() -> None:
    plan, world, pilot = setting()
    (chain,) = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    for policy in chain.policies:
        assert policy.model_cost == pytest.approx(policy.counts[1] * 6000 / SIZE)
        assert policy.people_cost == pytest.approx(policy.counts[2] * 32768 / SIZE, abs=1e-6)


def test_two_sources_need_no_pilot() -> None:
    plan, world, _ = setting(2)
    (chain,) = build_chains(plan, u=world.u, v=world.v)
    assert chain.name == "ordered"
    assert [policy.counts[0] for policy in chain.policies] == list(range(0, SIZE + 1, 5))


def test_without_a_pilot_a_shape_is_assumed() -> None:
    plan, world, _ = setting(3)
    (chain,) = build_chains(plan, u=world.u, v=world.v)
    assert chain.name == "assumed"
    check(chain, plan, world)


def test_a_score_of_the_last_model_splits_the_disagreements() -> None:
    plan, world, pilot = setting()
    own = np.column_stack([pilot.u, np.full(len(pilot.u), np.nan)])
    blind = PilotData(pilot.u, pilot.v, pilot.answers, own)
    assert [c.name for c in build_chains(plan, u=world.u, v=world.v, pilot=blind)] == ["disagreement"]
    own = np.column_stack([pilot.u, np.random.default_rng(1).random(len(pilot.u))])
    own[3, 1] = np.nan
    seeing = PilotData(pilot.u, pilot.v, pilot.answers, own)
    (chain,) = build_chains(plan, u=world.u, v=world.v, pilot=seeing)
    assert chain.name == "attributed"
    check(chain, plan, world)


@pytest.mark.parametrize("sources", [3, 4])
def test_several_chains_hedge_with_one_model_and_people(sources: int) -> None:
    plan, world, pilot = setting(sources, rule="multi_chain")
    chains = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    assert [chain.name for chain in chains] == ["disagreement", "first model", "last model"]
    for chain in chains:
        check(chain, plan, world)
    for chain, only in zip(chains[1:], (0, sources - 2), strict=True):
        others = [k for k in range(sources - 1) if k != only]
        assert all(policy.counts[k] == 0 for policy in chain.policies for k in others)
        assert chain.policies[-1].counts[only] == SIZE


def test_two_sources_have_one_chain_whatever_the_rule() -> None:
    plan, world, _ = setting(2, rule="multi_chain")
    assert [chain.name for chain in build_chains(plan, u=world.u, v=world.v)] == ["ordered"]


def test_a_chain_that_labels_teach_is_not_built_before_them() -> None:
    plan, world, _ = setting(rule="split_fixed_sequence")
    assert build_chains(plan, u=world.u, v=world.v) == ()


def test_labels_teach_a_chain() -> None:
    """It follows from the slices' ends, sizes and ranks and from the labelled items alone."""
    plan, world, _ = setting(rule="split_fixed_sequence")
    slices = make_bins(world.u, world.v, count=200, whole_ties=False)
    items = np.random.default_rng(3).choice(SIZE, 200, replace=False)
    keys, losses = pack(world.u[items], world.v[items]), world.losses[items]
    chain = learn_chain(plan, slices, keys, losses)
    check(chain, plan, world)
    bare = Bins(slices.ends, slices.sizes, slices.rho, np.empty(0))
    order = np.random.default_rng(4).permutation(200)
    assert learn_chain(plan, bare, keys[order], losses[order]) == chain
    # Where the second model is always wrong, no step of worth is left for it.
    useless = learn_chain(plan, slices, keys, np.column_stack([losses[:, 0], np.ones(200)]))
    half = next(policy for policy in useless.policies if policy.counts[2] <= SIZE / 2)
    assert half.counts[1] == 0
    with pytest.raises(ChainError, match="at least one item"):
        learn_chain(plan, slices, keys[:0], losses[:0])
    with pytest.raises(ChainError, match=r"\(200, 1\)"):
        learn_chain(plan, slices, keys, losses[:, :1])


def test_costs_of_answers_change_what_a_slice_is_worth() -> None:
    plan, world, pilot = setting()
    rising = np.column_stack([np.full(len(pilot.u), 1000.0), 12_000 * pilot.u])
    rising[::7, 1] = np.nan
    costs = PilotData(pilot.u, pilot.v, pilot.answers, costs=rising)
    (chain,) = build_chains(plan, u=world.u, v=world.v, pilot=costs)
    first = next(policy for policy in chain.policies if policy.counts[1])
    assert first.model_cost < first.counts[1] * 3000 / SIZE  # low ranks have short, cheap answers
    (flat,) = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    assert chain != flat


def test_routing_does_not_depend_on_the_scale_of_the_score() -> None:
    plan, world, pilot = setting()
    (one,) = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    (other,) = build_chains(
        plan, u=world.u**3, v=world.v, pilot=PilotData(pilot.u**3, pilot.v, pilot.answers)
    )
    for a, b in zip(one.policies, other.policies, strict=True):
        assert np.array_equal(route(world.u, world.v, a.thresholds), route(world.u**3, world.v, b.thresholds))


def test_ties_are_split_for_a_pool_and_kept_for_a_population() -> None:
    rng = np.random.default_rng(5)
    world = make_world("ties", SIZE, rng)
    pilot = world.pilot(np.arange(150))
    (chain,) = build_chains(plan_of(SIZE, 200), u=world.u, v=world.v, pilot=pilot)
    assert len(chain.policies) > 200
    plan = plan_of(SIZE, 200, target="population")
    (kept,) = build_chains(plan, u=world.u, v=world.v, pilot=pilot, reference=np.arange(SIZE) < 800)
    assert {t.v for policy in kept.policies for t in policy.thresholds if t is not None} == {V_MAX}
    assert len(kept.policies) <= 2 * 11 + 1


def test_a_population_chain_ignores_the_calibration_set() -> None:
    plan, world, pilot = setting(target="population")
    reference = np.ones(SIZE, dtype=bool)
    reference[np.random.default_rng(2).choice(SIZE, 200, replace=False)] = False
    one = build_chains(plan, u=world.u, v=world.v, pilot=pilot, reference=reference)
    other = build_chains(
        plan, u=np.where(reference, world.u, 0.123), v=world.v, pilot=pilot, reference=reference
    )
    assert one == other
    with pytest.raises(ChainError, match="pass `reference`"):
        build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    with pytest.raises(ChainError, match="at most N - m"):
        build_chains(plan, u=world.u, v=world.v, pilot=pilot, reference=np.ones(SIZE, dtype=bool))


def test_where_models_agree_the_cheap_one_comes_first() -> None:
    """With identical models, the dear one is never worth its price beyond what the order of moves needs."""
    plan, world, pilot = setting()
    same = pilot.answers.copy()
    same[:, 1] = same[:, 0]
    (agree,) = build_chains(plan, u=world.u, v=world.v, pilot=PilotData(pilot.u, pilot.v, same))
    check(agree, plan, world)


def test_moves_that_save_nothing_are_left_out() -> None:
    plan, world, pilot = setting(costs=(1000, 32768, 32768))
    (chain,) = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    assert all(policy.counts[1] == 0 for policy in chain.policies)


def test_unusable_answers_make_their_source_dearer() -> None:
    plan, world, pilot = setting()
    holes = pilot.answers.copy()
    holes[pilot.u > 0.7, 1] = None
    (plain,) = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
    (passing,) = build_chains(plan, u=world.u, v=world.v, pilot=PilotData(pilot.u, pilot.v, holes))
    check(passing, plan, world)
    everyone_to_two = [p for p in passing.policies if p.counts[1]]
    assert any(p.people_cost > p.counts[2] * 32768 / SIZE + 1 for p in everyone_to_two)
    assert passing.policies[0] == plain.policies[0]


def test_pools_smaller_than_the_number_of_slices() -> None:
    rng = np.random.default_rng(1)
    world = make_world("power", 7, rng)
    (chain,) = build_chains(plan_of(7, 5), u=world.u, v=world.v, pilot=world.pilot(np.array([2])))
    assert sum(chain.policies[0].counts) == 7
    check(chain, plan_of(7, 5), world)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u": np.zeros(3)}, "1000 items"),
        ({"u": np.full(SIZE, np.nan)}, r"outside \[0, 1\]"),
        ({"pilot": PilotData.of([0.1], [0, 1], [["a", "b"]])}, "tie-breaks"),
        ({"pilot": PilotData.of([0.1], [0], [["a"]])}, "expected one of each"),
        ({"pilot": PilotData.of([1.5], [0], [["a", "b"]])}, r"outside \[0, 1\]"),
        ({"pilot": PilotData.of([0.5], [0], [["a", "b"]], [[0.5]])}, "own scores"),
        ({"pilot": PilotData.of([0.5], [0], [["a", "b"]], costs=[[0.5]])}, "costs of the answers"),
        ({"pilot": PilotData.of([0.5], [0], [["a", "b"]], costs=[[1, -2]])}, "negative or infinite"),
    ],
)
def test_data_that_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    plan, world, pilot = setting()
    with pytest.raises(ChainError, match=message):
        build_chains(plan, **{"u": world.u, "v": world.v, "pilot": pilot, **change})  # type: ignore[arg-type]
