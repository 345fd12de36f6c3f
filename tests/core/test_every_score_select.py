"""The tests of `every_score` and its choice: shares of alpha, lazy calls, targets, other losses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import ceil

import numpy as np
import pytest

from routing.core.every_score.build import ScoreChains, build_score_chains
from routing.core.every_score.chain import CASCADE, FIRST_SCORE, OWN, ScoreChain
from routing.core.every_score.items import EVERYTHING, ScoredItems
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import (
    TOGETHER,
    AnswersMissingError,
    PilotCosts,
    missing_calls,
    select_every_score,
)
from routing.core.keys import V_MAX, Key
from routing.core.pilot import PilotData
from routing.core.plan import Plan
from tests.core.worlds import plan_of

pytestmark = pytest.mark.costly

CHEAP = ("0.0004", "0.005", "1")
DEAR = ("0.03", "0.15", "1")
SIZE = 1200


class Drawn:
    """A pool with frozen chains, its pilot and its asked items."""

    def __init__(
        self, costs: tuple[str, ...], *, seed: int = 0, unusable: float = 0.0, **changes: object
    ) -> None:
        rng = np.random.default_rng(seed)
        models = len(costs) - 1
        u = rng.random((SIZE, models))
        wrong = rng.random((SIZE, models)) < 0.35 * u ** (2 + np.arange(models))
        answers = np.where(wrong, rng.integers(1, 4, u.shape), 0).astype(str).astype(object)
        usable = rng.random(u.shape) >= unusable
        answers[~usable] = None
        self.plan = plan_of(SIZE, 400, costs=costs, rule="every_score", **changes)
        self.items = ScoredItems.of(u, rng.integers(0, V_MAX, u.shape), usable)
        drawn, pilot = rng.permutation(SIZE)[:400], rng.permutation(SIZE)[: self.plan.pilot]
        asked = drawn[:360]
        population = self.plan.target == "population"
        reference = ~np.isin(np.arange(SIZE), drawn)
        if population:
            pilot = rng.permutation(np.flatnonzero(reference))[: self.plan.pilot]
        self.losses = np.where(usable, wrong, 0).astype(np.float64)
        self.chains = build_score_chains(
            self.plan,
            u=u[:, 0],
            v=self.items.keys[:, 0].imag.astype(np.int64),
            usable=usable[:, 0],
            pilot=PilotData(u[pilot, 0], np.zeros(len(pilot), np.int64), answers[pilot], u[pilot]),
            reference=reference if population else None,
        )
        self.asked_at = np.sort(asked)
        self.asked = self.seen()
        self.pilot_items = self.items.rows(pilot[~np.isin(pilot, asked)])
        self.pilot = PilotCosts.of(self.plan, self.chains, self.pilot_items)

    def seen(self, known: np.ndarray | None = None) -> AskedItems:
        """The asked items; what is not known is hidden."""
        items, losses = self.items.rows(self.asked_at), self.losses[self.asked_at]
        if known is not None:
            items = ScoredItems(np.where(known, items.keys, complex(*EVERYTHING)), items.usable & known)
            losses = np.where(known, losses, 0.0)
        return AskedItems.of(items, losses, drawn=400, known=known)


def test_the_main_chain_gets_what_the_others_leave() -> None:
    world = Drawn(CHEAP)
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    main, *others = chosen.tests
    assert Fraction(25, 1000) < main.level < Fraction(1, 20), "discreteness leaves something over"
    assert all(test.attained <= test.level for test in chosen.tests)
    assert sum(test.attained for test in chosen.tests) <= Fraction(1, 20)
    shares = (Fraction(15, 1000), Fraction(10, 1000))
    assert all(test.level > share / 2 for test, share in zip(others, shares, strict=True))


def test_what_the_main_chain_leaves_goes_to_the_others() -> None:
    """With so few errors allowed, a part of alpha allows the main chain as many as all of it."""
    world = Drawn(DEAR, epsilon="0.01")
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    assert sum(test.attained for test in chosen.tests) <= Fraction(1, 20)
    beyond = [test.level > (test.chain.share or 0) * Fraction(1, 20) for test in chosen.tests[1:]]
    assert any(beyond)
    assert chosen.tests[0].attained < Fraction(25, 1000)
    assert all(test.attained.denominator <= 10**9 for test in chosen.tests), "rounded, the same everywhere"


def test_the_cheapest_certified_policy_of_all_chains_is_chosen() -> None:
    for costs in (CHEAP, DEAR):
        world = Drawn(costs)
        chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
        assert chosen.index > 0
        best = [np.where(test.verdict.eligible, cost, np.inf).min()
                for test, cost in zip(chosen.tests, chosen.costs, strict=True)]  # fmt: skip
        assert chosen.costs[chosen.number][chosen.index] == min(best)
        assert chosen.thresholds == chosen.chain.policy(chosen.index)
        assert chosen.chain is world.chains.chains[chosen.number]


def test_costs_are_estimated_from_asked_and_pilot_items_together() -> None:
    world = Drawn(DEAR)
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    chain, j = world.chains.main, 60
    both = [world.asked.items, world.pilot_items]
    called = sum(int(chain.calls(items)[1][j].sum()) for items in both)
    people = sum(int((chain.delivers(items)[j] == 2).sum()) for items in both)
    assert chosen.tests[0].reached > j
    assert chosen.costs[0][j] == pytest.approx((0.15 * called + people) / sum(items.size for items in both))


def fetched(world: Drawn) -> tuple[np.ndarray, int]:
    """What is known in the end, calling models only when they are asked for, and the number of times."""
    known = np.zeros((360, len(world.plan.costs) - 1), dtype=np.bool_)
    known[:, 0] = True
    times = 0
    while (missing := missing_calls(world.plan, world.chains, world.seen(known))) is not None:
        for model, rows in missing.calls:
            assert not known[rows, model].any(), "nothing is called twice"
            assert len(rows)
            known[rows, model] = True
        times += 1
    return known, times


@pytest.mark.parametrize("unusable", [0.0, 0.1])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_lazy_calls_change_nothing_but_the_bill(seed: int, unusable: float) -> None:
    """The last model runs on asked items only as policies are reached, up to the first that fails."""
    world = Drawn(DEAR, seed=seed, unusable=unusable)
    assert world.chains.lazy
    known, times = fetched(world)
    lazily = select_every_score(world.plan, world.chains, world.seen(known), world.pilot)
    at_once = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    assert (lazily.number, lazily.index) == (at_once.number, at_once.index)
    assert np.array_equal(lazily.tests[0].upper, at_once.tests[0].upper, equal_nan=True)
    assert np.array_equal(known, at_once.called), "exactly the calls that the tests need"
    assert 0 < known[:, 1].sum() < 360
    assert times >= 1
    main = at_once.tests[0]
    assert main.reached == main.verdict.prefixes["wide"] + 1, "up to the first that fails"
    assert np.isnan(main.upper[main.reached :]).all()
    assert np.isinf(at_once.costs[0][main.reached :]).all()


def test_no_more_answers_are_named_at_once_than_one_in_forty() -> None:
    """But all that one policy needs: here the first needs three, the second one all the others."""
    world = Drawn(DEAR)
    keys = np.sort(world.items.rows(world.asked_at).keys[:, 0])
    few, everything = Key(float(keys[2].real), V_MAX), EVERYTHING
    path = [(None,) * 3, (None, few, everything), (None, everything, everything)]
    cascade = ScoreChain.of("x", CASCADE, (0, 1), path)
    world.chains = replace(world.chains, chains=(cascade,))
    known = np.zeros((360, 2), dtype=np.bool_)
    known[:, 0] = True
    missing = missing_calls(world.plan, world.chains, world.seen(known))
    assert missing is not None
    assert (missing.policy, [(model, len(rows)) for model, rows in missing.calls]) == (1, [(1, 3)])


def useless_first(*, power: int) -> Drawn:
    """The first model errs in 60 % of cases whatever its score, the dear last one with .4 u^power."""
    world = Drawn(("0.06", "0.15", "1"), seed=7)
    rng = np.random.default_rng(8)
    u = np.column_stack([rng.random(SIZE), world.items.keys[:, 1].real])
    wrong = rng.random((SIZE, 2)) < np.column_stack([np.full(SIZE, 0.6), 0.4 * u[:, 1] ** power])
    answers = np.where(wrong, rng.integers(1, 4, u.shape), 0).astype(str).astype(object)
    pilot = rng.permutation(SIZE)[: world.plan.pilot]
    world.items = ScoredItems.of(u, rng.integers(0, V_MAX, u.shape))
    world.losses = wrong.astype(np.float64)
    data = PilotData(u[pilot, 0], np.zeros(len(pilot), np.int64), answers[pilot], u[pilot])
    world.chains = build_score_chains(world.plan, u=u[:, 0], v=np.arange(SIZE), pilot=data)
    world.asked = world.seen()
    outside = world.items.rows(pilot[~np.isin(pilot, world.asked_at)])
    world.pilot = PilotCosts.of(world.plan, world.chains, outside)
    return world


def test_the_last_model_alone_steps_in_where_the_first_one_is_useless() -> None:
    """Its share of alpha is kept for it; the labels of a few of its answers say that it pays."""
    world = useless_first(power=3)
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    assert chosen.number == world.chains.reserve
    assert chosen.index > 40
    assert chosen.called[:, 1].all()
    assert sum(test.attained for test in chosen.tests) <= Fraction(1, 20)
    known, times = fetched(world)
    assert known[:, 1].all()
    assert times > 1, "first some answers, then all"


def test_the_last_model_alone_is_left_out_where_it_is_no_better() -> None:
    """Sixty of its answers are looked at, no more; its share of alpha is not used by the others."""
    world = useless_first(power=0)
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    reserve = chosen.tests[world.chains.reserve or 0]
    assert (reserve.reached, reserve.verdict.eligible.sum()) == (1, 1)
    assert chosen.called[:, 1].sum() == 60
    assert np.array_equal(fetched(world)[0][:, 1], chosen.called[:, 1])
    assert reserve.attained > 0
    assert Fraction(45, 1000) <= chosen.tests[0].level < Fraction(1, 20)
    assert chosen.tests[0].attained + reserve.attained <= Fraction(1, 20)


def test_where_a_cascade_saves_enough_the_reserve_costs_no_call() -> None:
    world = Drawn(DEAR)
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    assert chosen.tests[world.chains.reserve or 0].reached == 1
    assert np.array_equal(chosen.called[:, 1], chosen.tests[0].called[:, 1])


def test_in_the_chain_of_first_scores_each_later_model_waits_for_its_band() -> None:
    world = Drawn(("0.01", "0.08", "0.15", "1"), seed=4)
    own = world.items.keys.real.copy()
    own[:, 2] = np.nan
    pilot = np.arange(60)
    answers = np.where(world.losses[pilot] > 0, "b", "a").astype(object)
    chains = build_score_chains(
        world.plan, u=own[:, 0], v=np.arange(SIZE), pilot=PilotData(own[pilot, 0], pilot, answers, own[pilot])
    )
    world.chains = chains
    assert len(chains.chains) == 1
    known, _ = fetched(world)
    called = select_every_score(world.plan, chains, world.asked).called
    assert not (called & ~known).any()
    assert (known & ~called).sum() <= ceil(TOGETHER * 360), "those of the next policies, named together"


def test_many_models_are_called_in_few_rounds_and_none_for_one_that_may_still_answer() -> None:
    """Each of six dear models stands in for the one before it only where that one cannot be used."""
    costs = ("0.004", "0.08", "0.1", "0.12", "0.14", "0.16", "0.2", "1")
    world = Drawn(costs, seed=3, unusable=0.1)
    models = len(costs) - 1
    steps = [np.linspace(0, j / 20, models + 1)[1:] for j in range(1, 20)]
    path = [(None,) * models, *(tuple(Key(float(u), V_MAX) for u in step) for step in steps)]
    chain = ScoreChain.of("x", FIRST_SCORE, tuple(range(models)), path)
    world.chains = ScoreChains((True, *[False] * (models - 1)), (chain,), True)
    known, times = fetched(world)
    assert times <= 40, "not so many for each model"
    assert not (known & ~world.asked.called(chain, chain.size)).any()
    spare = known & ~select_every_score(world.plan, world.chains, world.asked).called
    assert spare.sum() <= ceil(TOGETHER * 360 * (models - 1))


def test_without_an_answer_that_is_needed_nothing_is_certified() -> None:
    world = Drawn(CHEAP)
    known = np.ones((360, 2), dtype=np.bool_)
    known[7, 1] = False
    with pytest.raises(AnswersMissingError, match="model 2 has not been asked about 1 of") as caught:
        select_every_score(world.plan, world.chains, world.seen(known), world.pilot)
    assert [(model, rows.tolist()) for model, rows in caught.value.missing.calls] == [(1, [7])]


def test_nobody_can_label_some_items() -> None:
    """They count for no policy that the simultaneous test passes, and against every one of the others."""
    world = Drawn(CHEAP)
    lost = world.asked.lower.copy()
    lost[:40] = 0.0
    upper = world.asked.upper.copy()
    upper[:40] = 1.0
    asked = replace(world.asked, upper=upper, lower=lost)
    chosen = select_every_score(world.plan, world.chains, asked, world.pilot)
    for test in chosen.tests:
        if test.chain.shape == OWN:
            certified = np.flatnonzero(test.verdict.eligible)
            apart = test.upper[certified] > test.lower[certified]
            assert (test.upper[certified][apart] <= test.verdict.limits["c_0"]).all()


@pytest.mark.parametrize(
    ("target", "bound"),
    [
        ("pool", "hypergeometric"),
        ("population", "binomial"),
        ("dataset", "betting_upper"),
        ("pool", "hoeffding"),
    ],
)
def test_other_targets_and_bounds_go_along_the_chains_in_order(target: str, bound: str) -> None:
    world = Drawn(CHEAP, target=target, bound=bound, epsilon="0.1", pilot_size=100)
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    assert sum(test.attained for test in chosen.tests) <= Fraction(1, 20)
    for test in chosen.tests:
        length = max(test.verdict.prefixes.values())
        assert test.verdict.eligible.tolist() == [True] * length + [False] * (test.chain.size - length)
        if bound.startswith("b") and target == "dataset":
            assert test.attained == test.level, "no whole number decides, so nothing is left over"
    assert chosen.index > 0


def test_losses_between_0_and_1_are_tested_with_bets_along_the_draw() -> None:
    world = Drawn(DEAR, loss="jaccard", epsilon="0.2", target="pool")
    half = AskedItems.of(world.asked.items, world.asked.upper / 2, drawn=400)
    chosen = select_every_score(world.plan, world.chains, half, world.pilot)
    assert world.plan.bound_rule().name == "betting_upper"
    assert chosen.index > 0


def test_probabilities_of_asking_that_vary_weigh_the_losses() -> None:
    world = Drawn(CHEAP, p="0.6", p_min="0.3", target="population", epsilon="0.3", pilot_size=100)
    rng = np.random.default_rng(0)
    weights = 1 / rng.uniform(0.3, 0.9, 360)
    asked = replace(world.asked, weights=weights, places=np.sort(rng.permutation(400)[:360]))
    chosen = select_every_score(world.plan, world.chains, asked, world.pilot)
    assert world.plan.bound_rule().name == "betting_upper"
    assert chosen.index > 0
    with pytest.raises(ValueError, match="1 / p_i"):
        select_every_score(world.plan, world.chains, world.asked, world.pilot)


def tiny(costs: tuple[str, ...]) -> tuple[Plan, ScoreChains, AskedItems]:
    """Twenty items, all scores the same."""
    plan = plan_of(20, 10, costs=costs, rule="every_score", p=1)
    models = len(costs) - 1
    items = ScoredItems.of(np.full((20, models), 0.5), np.arange(20 * models).reshape(20, models))
    chains = build_score_chains(plan, u=np.full(20, 0.5), v=np.arange(20))
    return plan, chains, AskedItems.of(items.rows(slice(0, 10)), np.zeros((10, models)), drawn=10)


@pytest.mark.parametrize("costs", [("1", "10"), CHEAP, ("2", "1", "10"), ("20", "30", "10")])
def test_twenty_items_fall_back_to_people(costs: tuple[str, ...]) -> None:
    """Also where costs are in the wrong order or models dearer than people: nothing is certified, or nothing
    dearer than people is chosen.
    """
    plan, chains, asked = tiny(costs)
    chosen = select_every_score(plan, chains, asked)
    assert chosen.index == 0
    assert chosen.thresholds == (None,) * len(chosen.thresholds)


def test_a_model_that_is_dearer_than_people_is_never_chosen() -> None:
    world = Drawn(("0.03", "1.5", "1"))
    chosen = select_every_score(world.plan, world.chains, world.asked, world.pilot)
    assert chosen.index > 0
    assert not np.any(chosen.chain.delivers(world.items)[chosen.index] == 1)
    assert not chosen.called[:, 1].any()


@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_every_draw_of_tiny_pools_keeps_the_level_of_all_chains_together(target: str) -> None:
    """Chains of any thresholds, cascades back and forth, some items that nobody can label: exact shares."""
    size, n, alpha = 9, 5, "0.4"
    rng = np.random.default_rng(11)
    for _ in range(4):
        u = rng.permuted(np.tile(np.arange(size) / size, (2, 1)), axis=1).T
        wrong = (rng.random((size, 2)) < 0.6).astype(np.float64)
        nobody = rng.random((size, 1)) < 0.1
        plan = plan_of(
            size, n, alpha=alpha, epsilon="0.2", target=target, costs=(1, 2, 9), p=1, rule="every_score"
        )
        items = ScoredItems.of(u, np.zeros((size, 2), dtype=np.int64), rng.random((size, 2)) < 0.9)
        steps = [(None,), *((Key(end / size, 0),) for end in range(size))]
        jumps = np.sort(rng.integers(-1, size, (8, 2)), axis=1)
        cascade = [(None,) * 3] + [
            tuple(None if end < 0 else Key(end / size, 0) for end in (*jump, rng.integers(-1, size)))
            for jump in jumps
        ]
        chains = ScoreChains(
            (True, True),
            (
                ScoreChain.of("main", OWN, (1,), steps),
                ScoreChain.of("first", OWN, (0,), steps, Fraction(3, 10)),
                ScoreChain.of("cascade", CASCADE, (0, 1), cascade, Fraction(1, 5)),
            ),
            lazy=False,
        )
        lower, upper = np.where(nobody, 0.0, wrong), np.where(nobody, 1.0, wrong)
        false = count = 0
        for draw in combinations(range(size), n):
            rows = np.array(draw)
            asked = AskedItems.of(items.rows(rows), upper[rows], lower[rows], drawn=n)
            chosen = select_every_score(plan, chains, asked)
            policy = chosen.chain.only(chosen.index)
            with_people = np.column_stack([wrong, np.zeros(size)])
            left = with_people[np.arange(size), policy.delivers(items)[0]].sum()
            if target == "dataset":
                left -= asked.totals(policy)[2][0]
            false += left > plan.budget
            count += 1
        assert false / count <= float(alpha)


def test_a_chain_that_does_not_fit_the_plan_is_refused() -> None:
    world = Drawn(CHEAP)
    wrong = ScoreChain.of("odd", CASCADE, (0, 1), [(Key(0.5, 0),) * 3])
    with pytest.raises(ValueError, match=r"'odd'.*people alone"):
        select_every_score(world.plan, replace(world.chains, chains=(wrong,)), world.asked)
