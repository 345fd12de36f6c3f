"""The frozen chains of `every_score`: the label-free path, its start, the shares of alpha."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from routing.core.chain import ChainError
from routing.core.every_score.build import ChainBuilder, ScoreChains, build_score_chains
from routing.core.every_score.chain import CASCADE, FIRST_SCORE, OWN
from routing.core.every_score.forecast import GRID, PRICES, CascadeForecast, PilotPair
from routing.core.every_score.items import EVERYTHING
from routing.core.keys import V_MAX, count_at_or_below, pack
from routing.core.pilot import PilotData
from routing.core.plan import Plan
from tests.core.worlds import plan_of

pytestmark = pytest.mark.costly

CHEAP = ("0.0004", "0.005", "1")
DEAR = ("0.03", "0.15", "1")


def world(size: int, models: int, *, seed: int = 0, power: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Independent own scores, each model wrong more often where it is unsure."""
    rng = np.random.default_rng(seed)
    u = rng.random((size, models))
    wrong = rng.random((size, models)) < 0.5 * u**power
    return u, np.where(wrong, rng.integers(1, 4, (size, models)), 0).astype(str).astype(object)


def frozen(
    costs: tuple[str, ...], *, pilot: int = 200, scored: Any = True, power: int = 2, **changes: Any
) -> ScoreChains:
    """The chains of a pool of 1,000."""
    models = len(costs) - 1
    u, answers = world(1000, models, power=power)
    own = np.where(np.broadcast_to(scored, u.shape), u, np.nan)
    plan = plan_of(1000, 300, costs=costs, rule="every_score", **changes)
    data = PilotData(u[:pilot, 0], np.zeros(pilot, np.int64), answers[:pilot], own[:pilot])
    return build_score_chains(plan, u=u[:, 0], v=np.arange(1000), pilot=data)


def told(chains: ScoreChains) -> list[tuple[str, tuple[int, ...], Fraction | None]]:
    return [(chain.shape, chain.models, chain.share) for chain in chains.chains]


def test_a_cheap_last_model_decides_alone_beside_the_one_before_it_and_a_cascade() -> None:
    chains = frozen(CHEAP)
    assert not chains.lazy
    assert told(chains) == [
        (OWN, (1,), None),
        (OWN, (0,), Fraction(3, 10)),
        (CASCADE, (0, 1), Fraction(1, 5)),
    ]
    assert all(chain.fault(2) == "" for chain in chains.chains)


def test_before_a_dear_last_model_stands_a_cascade_and_a_cheap_model_alone() -> None:
    chains = frozen(DEAR)
    assert chains.lazy
    reserve = (OWN, (1,), Fraction(1, 10))
    assert told(chains) == [(CASCADE, (0, 1), None), (OWN, (0,), Fraction(1, 5)), reserve]
    assert chains.reserve == 2
    no_cheap_one = frozen(("0.05", "0.15", "1"))
    assert told(no_cheap_one) == [(CASCADE, (0, 1), None), reserve]
    assert no_cheap_one.reserve == 1


def test_of_many_models_the_dearest_cheap_one_is_tried_alone() -> None:
    dear = frozen(("0.001", "0.03", "0.06", "0.2", "1"), pilot_size=100)
    assert told(dear)[1:] == [(OWN, (1,), Fraction(1, 5)), (OWN, (3,), Fraction(1, 10))]
    assert dear.main.shape == CASCADE
    assert dear.main.models[1] == 3
    cheap = frozen(("0.0001", "0.001", "0.01", "1"))
    assert told(cheap)[:2] == [(OWN, (2,), None), (OWN, (1,), Fraction(3, 10))]


def test_a_middle_model_without_a_score_has_no_chain_of_its_own() -> None:
    chains = frozen(("0.0001", "0.001", "0.01", "1"), scored=[True, False, True])
    assert chains.scored == (True, False, True)
    assert told(chains) == [
        (OWN, (2,), None),
        (OWN, (0,), Fraction(3, 10)),
        (CASCADE, (0, 2), Fraction(1, 5)),
    ]


