"""The score that is fitted on other labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import expit

from routing.core.scores import Example, fit_score, make_score
from routing.core.scores.base import ScoreError
from routing.core.scores.calibrated import fit_logistic

pytestmark = pytest.mark.costly


def examples(count: int = 4_000, seed: int = 1) -> list[Example]:
    """P(wrong) = expit(-1 + logit(u) / 2 + 1 where the answer is a dog); `samples` are useless noise."""
    random = np.random.default_rng(seed)
    made = []
    for u, dog, chance, noise in zip(
        random.random(count),
        random.random(count) < 0.5,
        random.random(count),
        random.random(count),
        strict=True,
    ):
        wrong = chance < expit(-1 + 0.5 * np.log(u / (1 - u)) + dog)
        prediction: dict[str, object] = {
            "uncertainty": float(u),
            "samples": ["dog" if dog else "cat", "cat" if noise < 0.5 else "dog"],
            "label": "dog" if dog else "cat",
        }
        made.append(Example(prediction, bool(wrong)))
    return made


def never() -> Sequence[Example]:
    raise AssertionError("nothing has to be learnt")


def test_it_finds_the_chance_of_an_error() -> None:
    params = fit_score("calibrated", {"scores": ["recorded", "ensemble"]}, examples)
    assert params["fitted"]["examples"] == 4_000
    assert params["fitted"]["coefficients"][0] == pytest.approx(0.5, abs=0.1)
    assert params["fitted"]["coefficients"][1] == pytest.approx(0, abs=0.05)
    score = make_score("calibrated", params)
    for u, label, dog in ((0.2, "cat", 0), (0.7, "dog", 1)):
        prediction = {"uncertainty": u, "label": label, "samples": [label, label]}
        truth = expit(-1 + 0.5 * np.log(u / (1 - u)) + dog)
        assert score(prediction).u == pytest.approx(truth, abs=0.05)


def test_a_label_that_it_never_saw_has_no_offset() -> None:
    params = fit_score("calibrated", {"scores": ["recorded"]}, examples)
    score = make_score("calibrated", params)
    cat, dog, emu = (score({"uncertainty": 0.5, "label": name}).u for name in ("cat", "dog", "emu"))
    assert cat < emu < dog


def test_without_offsets_it_keeps_the_order_of_its_only_score() -> None:
    params = fit_score("calibrated", {"scores": ["recorded"], "by_label": False}, examples)
    assert params["fitted"]["offsets"] == {}
    score = make_score("calibrated", params)
    values = [score({"uncertainty": u, "label": "cat"}).u for u in np.linspace(0, 1, 51).tolist()]
    assert values == sorted(values)
    assert 0 <= values[0] < values[-1] <= 1


def test_it_minimises_the_penalised_loss() -> None:
    random = np.random.default_rng(3)
    x, groups = random.normal(size=(300, 2)), random.integers(0, 3, 300)
    wrong = random.random(300) < expit(x[:, 0])
    theta = fit_logistic(x, groups, 3, wrong)
    residual = expit(theta[0] + x @ theta[1:3] + theta[3:][groups]) - wrong
    gradient = [residual.sum(), *(x * residual[:, None]).sum(axis=0)]
    gradient += [residual[groups == group].sum() for group in range(3)]
    penalty = np.array([0.01, 0.01, 0.01, 10, 10, 10]) * theta
    assert np.abs(np.array(gradient) + penalty).max() < 0.05


def test_a_score_that_separates_right_from_wrong_stays_finite() -> None:
    clear = [Example({"uncertainty": float(wrong), "label": "cat"}, wrong) for wrong in [True, False] * 20]
    score = make_score("calibrated", fit_score("calibrated", {"scores": ["recorded"]}, lambda: clear))
    assert (
        score({"uncertainty": 0, "label": "cat"}).u
        < 0.05
        < 0.95
        < score({"uncertainty": 1, "label": "cat"}).u
    )


def test_parts_that_cannot_be_used_make_it_unusable() -> None:
    params = fit_score("calibrated", {"scores": ["recorded"]}, examples)
    result = make_score("calibrated", params)({"label": "cat"})
    assert (result.u, result.reason) == (1.0, "recorded: the recorded confidence is missing")


def test_too_few_examples_are_refused_in_words() -> None:
    def fit(some: list[Example]) -> None:
        fit_score("calibrated", {"scores": ["recorded"]}, lambda: some)

    with pytest.raises(ScoreError, match=r"needs 30 labelled items.*there are 29"):
        fit(examples(29))
    unusable = [Example({"label": "cat"}, True)] * 100
    with pytest.raises(ScoreError, match="there are 0"):
        fit(unusable)
    right = [example for example in examples() if not example.wrong]
    with pytest.raises(ScoreError, match="are right"):
        fit(right)


def test_what_is_fitted_already_stays() -> None:
    params = fit_score("calibrated", {"scores": ["recorded"]}, examples)
    assert fit_score("calibrated", params, never) == params
    assert fit_score("logits", {}, never) == {}


def test_a_hybrid_has_its_parts_fitted() -> None:
    wanted = {
        "scores": [{"score": "calibrated", "params": {"scores": ["recorded"]}, "weight": 2}, "recorded"]
    }
    params = fit_score("hybrid", wanted, examples)
    assert params["scores"][0]["params"]["fitted"]["examples"] == 4_000
    prediction = {"uncertainty": 0.5, "label": "cat"}
    part = make_score("calibrated", params["scores"][0]["params"])(prediction).u
    assert make_score("hybrid", params)(prediction).u == pytest.approx((2 * part + 0.5) / 3)


FITTED = {"intercept": 0.0, "coefficients": [1.0], "offsets": {}, "examples": 30}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"scores": ["recorded"]}, "not been fitted"),
        ({"scores": ["calibrated"]}, "cannot be made of 'calibrated'"),
        ({"scores": ["recorded"], "by_label": "yes"}, "by_label"),
        ({"scores": ["recorded"], "fitted": 1}, "fitted cannot be read"),
        (
            {"scores": ["recorded"], "fitted": FITTED | {"coefficients": [1, 2]}},
            "2 coefficients for 1 scores",
        ),
        ({"scores": ["recorded"], "fitted": FITTED | {"intercept": "inf"}}, "not finite"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(ScoreError, match=words):
        make_score("calibrated", params)
