"""What happens after the calibration: the audit, its alarms, the final audit, and what is told of people."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from routing.core.reference.audit import (
    AuditProcess,
    FinalAudit,
    alarm_at,
    audit_wealth,
    audited,
    queue_order,
)
from routing.core.reference.estimate import count_interval, overlap_disagreement

pytestmark = pytest.mark.costly

ETA = 0.05


def test_the_process_is_the_mean_of_three_likelihood_ratios() -> None:
    wrong = np.array([False, True, False, True, True])
    expected = []
    for t in range(1, 6):
        products = []
        for factor in (1.5, 2, 3):
            rate = min(factor * 0.4, 0.95)
            steps = [rate / 0.4 if x else (1 - rate) / 0.6 for x in wrong[:t]]
            products.append(np.prod(steps))
        expected.append(np.mean(products))
    assert audit_wealth(wrong, 0.4) == pytest.approx(expected, rel=1e-12)
    assert len(audit_wealth([], 0.4)) == 0
    for eta in (0.0, 0.95, 0.97, 1.0):
        with pytest.raises(ValueError, match="eta"):
            audit_wealth(wrong, eta)


def test_the_process_goes_on_from_what_was_kept() -> None:
    wrong = np.random.default_rng(5).random(60) < 0.2
    process = AuditProcess()
    for start in range(0, 60, 7):
        process = process.after(wrong[start : start + 7], ETA).after([], ETA)
    assert process.highest == pytest.approx(audit_wealth(wrong, ETA).max(), rel=1e-12)


def test_false_alarms_stay_below_their_level_for_ever() -> None:
    rng = np.random.default_rng(1)
    runs = 400
    alarms = sum(alarm_at(rng.random(3000) < ETA, ETA) is not None for _ in range(runs))
    assert stats.binomtest(alarms, runs, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(("error", "median"), [(0.10, 132), (0.15, 43), (0.25, 19)])
def test_drift_is_found_after_so_many_audits(error: float, median: int) -> None:
    rng = np.random.default_rng(2)
    found = [alarm_at(rng.random(800) < error, ETA) or 800 for _ in range(600)]
    assert np.median(found) == pytest.approx(median, rel=0.15)


def test_hard_items_first_alarm_where_the_order_of_the_hash_does_not() -> None:
    rng = np.random.default_rng(3)
    alarms = [0, 0]
    for _ in range(100):
        chance = np.linspace(2 * ETA, 0, 600)
        for place, order in enumerate((np.arange(600), rng.permutation(600))):
            wrong = rng.random(600) < chance[order]
            alarms[place] += alarm_at(wrong, ETA) is not None
    assert alarms[0] > 20
    assert alarms[1] <= 10


def test_queue_and_audit_follow_from_salt_and_items_alone() -> None:
    items = [f"item {number}" for number in range(500)]
    order = queue_order("salt", items)
    assert sorted(order.tolist()) == list(range(500))
    back = queue_order("salt", items[::-1])
    assert [items[i] for i in order] == [items[::-1][i] for i in back]
    marks = audited("salt", items, "0.1")
    # What is audited says nothing about where it stands in the queue.
    places = np.flatnonzero(marks[order])
    assert abs(places.mean() - 250) < 4 * 500 / np.sqrt(12 * len(places))


def test_the_final_audit_holds_its_level_in_every_draw_of_a_small_file() -> None:
    size, sampled, budget = 12, 5, 3
    plan = FinalAudit(1, Fraction(1, 40), Fraction(1, 5))
    allowed = plan.allowed(size=size, sampled=sampled, budget=budget)
    for wrong in range(budget - 1 + 1, size + 1):
        draws = list(combinations(range(size), sampled))
        counts = np.array([sum(item < wrong for item in draw) for draw in draws])
        assert np.mean((counts <= allowed) & (wrong - counts > budget - 1)) <= 0.2


@pytest.mark.parametrize("unlabelable", [1, 2, 4])
def test_the_final_audit_holds_its_level_whatever_the_expert_cannot_label(unlabelable: int) -> None:
    size, sampled, budget = 12, 7, 3
    plan = FinalAudit(1, Fraction(1, 40), Fraction(1, 5))
    allowed = [
        plan.allowed(size=size, sampled=sampled, budget=budget, unanswered=u) for u in range(unlabelable + 1)
    ]
    draws = list(combinations(range(size), sampled))
    passed = 0
    for wrong in range(unlabelable, size + 1):  # the first of them are those that she cannot label
        false = 0
        for draw in draws:
            unanswered = sum(item < unlabelable for item in draw)
            mended = sum(unlabelable <= item < wrong for item in draw)
            passes = mended <= allowed[unanswered]
            passed += passes
            false += passes and wrong - mended > budget - 1
        assert false / len(draws) <= 0.2
    assert passed


def test_what_the_expert_cannot_label_makes_a_final_audit_stricter() -> None:
    plan = FinalAudit(75, Fraction(1, 40), Fraction(1, 40))
    allowed = [plan.allowed(size=900, sampled=300, budget=150, unanswered=u) for u in (0, 5, 40)]
    assert allowed[0] > allowed[1] > allowed[2] == -1


def test_how_large_a_final_audit_has_to_be() -> None:
    plan = FinalAudit(75, Fraction(1, 40), Fraction(1, 40))
    assert plan.fault(150, Fraction(1, 20)) == ""
    least = plan.smallest_sample(size=2000, budget=150, differences=2)
    assert plan.allowed(size=2000, sampled=least, budget=150) >= 2
    assert plan.allowed(size=2000, sampled=least - 1, budget=150) < 2
    assert plan.allowed(size=70, sampled=0, budget=150) == 0  # fewer items than may be wrong
    assert "models' part" in FinalAudit(200, Fraction(1, 40), Fraction(1, 40)).fault(150, Fraction(1, 20))
    assert "levels" in FinalAudit(75, Fraction(1, 30), Fraction(1, 40)).fault(150, Fraction(1, 20))


def test_the_published_interval_of_peoples_error() -> None:
    low, high = count_interval(pool_size=3000, asked=450, observed=22)
    assert (round(low / 30, 1), round(high / 30, 1)) == (3.2, 7.1)


@pytest.mark.parametrize(("size", "asked"), [(9, 4), (10, 7), (8, 8)])
def test_the_interval_covers_in_all_but_its_share_of_the_draws(size: int, asked: int) -> None:
    alpha = 0.3
    for wrong in range(size + 1):
        k = np.arange(asked + 1)
        chance = stats.hypergeom.pmf(k, size, wrong, asked)
        outside = [0.0, 0.0]
        for seen in range(max(0, wrong + asked - size), min(wrong, asked) + 1):
            low, high = count_interval(pool_size=size, asked=asked, observed=seen, alpha=alpha)
            assert seen <= low <= high <= size - (asked - seen)
            outside[0] += chance[seen] * (wrong < low)
            outside[1] += chance[seen] * (wrong > high)
        assert max(outside) <= alpha / 2 + 1e-12


def test_unknown_items_widen_the_interval_on_both_sides() -> None:
    low, high = count_interval(pool_size=500, asked=100, observed=5, at_most=9)
    assert low == count_interval(pool_size=500, asked=100, observed=5)[0]
    assert high == count_interval(pool_size=500, asked=100, observed=9)[1]


def test_two_peoples_disagreement_bounds_what_one_is_wrong_against_the_majority() -> None:
    found = overlap_disagreement(pool_size=3000, pairs=200, different=14)
    assert found.estimate == 0.07
    assert found.low < 0.07 < found.high < 0.12
    rng = np.random.default_rng(4)
    for _ in range(200):
        q = rng.dirichlet(np.full(4, 0.5))
        assert 1 - q.max() <= 1 - (q**2).sum() + 1e-12
    nothing = overlap_disagreement(pool_size=3000, pairs=0, different=0)
    assert (nothing.low, nothing.high) == (0.0, 1.0)