@pytest.mark.parametrize("costs", [CHEAP, DEAR])
def test_without_a_score_of_the_last_model_all_thresholds_are_on_the_first(costs: tuple[str, ...]) -> None:
    chains = frozen(costs, scored=[True, False], power=8)
    assert told(chains) == [(FIRST_SCORE, (0, 1), None)]
    assert chains.main.fault(2) == ""
    # Where the last model is dear, the first one starts alone.
    both = chains.main.thresholds[1]
    assert (both[0] == both[1]) == (costs == DEAR)


def test_where_only_the_first_score_decides_an_answer_needs_no_score_of_a_later_model() -> None:
    """As in the routing, which delivers it."""
    chains = frozen(("0.0001", "0.001", "0.01", "1"), scored=[True, True, False])
    assert told(chains) == [(FIRST_SCORE, (0, 1, 2), None)]
    assert chains.scored == (True, False, False)


def test_without_a_pilot_the_later_models_have_no_order_of_their_own() -> None:
    u, _ = world(1000, 2)
    plan = plan_of(1000, 300, costs=CHEAP, rule="every_score", pilot_size=0)
    chains = build_score_chains(plan, u=u[:, 0], v=np.arange(1000))
    assert told(chains) == [(FIRST_SCORE, (0, 1), None)]
    assert chains.main.name == "assumed"


def test_one_model_is_tested_alone_at_all_quantiles_of_the_pool() -> None:
    u, _ = world(1000, 1)
    plan = plan_of(1000, 300, costs=("0.01", "1"), rule="every_score")
    chains = build_score_chains(plan, u=u[:, 0], v=np.arange(1000))
    assert told(chains) == [(OWN, (0,), None)]
    taken = count_at_or_below(np.sort(pack(u[:, 0], np.arange(1000))), chains.main.thresholds[:, 0])
    assert taken.tolist() == list(range(0, 1001, 5))
    assert chains.main.policy(200) == (EVERYTHING,)


