"""BARGAIN: its tests by hand and as plain loops, the labels it asks for, the level that it promises."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from routing.core.baselines import BASELINES, Labelled
from routing.core.baselines.bargain import sequential_test
from routing.core.experiment.run import run
from routing.core.experiment.settings import Settings
from tests.core.tables import made_up

pytestmark = pytest.mark.costly

ALPHA = 0.05


def pool(u: np.ndarray, wrong: np.ndarray) -> Labelled:
    """Every item of a pool in random order, each of which may be asked about; one model."""
    size = len(u)
    loss = wrong.astype(np.float64)[:, None]
    return Labelled(
        u=u[:, None],
        asked=np.ones(size, dtype=np.bool_),
        p=np.ones(size),
        loss=loss,
        alone=loss,
        cost=np.tile([1.0, 8.0], (size, 1)),
        loss_bound=1.0,
        binary=True,
        constant_p=True,
        pool_size=size,
    )


def world(size: int, *, seed: int, worst: float = 0.5) -> Labelled:
    """The model errs with probability ``worst`` u^2."""
    rng = np.random.default_rng(seed)
    u = rng.permutation(np.linspace(0, 1, size))
    return pool(u, rng.random(size) < worst * u**2)


def decide(one: Labelled, epsilon: float) -> tuple[float, np.ndarray]:
    decision = BASELINES.get("bargain_1").decide(one, epsilon=epsilon, alpha=ALPHA)
    assert decision.labelled is not None
    return decision.stages[0].limit, decision.labelled


def test_right_answers_win_the_bet_at_the_first_look() -> None:
    # Each stake is capped, so that a right answer multiplies the capital by 1 + .75 (1 - m) / m with
    # (1 - m) / m = 1, 10/9, 10/8, ...: 29 after five of them, and 20 is aimed at.
    assert sequential_test(np.ones(20), 0.5, alpha=ALPHA, items=20) == (True, 10)
    assert sequential_test(np.zeros(20), 0.5, alpha=ALPHA, items=20) == (False, 10)
    # Of many items, ten right answers do not show that 95 % are right, and labels run out.
    assert sequential_test(np.ones(10), 0.95, alpha=ALPHA, items=1000) == (False, 10)
    assert sequential_test(np.ones(0), 0.95, alpha=ALPHA, items=1000) == (False, 0)


@pytest.mark.parametrize(("demand", "passes"), [(0.9, True), (0.91, False)])
def test_what_is_labelled_throughout_is_known(demand: float, passes: bool) -> None:
    right = np.array([1.0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    assert sequential_test(right, demand, alpha=1e-6, items=10) == (passes, 10)


def test_a_threshold_whose_answers_vary_much_is_given_up() -> None:
    right = np.tile([1.0] * 9 + [0.0], 100)  # .9 - .3 is below .88, which no bet decides soon
    assert sequential_test(right, 0.88, alpha=ALPHA, items=10_000) == (False, 50)


def by_loops(one: Labelled, epsilon: float) -> tuple[float, set[int]]:
    """Thresholds and labels as the paper and its implementation put them, one label after the other."""
    size, (score,), (loss,) = len(one.u), one.u.T, one.alone.T
    limit, read = -np.inf, set()
    for place in range(1, 21):
        candidate = np.sort(score)[-(-place * size // 20) - 1]
        rows = [row for row in range(size) if score[row] <= candidate]
        demand = (size * (1 - epsilon) - (size - len(rows))) / len(rows)
        if demand <= 1e-12:
            continue
        capital = {1: 1.0, -1: 1.0}
        won = {1: False, -1: False}
        seen: list[float] = []
        verdict = None
        while verdict is None:
            row = rows[len(seen)]
            read.add(row)
            t = len(seen) + 1
            centre = (0.5 + sum(seen)) / t
            variance = (0.25 + sum((x - centre) ** 2 for x in seen)) / t
            bet = sqrt(2 * log(2 / ALPHA) / (t * log(t + 1) * variance))
            mean = (len(rows) * demand - sum(seen)) / (len(rows) - t + 1)
            seen.append(1 - loss[row])
            if 0 < mean < 1:
                capital[1] *= 1 + min(bet, 0.75 / mean) * (seen[-1] - mean)
                capital[-1] *= 1 - min(bet, 0.75 / (1 - mean)) * (seen[-1] - mean)
            won[1] |= mean <= 0 or capital[1] >= 1 / ALPHA
            won[-1] |= mean >= 1 or capital[-1] >= 1 / ALPHA
            if t % 10 and t < len(rows):
                continue
            enough = np.mean(seen) >= demand - 1e-12
            if t == len(rows) or won[1 if enough else -1]:
                verdict = enough
            elif t >= 50 and np.mean(seen) - np.std(seen) < demand:
                verdict = False
        if not verdict:
            break
        limit = candidate
    return limit, read


@pytest.mark.parametrize("epsilon", [0.02, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_the_search_is_that_of_the_paper(epsilon: float, seed: int) -> None:
    one = world(397, seed=seed, worst=(0.1, 0.5)[seed % 2])
    limit, labels = decide(one, epsilon)
    expected, read = by_loops(one, epsilon)
    assert limit == expected
    assert set(labels.tolist()) == read


def test_labels_that_it_did_not_ask_for_change_nothing() -> None:
    one = world(2_000, seed=1)
    limit, labels = decide(one, 0.1)
    assert np.isfinite(limit)
    assert 0 < len(labels) < 500
    hidden = 1 - one.alone
    hidden[labels] = one.alone[labels]
    assert decide(replace(one, alone=hidden), 0.1)[0] == limit


def test_a_score_that_says_nothing_has_one_threshold() -> None:
    rng = np.random.default_rng(0)
    constant = pool(np.full(1_000, 0.3), rng.random(1_000) < 0.001)
    limit, labels = decide(constant, 0.05)
    assert limit == 0.3
    assert len(labels) < 200
    assert decide(replace(constant, alone=np.ones((1_000, 1))), 0.05)[0] == -np.inf


def test_where_labels_run_out_people_label() -> None:
    one = world(2_000, seed=1)
    asked = np.arange(2_000) < 15
    limit, labels = decide(replace(one, asked=asked), 0.05)
    assert limit == -np.inf
    assert set(labels.tolist()) <= set(range(15))


def test_at_most_epsilon_of_the_answers_differ_as_often_as_it_promises() -> None:
    size, draws, epsilon = 600, 800, 0.1
    rng = np.random.default_rng(7)
    u = np.linspace(0, 1, size)
    # One error too many, evenly spread: "everything" is the only false threshold, and all others hardly pass.
    wrong = np.zeros(size, dtype=np.bool_)
    wrong[np.linspace(0, size - 1, int(epsilon * size) + 1).astype(int)] = True
    false = {ALPHA: 0, 0.3: 0}
    for _ in range(draws):
        order = rng.permutation(size)
        one = pool(u[order], wrong[order])
        for alpha in false:
            (stage,) = BASELINES.get("bargain_1").decide(one, epsilon=epsilon, alpha=alpha).stages
            false[alpha] += wrong[u <= stage.limit].sum() > epsilon * size
    for alpha, count in false.items():
        assert stats.binomtest(int(count), draws, alpha, alternative="greater").pvalue > 0.01
    assert false[0.3] > 0.1 * draws  # the world is hard enough to show a level that is not held


def test_an_experiment_pays_the_labels_that_it_asked_for_whatever_m() -> None:
    table = made_up(1_000, seed=3)
    shared = {"epsilons": (Decimal("0.2"),), "rules": ("bargain_1", "pac_labeling_1"), "repeats": 3}
    few, many, *others = run(table, Settings(**shared, sizes=(100, 400))).rows
    assert (few.rule, few.m, many.m) == ("bargain_1", 100, 400)
    assert few.human_labels_mean == many.human_labels_mean < 1_000
    assert few.net_saving_mean == many.net_saving_mean > 0
    assert others[0].human_labels_mean != others[1].human_labels_mean
    # The model runs on every item; people are paid for each label once.
    model, _, people = table.costs.sum(axis=0)
    paid = model + few.human_labels_mean * people / 1_000
    assert few.net_saving_mean == pytest.approx(1 - paid / people)


def test_it_promises_the_pool_that_it_chose_from_and_no_other() -> None:
    settings = Settings(
        rules=("bargain_1",), repeats=1, sizes=(100,), targets=("dataset", "pool", "population")
    )
    rows = run(made_up(300, seed=2), settings).rows
    assert [row.holds_level for row in rows] == [True, True, False]
    shifted = Settings(rules=("bargain_1",), repeats=1, sizes=(100,), severities=(0.0, 2.0))
    assert not any(row.holds_level for row in run(made_up(300, seed=2), shifted).rows)
