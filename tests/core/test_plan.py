"""Plans: what is refused, and what a plan can promise before any label."""

from __future__ import annotations

from decimal import Decimal

import pytest

from routing.core.outlook import outlook, smallest_n
from routing.core.plan import Plan, PlanError, cost_warnings, default_pilot_size, validate
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
        ({"pilot_size": 2.5}, "pilot_size", "whole number"),
        ({"pool_size": 2**53 + 1}, "pool_size", "at most 9007199254740992"),
        ({"costs": (1, 2, "1e400")}, "costs", "too large or too small"),
        ({"alpha": "1e-400"}, "alpha", "too large or too small"),
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
        ({"split_share": "1"}, "split_share", "between 0 and 1"),
        ({"loss_params": {"tolerance": 1}}, "loss_params", "tolerance"),
        ({"loss": "numeric", "loss_params": {"absolute": "-1"}}, "loss_params", "at least 0"),
        ({"loss": "jaccard", "bound": "hypergeometric"}, "bound", "needs a loss of 0 or 1; use '"),
        ({"loss": "jaccard", "target": "population", "bound": "binomial"}, "bound", "use '"),
        ({"bound": "empirical_bernstein"}, "bound", "use '"),
        ({"bound": "betting"}, "bound", "use '"),
        ({"data_set_size": 2999}, "data_set_size", "must hold the 3000 of the pool"),
        ({"data_set_size": 4000, "target": "pool"}, "data_set_size", "for the target 'dataset' only"),
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
    assert "source 2 costs 1000" in str(cost_warnings(plan)[0])
    assert cost_warnings(plan_of(3000, 500)) == ()


def test_the_size_of_the_pilot() -> None:
    """At most 200, a fifth of the pool, and 1 % of what people would cost; none below 30."""
    costs = plan_of(3000, 500).costs
    assert default_pilot_size(100_000, costs) == 200
    assert default_pilot_size(3000, costs) == 163  # 163 * 6000 <= 0.01 * 3000 * 32768 < 164 * 6000
    assert default_pilot_size(200, plan_of(200, 50, costs=(0, 0, 1)).costs) == 40
    assert default_pilot_size(164, costs) == 0
    assert default_pilot_size(3000, costs[1:]) == 0
    assert plan_of(3000, 500, pilot_size=7).pilot == 7
    assert plan_of(3000, 500, rule="split_fixed_sequence").pilot == 0
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
    assert view.sentence.startswith("All 40 drawn items go to people: too few to certify")
    assert outlook(plan_of(1000, 200)).sentence.startswith(
        "About 180 of 200 drawn items go to people (p = 0.9). "
    )
    impossible = outlook(plan_of(40, 20, p="1", target="population"))
    assert "no draw of this pool would do" in impossible.sentence


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({}, "hypergeometric"),
        ({"target": "population"}, "binomial"),
        ({"loss": "jaccard"}, "betting_upper"),
        ({"loss": "jaccard", "target": "population"}, "betting_upper"),
        ({"p_min": "0.1"}, "hoeffding_bentkus"),
        ({"p_min": "0.1", "loss": "jaccard"}, "hoeffding_bentkus"),
        ({"p_min": "0.1", "target": "population"}, "betting_upper"),
    ],
)
def test_the_default_bound_fits_target_loss_and_asking(changes: dict[str, object], bound: str) -> None:
    plan = plan_of(3000, 500, **changes)
    validate(plan)
    assert plan.bound_rule().name == bound


def test_the_outlook_of_a_loss_that_is_no_count_is_a_mean() -> None:
    view = outlook(plan_of(3000, 500, loss="jaccard"))
    assert not view.exact
    assert view.allowed_mean_loss == view.allowed_errors_at_expected_n / 450
    assert 0 < view.allowed_mean_loss < 0.05
    assert f"a mean loss of at most about {view.allowed_mean_loss:.3g}" in view.sentence
    assert "certified at a mean loss of 0.05" in view.sentence
    few = outlook(plan_of(3000, 50, loss="jaccard"))
    assert few.allowed_mean_loss is None
    assert "even if none shows a loss" in few.sentence


def test_a_data_set_of_more_than_the_pool_allows_more_in_the_pool() -> None:
    plan, own = plan_of(700, 200, data_set_size=1000), plan_of(700, 200)
    assert (plan.budget, own.budget) == (50, 35)
    assert plan.risk_limit * 700 == 50
    assert smallest_n(plan) < smallest_n(own)
    assert outlook(plan).allowed_errors_at_expected_n > outlook(own).allowed_errors_at_expected_n
    whole = plan_of(40, 20, data_set_size=1000)  # all forty may be wrong
    assert smallest_n(whole) == 1
    assert outlook(whole).certifiable


def test_more_chains_need_more_labels() -> None:
    plan = plan_of(1000, 100)
    assert smallest_n(plan) == 56
    assert smallest_n(plan, chains=2) > 56


def test_a_plan_cannot_be_changed() -> None:
    plan: Plan = plan_of(1000, 100)
    with pytest.raises(AttributeError):
        plan.epsilon = Decimal("0.1")  # type: ignore[misc]
