"""The cascade of LOTUS: its bound by hand and as a loop, and what its promise needs."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

from routing.core.baselines import BASELINES, Labelled
from tests.core.test_bargain import pool, world

EPSILON, ALPHA = 0.1, 0.05


def limit_of(one: Labelled, epsilon: float = EPSILON) -> float:
    (stage,) = BASELINES.get("lotus_1").decide(one, epsilon=epsilon, alpha=ALPHA).stages
    return stage.limit


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_quantile_is_taken_whose_lower_bound_is_above_the_target(seed: int) -> None:
    one = world(900, seed=seed)
    asked = np.random.default_rng(seed).random(900) < 0.9
    score, right = one.u[:, 0], 1 - one.alone[:, 0]
    best = -np.inf
    for place in range(1, 51):
        candidate = np.sort(score)[-(-place * 900 // 50) - 1]
        shown = right[asked & (score <= candidate)]
        bound = shown.mean() - shown.std() * sqrt(2 * log(asked.sum() / ALPHA) / len(shown))
        if bound > 1 - EPSILON:
            best = candidate
    assert np.isfinite(best)
    assert limit_of(Labelled(**{**vars(one), "asked": asked})) == best


def test_one_right_answer_is_enough() -> None:
    u = np.linspace(0, 1, 50)
    assert limit_of(pool(u, u > 0)) == 0.0
    assert limit_of(pool(u, u >= 0)) == -np.inf


def test_with_many_labels_the_items_that_the_model_labels_err_as_seldom_as_promised() -> None:
    rng = np.random.default_rng(5)
    draws, false, used = 300, 0, 0
    for _ in range(draws):
        u = rng.random(4_000)
        limit = limit_of(pool(u, rng.random(4_000) < 0.6 * u**2))
        # The model errs on .6 x^2 / 3 of new items up to x.
        used += limit > 0.5
        false += 0.2 * max(limit, 0) ** 2 > EPSILON
    assert used == draws
    assert stats.binomtest(false, draws, ALPHA, alternative="greater").pvalue > 0.01


def test_with_few_labels_it_breaks_that_promise() -> None:
    rng = np.random.default_rng(5)
    # The model errs on three of ten items whatever its score: nothing may be left to it.
    broken = sum(limit_of(pool(rng.random(100), rng.random(100) < 0.3)) > 0 for _ in range(200))
    assert broken > 60
