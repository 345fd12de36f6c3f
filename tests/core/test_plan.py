"""Plans: what is refused, and what a plan can promise before any label."""

from __future__ import annotations

from decimal import Decimal

import pytest

from routing.core.plan import Plan, PlanError, cost_warnings, default_pilot_size, validate
from routing.core.planner import outlook, smallest_n
from tests.core.worlds import plan_of


def test_a_good_plan_passes() -> None:
    for target in ("dataset", "pool", "population"):
        validate(plan_of(3000, 500, target=target))
        validate(plan_of(3000, 500, target=target, bound="hoeffding"))


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"epsilon": "0"}, "epsilon", "between 0 and 1"),
        ({"epsilon": "1"}, "epsilon", "between 0 and 1"),
        ({"alpha": "1.5"}, "alpha", "between 0 and 1"),
        ({"alpha": "-0.05"}, "alpha", "between 0 and 1"),
        ({"p": "0"}, "p", "above 0"),
        ({"p": "1.01"}, "p", "at most 1"),
        ({"m": 3001}, "m", "cannot be drawn from a pool of 3000"),
        ({"m": 0}, "m", "at least 1"),
        ({"m": 1, "p": "0.5"}, "m", "fewer than one label"),
        ({"pool_size": 0}, "pool_size", "at least 1"),
        ({"costs": (1,)}, "costs", "two sources"),
        ({"costs": (1, -2, 8)}, "costs", "cannot be negative"),
        ({"costs": (1, 2, 0)}, "costs", "nothing to save"),
        ({"pilot_size": -1}, "pilot_size", "between 0"),
        ({"pilot_size": 3001}, "pilot_size", "between 0"),
        ({"target": "everything"}, "target", "choose one of: dataset, pool, population"),
        ({"loss": "hinge"}, "loss", "choose one of: zero_one"),
        ({"bound": "magic"}, "bound", "choose one of"),
        ({"rule": "guess"}, "rule", "choose one of"),
        ({"rule": "pointwise_argmin"}, "rule", "use 'fixed_sequence'"),
        ({"rule": "lexicographic"}, "rule", "use 'fixed_sequence'"),
        ({"bound": "binomial"}, "bound", "use 'hypergeometric'"),
        ({"bound": "clt"}, "bound", "cannot certify"),
        ({"target": "population", "bound": "hypergeometric"}, "bound", "use 'binomial'"),
        ({"target": "population", "m": 3000}, "m", "outside the calibration set"),
        ({"target": "population", "m": 2900, "pilot_size": 100}, "m", "outside the calibration set"),
    ],
)
def test_a_bad_plan_is_refused_with_its_field(changes: dict[str, object], field: str, message: str) -> None:
    with pytest.raises(PlanError, match=message) as refused:
        validate(plan_of(**{"size": 3000, "m": 500, **changes}))  # type: ignore[arg-type]
    assert refused.value.field == field


def test_numbers_that_are_none_are_refused_at_once() -> None:
    with pytest.raises(PlanError, match="epsilon") as refused:
        plan_of(100, 50, epsilon="five")
    assert refused.value.field == "epsilon"


def test_floats_are_read_by_their_shortest_text() -> None:
    plan = plan_of(100, 50, epsilon=0.29)
    assert plan.epsilon == Decimal("0.29")
    assert plan.budget == 29


def test_costs_out_of_order_are_warned_about_only() -> None:
    plan = plan_of(3000, 500, costs=(6000, 1000, 32768))
    validate(plan)
    assert "source 2 costs 1000" in cost_warnings(plan)[0]
    assert cost_warnings(plan_of(3000, 500)) == ()


def test_the_size_of_the_pilot() -> None:
    assert default_pilot_size(3000, 3) == 200
    assert default_pilot_size(500, 4) == 100
    assert default_pilot_size(3000, 2) == 0
    assert plan_of(3000, 500, pilot_size=7).pilot == 7
    assert plan_of(1000, 990, target="population").pilot == 9  # one item stays out of both


@pytest.mark.parametrize(
    ("target", "size", "m", "p", "allowed"),
    [
        ("dataset", 3000, 500, "0.9", 17),
        ("pool", 3000, 500, "0.9", 15),
        ("population", 3000, 500, "0.9", 14),
        ("dataset", 1000, 58, "1", 0),
        ("population", 1000, 58, "1", -1),
    ],
)
def test_the_outlook_before_any_label(target: str, size: int, m: int, p: str, allowed: int) -> None:
    view = outlook(plan_of(size, m, p=p, target=target))
    assert view.allowed_errors_at_expected_n == allowed
    assert view.expected_human_labels == m * Decimal(p)
    assert view.certifiable is (allowed >= 0)
    assert view.certifiable is (m * float(p) >= view.smallest_n)


def test_the_outlook_says_how_many_labels_are_missing() -> None:
    view = outlook(plan_of(1000, 40, p="1"))
    assert not view.certifiable
    assert "at least 56 labels are needed" in view.sentence
    impossible = outlook(plan_of(40, 20, p="1", target="population"))
    assert "no draw of this pool would do" in impossible.sentence


def test_more_chains_need_more_labels() -> None:
    plan = plan_of(1000, 100)
    assert smallest_n(plan) == 56
    assert smallest_n(plan, chains=2) > 56


def test_a_plan_cannot_be_changed() -> None:
    plan: Plan = plan_of(1000, 100)
    with pytest.raises(AttributeError):
        plan.epsilon = Decimal("0.1")  # type: ignore[misc]
