"""The baselines do what the paper prints, literally transcribed here as plain loops."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from routing.core.baselines import BASELINES, Labelled
from routing.core.cascade import NO_TIES, Decision, Stage
from tests.core.tables import made_up

EPSILON, ALPHA = 0.1, 0.05


def sample(size: int, *, seed: int, models: int = 2, ties: int | None = None, share: float = 0.9) -> Labelled:
    table = made_up(size, seed=seed, models=models, ties=ties)
    asked = np.random.default_rng(seed + 100).random(size) < share
    return Labelled(
        u=table.u,
        asked=asked,
        p=np.full(size, share),
        loss=table.final_loss[:, :-1],
        alone=table.loss,
        cost=table.path_cost,
        loss_bound=1.0,
        binary=True,
        constant_p=True,
        pool_size=size,
    )


def routed(one: Labelled, thresholds: tuple[float, ...]) -> np.ndarray:
    """Source of each item by U <= u_k."""
    source = np.full(len(one.u), one.models)
    for k in reversed(range(one.models)):
        source[one.u[:, 0] <= thresholds[k]] = k
    return source


@pytest.mark.parametrize("model", [0, 1])
@pytest.mark.parametrize("ties", [None, 1])
@pytest.mark.parametrize("seed", range(3))
def test_pac_labeling_is_algorithm_2(model: int, ties: int | None, seed: int) -> None:
    one = sample(200, seed=seed, ties=ties)
    best = -np.inf
    for u in one.u[:, model]:
        w = np.where(one.asked & (one.u[:, model] <= u), one.alone[:, model] / 0.9, 0.0)
        bound = w.mean() + stats.norm.isf(ALPHA) * w.std(ddof=1) / np.sqrt(len(w))
        if bound <= EPSILON:
            best = max(best, float(u))
    decision = BASELINES.get(f"pac_labeling_{model + 1}").decide(one, epsilon=EPSILON, alpha=ALPHA)
    assert decision.models == (model,)
    assert decision.stages == (Stage(model, model, best, NO_TIES),)
    assert np.isfinite(best)
    # "U < u_hat" strictly: the item at the threshold goes to people.
    nominal, _ = decision.apply(one.u, np.zeros(200, np.int64))
    assert np.array_equal(nominal == 0, one.u[:, model] < best)


def test_pac_labeling_leaves_everything_to_people_where_no_score_is_safe() -> None:
    one = sample(100, seed=1)
    decision = BASELINES.get("pac_labeling_1").decide(
        Labelled(**{**vars(one), "u": np.full_like(one.u, 0.5), "alone": np.ones_like(one.alone)}),
        epsilon=EPSILON,
        alpha=ALPHA,
    )
    nominal, ran = decision.apply(np.full_like(one.u, 0.1), np.zeros(100, np.int64))
    assert (nominal == 1).all()
    assert ran.all()


@pytest.mark.parametrize("models", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_coannotating_is_algorithm_3(models: int, seed: int) -> None:
    one = sample(45, seed=seed, models=models, ties=1 if models == 3 else None)
    scores = np.unique(one.u[:, 0])
    least, chosen = np.inf, None
    for thresholds in combinations_with_replacement(scores, models):
        source = routed(one, thresholds)
        loss = np.column_stack([one.loss, np.zeros(45)])[np.arange(45), source]
        cost = one.cost[np.arange(45), source].sum()
        if loss[one.asked].mean() <= EPSILON and cost < least - 1e-9:
            least, chosen = cost, thresholds
    assert chosen is not None
    decision = BASELINES.get("coannotating").decide(one, epsilon=EPSILON, alpha=ALPHA)
    nominal, _ = decision.apply(one.u, np.zeros(45, np.int64))
    loss = np.column_stack([one.loss, np.zeros(45)])[np.arange(45), nominal]
    assert loss[one.asked].mean() <= EPSILON
    assert one.cost[np.arange(45), nominal].sum() == pytest.approx(least)


def test_coannotating_tries_no_thresholds_below_the_smallest_score() -> None:
    one = sample(30, seed=2)
    wrong = Labelled(**{**vars(one), "loss": np.ones_like(one.loss)})
    nominal, _ = (
        BASELINES.get("coannotating")
        .decide(wrong, epsilon=0.01, alpha=ALPHA)
        .apply(one.u, np.zeros(30, np.int64))
    )
    assert (nominal == 2).all()


@pytest.mark.parametrize("ties", [None, 1])
@pytest.mark.parametrize("seed", range(4))
def test_cse_tests_each_tier_from_the_most_certain_on(ties: int | None, seed: int) -> None:
    one = sample(600, seed=seed, ties=ties)
    waiting = one.asked.copy()
    expected = []
    for model in range(2):
        limit = -np.inf
        for score in np.unique(one.u[waiting, model]):
            taken = waiting & (one.u[:, model] <= score)
            n, wrong = int(taken.sum()), int(one.loss[taken, model].sum())
            if (1 - EPSILON) ** n > ALPHA / 2:
                continue
            if stats.binom.cdf(wrong, n, EPSILON) > ALPHA / 2:
                break
            limit = float(score)
        expected.append(limit)
        waiting &= ~(one.u[:, model] <= limit)
    decision = BASELINES.get("cse").decide(one, epsilon=EPSILON, alpha=ALPHA)
    assert [stage.limit for stage in decision.stages] == expected
    assert np.isfinite(expected).any()
    # The second model has to run on whatever the first did not take, also where people label in the end.
    nominal, ran = decision.apply(one.u, np.zeros(600, np.int64))
    assert ran[:, 0].all()
    assert np.array_equal(ran[:, 1], nominal > 0)


def test_the_best_single_model_is_the_one_with_the_fewest_weighted_errors() -> None:
    one = sample(200, seed=3)
    decision = BASELINES.get("best_single_model").decide(one, epsilon=EPSILON, alpha=ALPHA)
    errors = np.where(one.asked[:, None], one.alone, 0).sum(axis=0)
    assert decision.models == (int(np.argmin(errors)),)
    nominal, _ = decision.apply(one.u, np.zeros(200, np.int64))
    assert (nominal == 0).all()


def test_people_only_pays_no_model() -> None:
    decision = BASELINES.get("people_only").decide(sample(20, seed=0), epsilon=EPSILON, alpha=ALPHA)
    assert decision == Decision((), ())


@pytest.mark.parametrize(
    ("name", "scored", "binary", "constant_p", "words"),
    [
        ("pac_labeling_2", (True,), True, True, "needs 2 models; the table has 1"),
        ("pac_labeling_2", (True, False), True, True, "conf2 or u2"),
        ("cse", (True, False), True, True, "model 2 has none"),
        ("cse", (True, True), False, True, "loss of 0 or 1"),
        ("cse", (True, True), True, False, "one probability of asking"),
        ("best_single_model", (), True, True, "needs a model"),
        *(
            case
            for name in ("bargain", "lotus")
            for case in (
                (f"{name}_2", (True,), True, True, "needs 2 models; the table has 1"),
                (f"{name}_2", (True, False), True, True, "conf2 or u2"),
                (f"{name}_1", (True,), False, True, "right and wrong answers"),
                (f"{name}_1", (True,), True, False, "one probability of asking"),
            )
        ),
    ],
)
def test_what_a_baseline_cannot_do_is_said(
    name: str, scored: tuple[bool, ...], binary: bool, constant_p: bool, words: str
) -> None:
    said = str(BASELINES.get(name).refusal(scored=scored, binary=binary, constant_p=constant_p))
    assert words in said


def test_every_baseline_takes_a_full_table() -> None:
    for baseline in BASELINES:
        assert baseline.refusal(scored=(True, True), binary=True, constant_p=True) is None
        assert str(baseline.summary).endswith(".")
