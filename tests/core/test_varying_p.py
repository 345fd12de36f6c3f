"""Probabilities of asking that differ from item to item: weights, draws, refusals and the level."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from routing.core.bounds import BOUNDS
from routing.core.calibration import ObservedLosses, observed_losses, sorted_losses
from routing.core.calibration_rows import CalibrationError
from routing.core.certify import certify_losses, risk_path
from routing.core.keys import pack_thresholds
from routing.core.losses import make_loss
from routing.core.outlook import outlook
from routing.core.plan import Plan, PlanError, validate
from routing.core.sampling import draw_calibration
from tests.core.worlds import at, calibration_of, plan_of, policies

pytestmark = [pytest.mark.costly, pytest.mark.no_cover]

LOW, HIGH = Decimal("0.25"), Decimal("0.75")


def varying(size: int, m: int, **changes: object) -> Plan:
    """Half of the pool is asked about with probability LOW, half with HIGH."""
    return plan_of(size, m, p="0.5", p_min=str(LOW), costs=(1, 10), **changes)


def test_each_drawn_item_is_asked_with_its_own_probability() -> None:
    size, drawn = 2000, 1000
    shares = [LOW if k < size // 2 else HIGH for k in range(size)]
    counts = {LOW: 0, HIGH: 0}
    asked = {LOW: 0, HIGH: 0}
    for entropy in range(10):
        draw = draw_calibration(pool_size=size, m=drawn, p=shares, entropy=entropy)
        same = draw_calibration(pool_size=size, m=drawn, p="0.5", entropy=entropy)
        np.testing.assert_array_equal(draw.positions, same.positions)
        for position, z in zip(draw.positions.tolist(), draw.asked.tolist(), strict=True):
            counts[shares[position]] += 1
            asked[shares[position]] += z
            raw_asked = same.asked[draw.positions == position][0]
            assert z <= raw_asked if shares[position] == LOW else z >= raw_asked
    for share in (LOW, HIGH):
        assert stats.binomtest(asked[share], counts[share], float(share)).pvalue > 1e-3


def test_a_constant_list_of_probabilities_is_the_constant() -> None:
    one = draw_calibration(pool_size=50, m=20, p="0.3", entropy=5)
    other = draw_calibration(pool_size=50, m=20, p=["0.3"] * 50, entropy=5)
    np.testing.assert_array_equal(one.asked, other.asked)


def test_probabilities_that_are_none_are_named() -> None:
    with pytest.raises(ValueError, match="49 probabilities of asking came for a pool of 50"):
        draw_calibration(pool_size=50, m=20, p=["0.3"] * 49, entropy=5)
    with pytest.raises(ValueError, match=r"pool position \d+: p = 1.2"):
        draw_calibration(pool_size=50, m=20, p=["1.2"] * 50, entropy=5)


def test_the_losses_carry_their_weights() -> None:
    """Z l / p_i over all drawn rows, in draw order, zero where nobody was asked."""
    plan = varying(100, 4)
    calibration = calibration_of(
        [0.4, 0.3, 0.2, 0.1],
        ["right"] * 4,
        [["wrong"], ["wrong"], ["right"], ["wrong"]],
        plan=plan,
        asked=[True, False, True, True],
    )
    rows = [replace(row, p=p) for row, p in zip(calibration.rows, (LOW, HIGH, HIGH, HIGH), strict=True)]
    calibration = replace(calibration, rows=tuple(rows))
    calibration.check(plan)
    losses = observed_losses(calibration, loss=make_loss("zero_one"), sources=2)
    evidence = losses.evidence_of(plan, pack_thresholds([(None,), (at(0.15),), (at(1.0),)]))
    third = 1 / float(HIGH)
    assert evidence.total.tolist() == [0, 1, 2]
    assert evidence.weighted is not None
    np.testing.assert_allclose(evidence.weighted, [0, third, third + 4])
    np.testing.assert_allclose(evidence.weighted_mean_square, [0, third**2 / 4, (third**2 + 16) / 4])
    assert evidence.rows is not None
    np.testing.assert_allclose(evidence.rows(1, 3), [[0, 0, 0, third], [4, 0, 0, third]])
    points = risk_path(plan_like(plan), policies([(at(0.15),), (at(1.0),)]), calibration)
    assert [point.estimate for point in points] == pytest.approx([0, third / 4, (third + 4) / 4])


def plan_like(plan: Plan) -> Plan:
    return replace(plan, target="pool")


@pytest.mark.parametrize(
    ("p", "words"),
    [("0.2", r"p = 0.2, outside the plan's 0.25 \.\. 1"), ("1.01", "p = 1.01, outside the plan's")],
)
def test_a_probability_outside_the_plan_is_named(p: str, words: str) -> None:
    plan = varying(100, 2)
    calibration = calibration_of([0.1, 0.2], ["a", "a"], [["a"], ["a"]], plan=plan)
    first = replace(calibration.rows[0], p=Decimal(p))
    calibration = replace(calibration, rows=(first, calibration.rows[1]))
    with pytest.raises(CalibrationError, match=rf"row 0 \(item 'i0'\): people were asked with {words}"):
        calibration.check(plan)


def test_losses_without_weights_are_refused() -> None:
    losses = sorted_losses([0.1], [0], np.zeros((1, 1)), np.zeros((1, 1)), drawn=2)
    with pytest.raises(ValueError, match="weight 1 / p_i"):
        losses.evidence_of(varying(100, 2), pack_thresholds([(None,)]))


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"p_min": "0.6"}, "p", "at most the mean"),
        ({"p_min": "0"}, "p", "above 0"),
        ({"rule": "split_fixed_sequence"}, "rule", "use 'fixed_sequence'"),
        ({"bound": "hypergeometric"}, "bound", "use '"),
        ({"bound": "betting_upper"}, "bound", "use '"),
        ({"bound": "binomial", "target": "population"}, "bound", "use '"),
    ],
)
def test_what_needs_one_probability_is_refused_in_words(
    changes: dict[str, object], field: str, words: str
) -> None:
    plan = replace(varying(3000, 500), **{k: Decimal(v) if k == "p_min" else v for k, v in changes.items()})  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=words) as refused:
        validate(plan)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("target", "bound"),
    [("dataset", "hoeffding_bentkus"), ("pool", "hoeffding_bentkus"), ("population", "betting_upper")],
)
def test_the_default_bound_is_valid(target: str, bound: str) -> None:
    plan = varying(3000, 500, target=target)
    validate(plan)
    assert plan.bound_rule().name == bound


EVERYTHING = policies([(at(1.0),)])


def draw_once(wrong: np.ndarray, shares: np.ndarray, m: int, rng: np.random.Generator) -> ObservedLosses:
    """Losses of one model on a random draw; who is wrong is asked about more seldom."""
    items = rng.permutation(len(wrong))[:m]
    z = rng.random(m) < shares[items]
    asked = items[z]
    return sorted_losses(
        asked / len(wrong),
        np.zeros(len(asked), dtype=int),
        wrong[asked, None],
        wrong[asked, None],
        drawn=m,
        order=np.flatnonzero(z),
        weights=1 / shares[asked],
    )


def test_the_weighted_mean_is_unbiased_where_the_plain_one_is_not() -> None:
    rng = np.random.default_rng(11)
    wrong = (np.arange(400) < 80).astype(float)
    shares = np.where(wrong > 0, float(LOW), float(HIGH))
    plan = varying(400, 100, target="pool")
    estimates, plain = [], []
    for _ in range(2000):
        evidence = draw_once(wrong, shares, 100, rng).evidence_of(plan, EVERYTHING.thresholds)
        estimates.append(evidence.weighted_mean[1])
        plain.append(evidence.mean[1])
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - 0.2) < 4 * error
    assert np.mean(plain) < 0.12


@pytest.mark.parametrize(
    ("target", "bound", "rounds"),
    [
        ("pool", "hoeffding_bentkus", 2000),
        ("pool", "hoeffding", 2000),
        ("population", "betting_upper", 400),
        ("population", "empirical_bernstein", 1000),
    ],
)
def test_the_level_holds_where_the_wrong_are_asked_about_more_seldom(
    target: str, bound: str, rounds: int
) -> None:
    """One policy just above the limit; the plain mean would certify it nearly always."""
    rng = np.random.default_rng(12)
    size, m = 1200, 800
    plan = varying(size, m, target=target, bound=bound, epsilon="0.3", alpha="0.2")
    validate(plan)
    limit = plan.budget + 1
    false = unweighted = 0
    for _ in range(rounds):
        chance = rng.random(size) < limit / size if target == "population" else np.arange(size) < limit
        wrong = chance.astype(float)
        shares = np.where(wrong > 0, float(LOW), float(HIGH))
        losses = draw_once(wrong, shares, m, rng)
        false += certify_losses(plan, [EVERYTHING], losses).certified
        unweighted += losses.upper.mean() <= 0.25
    assert stats.binom.sf(false - 1, rounds, float(plan.alpha)) > 1e-3
    assert unweighted > 0.9 * rounds


def test_it_does_certify_what_is_good_enough() -> None:
    rng = np.random.default_rng(13)
    wrong = (np.arange(3000) < 60).astype(float)
    shares = np.where(rng.random(3000) < 0.5, float(LOW), float(HIGH))
    for target in ("dataset", "population"):
        plan = varying(3000, 1500, target=target, epsilon="0.2")
        result = certify_losses(plan, [EVERYTHING], draw_once(wrong, shares, 1500, rng))
        assert result.certified
        assert result.allowed_errors is None
        assert ("holds for the whole pool" in result.sentence) == (target == "dataset")
        assert result.pointwise_upper_bound is not None
        assert 0.02 < result.pointwise_upper_bound <= 0.2


def test_the_outlook_says_that_the_number_is_a_forecast() -> None:
    view = outlook(varying(3000, 1500, epsilon="0.2"))
    assert not view.exact
    assert "p = 0.5 on average" in view.sentence
    assert "at most about" in view.sentence
    assert view.certifiable
    assert view.smallest_n < 750
    bound = BOUNDS.get("hoeffding_bentkus")
    few = bound.smallest_sample(
        epsilon=Fraction(1, 5),
        alpha=0.05,
        p=Fraction(1, 2),
        pool_size=3000,
        loss_bound=1.0,
        p_min=Fraction(LOW),
    )
    assert view.smallest_n == few
