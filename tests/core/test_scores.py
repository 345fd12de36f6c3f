"""Scores, losses, costs, and their registries."""

from __future__ import annotations

from decimal import Decimal

import pytest

from routing.core.costs import COSTS
from routing.core.losses import LOSSES, make_loss
from routing.core.registry import Registry, UnknownNameError
from routing.core.scores import SCORES


def test_max_softmax() -> None:
    score = SCORES.get("max_softmax")
    assert score({"probabilities": [0.1, 0.7, 0.2]}).u == pytest.approx(0.3)
    assert score({"probabilities": {"cat": 0.25, "dog": 0.75}}).u == 0.25
    assert score({"probabilities": [1.0000001, 0.0]}).u == 0.0  # a float32 softmax may end up here
    assert score({"probabilities": [0.1, 0.7, 0.2]}).usable


@pytest.mark.parametrize(
    ("probabilities", "reason"),
    [
        (None, "missing"),
        ([], "missing"),
        ("0.5", "missing"),
        ([0.5, float("nan")], "NaN"),
        ([0.5, 0.2], "add up to 0.7"),
        ([1.5, -0.5], "outside"),
        ([0.5, "x"], "not a number"),
        ([True, False], "not a number"),
        ([0.5, None], "missing"),
    ],
)
def test_max_softmax_without_usable_probabilities(probabilities: object, reason: str) -> None:
    result = SCORES.get("max_softmax")({"probabilities": probabilities})
    assert result.u == 1.0
    assert reason in result.reason
    assert not result.usable


def test_recorded() -> None:
    score = SCORES.get("recorded")
    assert score({"confidence": 0.75}).u == 0.25
    assert score({"confidence": "0.75"}).u == 0.25
    assert score({"uncertainty": 0.1, "confidence": 0.2}).u == 0.1
    assert score({"uncertainty": None, "confidence": 1}).u == 0.0
    assert score({"uncertainty": 0}).u == 0.0


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        ({}, "missing"),
        ({"confidence": ""}, "missing"),
        ({"confidence": float("nan")}, "NaN"),
        ({"confidence": "inf"}, "outside"),
        ({"confidence": 1.01}, "outside"),
        ({"uncertainty": -0.01}, "outside"),
        ({"confidence": "high"}, "not a number"),
        ({"confidence": [0.5]}, "not a number"),
        ({"confidence": 10**400}, "not a number"),
    ],
)
def test_recorded_without_a_usable_value(prediction: dict[str, object], reason: str) -> None:
    result = SCORES.get("recorded")(prediction)
    assert (result.u, result.usable) == (1.0, False)
    assert reason in result.reason


def test_zero_one_loss() -> None:
    loss = make_loss("zero_one")
    assert (loss("a", "a"), loss("a", "b"), loss.bound, loss.binary) == (0.0, 1.0, 1.0, True)


def test_flat_cost() -> None:
    cost = COSTS.get("flat")
    assert cost(prices={"per_label": Decimal("0.02")}, usage={"tokens": Decimal(900)}) == Decimal("0.02")
    with pytest.raises(ValueError, match="per_label"):
        cost(prices={}, usage={})
    with pytest.raises(ValueError, match="at least 0"):
        cost(prices={"per_label": Decimal(-1)}, usage={})


def test_a_registry_names_what_it_knows() -> None:
    with pytest.raises(UnknownNameError, match="no score 'nope'; choose one of: max_softmax, recorded"):
        SCORES.get("nope")
    with pytest.raises(ValueError, match="already a loss named 'zero_one'"):
        Registry("loss", LOSSES.get("zero_one"), LOSSES.get("zero_one"))
    assert "zero_one" in LOSSES
    assert [loss.name for loss in LOSSES] == list(LOSSES.names())