@pytest.mark.parametrize("size", [20, 30])
def test_a_tiny_pool_or_constant_scores_give_chains_all_the_same(size: int) -> None:
    plan = plan_of(size, size // 2, costs=CHEAP, rule="every_score", pilot_size=10)
    answers = np.full((10, 2), "a", dtype=object)
    data = PilotData(np.full(10, 0.5), np.zeros(10, np.int64), answers, np.full((10, 2), 0.5))
    chains = build_score_chains(plan, u=np.full(size, 0.5), v=np.arange(size), pilot=data)
    assert all(chain.fault(2) == "" for chain in chains.chains)
    alone = next(chain for chain in chains.chains if chain.shape == OWN)
    assert alone.policy(100)[0] == (0.5, 2**52), "half of the tied block"


def test_where_labels_are_too_few_for_two_chains_the_cascade_comes_first() -> None:
    few, many = (frozen(CHEAP, epsilon=epsilon) for epsilon in ("0.01", "0.05"))
    assert [chain.shape for chain in few.chains] == [CASCADE, OWN]
    assert few.main.share is None
    assert [chain.shape for chain in many.chains] == [OWN, OWN, CASCADE]


def test_a_model_that_costs_more_than_people_is_not_called() -> None:
    chains = frozen(("0.01", "1.5", "1"))
    assert chains.main.shape == CASCADE
    assert np.array_equal(chains.main.thresholds[:, 0], chains.main.thresholds[:, 1])


def test_answers_without_their_score_are_not_usable_in_the_pilot() -> None:
    """They rank last, and no disagreement is laid at their door."""
    u, answers = world(300, 2)
    own = u[:100].copy()
    own[:20, 1] = np.nan
    plan = plan_of(300, 100, costs=CHEAP, rule="every_score")
    seen = ChainBuilder.of(
        plan, u=u[:, 0], v=np.arange(300), pilot=PilotData(u[:100, 0], np.arange(100), answers[:100], own)
    )
    assert (seen.u[:20, 1] == 1).all()
    assert (seen.answers[:20, 1] == None).all()  # noqa: E711 - element by element
    assert seen.scored == (True, True)


def test_for_new_items_nothing_is_learnt_from_the_calibration_set() -> None:
    u, answers = world(600, 2)
    plan = plan_of(600, 200, costs=CHEAP, rule="every_score", target="population", pilot_size=100)
    reference = np.arange(600) >= 200
    data = PilotData(u[500:, 0], np.arange(100), answers[500:], u[500:])
    chains = build_score_chains(plan, u=u[:, 0], v=np.arange(600), pilot=data, reference=reference)
    changed = np.where(reference, u[:, 0], 0.99)
    again = build_score_chains(plan, u=changed, v=np.arange(600), pilot=data, reference=reference)
    for one, other in zip(chains.chains, again.chains, strict=True):
        assert np.array_equal(one.thresholds, other.thresholds)
        some = one.thresholds.real >= 0
        assert (one.thresholds.imag[some] == V_MAX).all(), "thresholds are scores alone"
    with pytest.raises(ChainError, match="reference"):
        build_score_chains(plan, u=u[:, 0], v=np.arange(600), pilot=data)


def test_shapes_that_do_not_fit_are_named() -> None:
    u, answers = world(100, 2)
    plan = plan_of(100, 50, costs=CHEAP, rule="every_score", pilot_size=20)
    with pytest.raises(ChainError, match="scores"):
        build_score_chains(plan, u=u[:, 0], v=np.arange(99))
    data = PilotData(u[:20, 0], np.arange(20), answers[:20, :1], u[:20])
    with pytest.raises(ChainError, match="pilot has"):
        build_score_chains(plan, u=u[:, 0], v=np.arange(100), pilot=data)


# --- The path ---


def pair_of(size: int, *, seed: int = 0) -> PilotPair:
    rng = np.random.default_rng(seed)
    u = rng.random((size, 2))
    ranks = (np.argsort(np.argsort(u, axis=0), axis=0) + 0.5) / size
    differs = (rng.random(size) < 0.6 * u[:, 0]).astype(np.float64)
    return PilotPair(ranks[:, 0], ranks[:, 1], u[:, 0], u[:, 1], differs)


def along(ranks: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Isotonic regression, linear between points and constant outside."""
    order = np.argsort(ranks)
    return np.interp(at, ranks[order], isotonic_regression(values[order]).x)


def test_the_predicted_losses_split_a_disagreement_by_the_scores() -> None:
    """h1 = isotonic(r_k -> y w) + mean(y) r^2 / 4 + 1e-4, w = U_k / (U_k + U_K)."""
    pair = pair_of(120)
    w = pair.u_first / (pair.u_first + pair.u_last)
    shared = pair.differs.mean() * GRID**2 / 4 + 1e-4
    forecast = CascadeForecast(pair)
    assert forecast.first(GRID) == pytest.approx(along(pair.first, pair.differs * w, GRID) + shared)
    assert forecast.last(GRID) == pytest.approx(along(pair.last, pair.differs * (1 - w), GRID) + shared)


def test_every_policy_of_the_path_is_the_cheapest_at_its_price() -> None:
    """Straight from the definitions, price by price; then evenly along the sum of max(|dt1|, |dt2|)."""
    pair, rho = pair_of(80, seed=1), 0.12
    forecast = CascadeForecast(pair)
    h1, h2, at_pilot = forecast.first(GRID), forecast.last(GRID), forecast.last(pair.last)
    width = max(0.03, 1 / max(4, min(20, 80 // 10)))
    points = [(0.0, 0.0, 0.0)]
    for price in PRICES:
        v = []
        for r in GRID:
            weight = np.exp(-(((r - pair.first) / width) ** 2) / 2)
            v.append(rho + np.sum(weight * np.minimum(price * at_pilot, 1)) / weight.sum())
        value = np.maximum.accumulate(v)
        over = np.flatnonzero(price * h1 > np.minimum(value, 1))
        t1 = (over[0] if len(over) else 200) / 200
        below = np.flatnonzero(value < 1)
        th = max((below[-1] + 1 if len(below) else 0) / 200, t1)
        points.append((t1, th, np.mean(price * h2 <= 1)))
    steps = np.maximum.accumulate(np.array(points), axis=0)
    moved = np.maximum(abs(np.diff(steps[:, 0])), abs(np.diff(steps[:, 2])))
    kept = np.append(True, moved > 0)
    along_path = np.append(0, np.cumsum(moved))[kept]
    at = np.linspace(0, along_path[-1], 201)
    path = forecast.path(rho)
    for column, found in enumerate((path.t1, path.th, path.t2)):
        assert found == pytest.approx(np.interp(at, along_path, steps[kept, column]), abs=1e-9)
    assert (path.t1[0], path.th[0], path.t2[0]) == (0, 0, 0)
    assert (np.diff(path.t1) >= 0).all()
    assert (path.th >= path.t1).all()
    assert len(path.t1) == 201


def test_what_a_policy_is_expected_to_bring_is_counted_on_the_pilot() -> None:
    pair = pair_of(50, seed=2)
    forecast = CascadeForecast(pair)
    t1, th, t2, rho = 0.3, 0.7, 0.4, 0.2
    found = forecast.foretold(rho, np.array([t1]), np.array([th]), np.array([t2]))
    errors = cost = 0.0
    for i in range(50):
        if pair.first[i] <= t1:
            errors += forecast.first(pair.first[i : i + 1])[0]
        elif pair.first[i] <= th:
            kept = pair.last[i] <= t2
            errors += forecast.last(pair.last[i : i + 1])[0] if kept else 0.0
            cost += rho + (not kept)
        else:
            cost += 1
    assert found.errors[0] == pytest.approx(errors / 50)
    assert found.cost[0] == pytest.approx(cost / 50)


def test_the_start_goes_as_far_as_a_fifth_of_the_errors_allow() -> None:
    pair, rho, budget = pair_of(100, seed=3), 0.15, 0.05
    forecast = CascadeForecast(pair)
    path = forecast.path(rho)
    worst = np.maximum(along(pair.first, pair.differs, GRID), forecast.first(GRID)) + 1 / 200
    alone = np.argmax(np.cumsum(worst) / 200 >= 0.2 * budget) / 200
    fitting = np.flatnonzero(path.errors <= 0.25 * budget)
    x = forecast.start(path, budget)
    assert x == pytest.approx(min(alone, path.t1[fitting[-1]]))
    assert x > 0
    begun = forecast.with_start(path, rho, x)
    steps = round(np.ceil(200 * x)) + 1
    assert begun.t1[:steps] == pytest.approx(np.minimum(np.arange(steps) / 200, x))
    assert np.array_equal(begun.t1[:steps], begun.th[:steps]), "the last model is not called"
    assert (begun.t1[steps:] >= x).all()
    assert (begun.th[steps:] > x).all()
    assert (begun.t1[-1], begun.th[-1], begun.t2[-1]) == (max(path.t1[-1], x), path.th[-1], path.t2[-1])


def test_models_that_never_disagree_are_taken_at_their_word() -> None:
    pair = pair_of(60)
    agreed = PilotPair(pair.first, pair.last, pair.u_first, pair.u_last, np.zeros(60))
    path = CascadeForecast(agreed).path(0.1)
    assert path.t1[-1] == 1.0
    plan = plan_of(600, 200, costs=DEAR, rule="every_score")
    answers = np.full((60, 2), "a", dtype=object)
    data = PilotData(
        pair.u_first, np.zeros(60, np.int64), answers, np.column_stack([pair.u_first, pair.u_last])
    )
    chains = build_score_chains(plan, u=np.random.default_rng(0).random(600), v=np.arange(600), pilot=data)
    assert chains.main.policy(chains.main.size - 1)[0] == EVERYTHING


def test_the_pilot_is_small_enough_to_pay_for() -> None:
    """min(200, N / 5, .01 N c_h / (c_2 + ... + c_K)), as for the other rules."""

    def pilot(size: int, costs: tuple[str, ...]) -> int:
        return Plan(
            epsilon="0.05", alpha="0.05", target="dataset", m=10, p="0.9", pool_size=size, costs=costs,
            rule="every_score",
        ).pilot  # fmt: skip

    assert pilot(1500, CHEAP) == 200
    assert pilot(2000, DEAR) == 133
    assert pilot(721, ("1000", "6000", "32768")) == 39
