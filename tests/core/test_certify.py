"""Certification on small, hand-made calibration sets, and against brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import hypergeom

from routing.core.bounds import BOUNDS
from routing.core.calibration import Calibration, observed_losses
from routing.core.calibration_rows import CalibrationError
from routing.core.certify import certify, compare, feasible_region, risk_path
from routing.core.chain import build_chains
from routing.core.keys import V_MAX, Key, pack_thresholds
from routing.core.losses import make_loss
from routing.core.plan import PlanError
from routing.core.route import first_usable_source, route
from tests.core.worlds import at, calibration_of, make_world, plan_of, policies

pytestmark = pytest.mark.costly

LOSS = make_loss("zero_one")


def random_calibration(seed: int, m: int = 120) -> tuple[Calibration, int]:
    """Rows with unusable answers, unlabelled items, unasked items and tied scores."""
    rng = np.random.default_rng(seed)
    u = np.round(rng.random(m), 1)
    labels = [None if rng.random() < 0.1 else str(rng.integers(3)) for _ in range(m)]
    answers = [[None if rng.random() < 0.2 else str(rng.integers(3)) for _ in range(2)] for _ in range(m)]
    plan = plan_of(1000, m)
    rows = calibration_of(u, labels, answers, plan=plan, asked=list(rng.random(m) < 0.8))  # type: ignore[arg-type]
    return rows, m


@pytest.mark.parametrize("seed", range(8))
def test_observed_losses_agree_with_routing_item_by_item(seed: int) -> None:
    calibration, m = random_calibration(seed)
    losses = observed_losses(calibration, loss=LOSS, sources=3)
    asked = [row for row in calibration.rows if row.asked]
    usable = np.array([[answer is not None for answer in row.answers] for row in asked])
    rng = np.random.default_rng(seed)
    for _ in range(30):
        pair = sorted(Key(float(rng.integers(11)) / 10, int(rng.integers(m))) for _ in range(2))
        thresholds = tuple(None if rng.random() < 0.1 and k == 0 else key for k, key in enumerate(pair))
        final = first_usable_source(route([r.u for r in asked], [r.v for r in asked], thresholds), usable)
        upper = lower = 0
        for row, source in zip(asked, final.tolist(), strict=True):
            if source < 2:
                upper += row.label is None or row.answers[source] != row.label
                lower += row.label is not None and row.answers[source] != row.label
        totals = losses.totals(pack_thresholds([thresholds]))
        assert (totals[0][0], totals[2][0]) == (upper, lower)
        assert totals[1][0] == totals[0][0]


def one_model(errors: int, n: int, **changes: object) -> tuple[object, ...]:
    """n asked items, the last ``errors`` of which the model gets wrong; thresholds after each tenth."""
    plan = plan_of(1000, n, costs=(1, 10), p="1", **changes)
    u = np.arange(1, n + 1) / n
    answers = [["wrong" if i >= n - errors else "right"] for i in range(n)]
    calibration = calibration_of(u, ["right"] * n, answers, plan=plan)  # type: ignore[arg-type]
    chain = policies([(at(k / 10),) for k in range(1, 11)])
    return plan, chain, calibration


@pytest.mark.parametrize(("target", "allowed"), [("pool", 1), ("population", 1)])
def test_the_cheapest_policy_before_the_first_failure_is_chosen(target: str, allowed: int) -> None:
    plan, chain, calibration = one_model(15, 100, target=target)
    result = certify(plan, [chain], calibration)  # type: ignore[arg-type, list-item]
    assert result.certified
    assert result.allowed_errors == allowed
    assert result.index == 8  # the ninth tenth brings five errors
    assert result.thresholds == (at(0.8),)
    assert result.observed_errors == 0
    assert result.prefix_lengths == {"x": {"all": 9}}


def test_a_policy_after_a_failure_is_never_chosen_however_good() -> None:
    plan = plan_of(1000, 100, p="1", target="pool", costs=(1, 2, 10))
    u = np.arange(1, 101) / 100
    answers = [["wrong", "right"]] * 100
    calibration = calibration_of(u, ["right"] * 100, answers, plan=plan)  # type: ignore[arg-type]
    good, bad = (None, at(1.0)), (at(0.5), at(1.0))
    assert certify(plan, [policies([good, bad])], calibration).index == 1
    blocked = certify(plan, [policies([bad, good])], calibration)
    assert not blocked.certified
    assert "already showed 50 errors" in blocked.reason


def test_the_cheapest_of_the_certified_wins_also_across_chains() -> None:
    plan, chain, calibration = one_model(15, 100, target="pool")
    dear = policies([(at(0.3),)], costs=[11.0, 9.5], name="dear")
    result = certify(plan, [dear, chain], calibration)  # type: ignore[arg-type, list-item]
    assert (result.chain, result.index) == ("x", 8)
    assert [test.level for test in result.tests] == [plan.exact_alpha / 2] * 2  # type: ignore[attr-defined]
    back_and_forth = policies([(at(0.3),), (at(0.1),)], costs=[3.0, 1.0, 2.0])
    assert certify(plan, [back_and_forth], calibration).index == 1  # type: ignore[arg-type]


def test_the_two_levels_of_the_data_set() -> None:
    """N = 3000, n = 500: s = 18, c_s = 19, c_0 = 13 (see the test vectors)."""
    for errors, certified in ((13, True), (14, False), (17, False), (18, True), (19, True), (20, False)):
        plan = plan_of(3000, 500, p="1", costs=(1, 10))
        answers = [["wrong" if i < errors else "right"] for i in range(500)]
        calibration = calibration_of(np.zeros(500), ["right"] * 500, answers, plan=plan)  # type: ignore[arg-type]
        result = certify(plan, [policies([(at(1.0),)])], calibration)
        assert result.certified is certified, errors
        if certified:
            assert result.allowed_errors == (19 if errors >= 18 else 13)
            assert result.required_errors == (18 if errors >= 18 else 0)


def test_unlabellable_items_count_against_the_model_only() -> None:
    """Eighteen errors would do, but not where two of them are only possible ones: K- = 16 < s."""
    plan = plan_of(3000, 500, p="1", costs=(1, 10))
    answers = [["wrong" if i < 16 else "right"] for i in range(500)]
    labels = ["right"] * 498 + [None] * 2
    calibration = calibration_of(np.zeros(500), labels, answers, plan=plan)  # type: ignore[arg-type]
    result = certify(plan, [policies([(at(1.0),)])], calibration)
    assert not result.certified
    assert (result.tests[0].upper[1], result.tests[0].lower[1]) == (18, 16)
    assert result.unanswered == 2
    assert "Nobody could label 2 items" in result.sentence
    with_people = calibration_of([0.0] * 498 + [1.0] * 2, labels, [["right"]] * 500, plan=plan)
    routed = certify(plan, [policies([(at(0.5),)])], with_people)
    assert (routed.tests[0].upper[1], routed.certified) == (0, True)


@pytest.mark.parametrize("blank", [0, 1, 3])
def test_the_bound_shown_beside_unlabellable_items_agrees_with_the_certificate(blank: int) -> None:
    """Errors that people mended are off the delivered data set; those that nobody could mend are not."""
    plan = plan_of(3000, 500, p="1", costs=(1, 10))
    labels = ["right"] * (500 - blank) + [None] * blank
    for errors in (0, 13, 18, 19):
        answers = [["wrong" if i >= 500 - errors else "right"] for i in range(500)]
        calibration = calibration_of(np.zeros(500), labels, answers, plan=plan)  # type: ignore[arg-type]
        chain = policies([(at(1.0),)])
        result = certify(plan, [chain], calibration)
        lowest = max(errors, blank) - blank  # K-
        # "More than E are left" is "more than E + K- were wrong": the least E with which that is rejected.
        wrong = np.minimum(np.arange(3001) + 1 + lowest, 3000)
        passes = np.flatnonzero(hypergeom.cdf(max(errors, blank), 3000, wrong, 500) <= 0.05)
        shown = risk_path(plan, chain, calibration)[1].upper_bound
        assert shown == pytest.approx(passes[0] / 3000, abs=1e-12)
        if result.certified:
            assert shown <= 0.05


def test_a_missing_answer_passes_the_item_on() -> None:
    plan = plan_of(1000, 100, p="1", costs=(1, 2, 10))
    u = [0.1] * 100
    everything_to_one = [policies([(at(1.0), at(1.0))])]
    passed_to_two = calibration_of(u, ["a"] * 100, [[None, "b"]] * 100, plan=plan)
    assert certify(plan, everything_to_one, passed_to_two).tests[0].upper[1] == 100
    passed_to_people = calibration_of(u, ["a"] * 100, [[None, None]] * 100, plan=plan)
    assert certify(plan, everything_to_one, passed_to_people).certified


def test_too_few_labels_certify_nothing_and_say_how_many_would() -> None:
    plan, chain, calibration = one_model(0, 55)
    result = certify(plan, [chain], calibration)  # type: ignore[arg-type, list-item]
    assert not result.certified
    assert result.thresholds == (None,)
    assert result.smallest_n == 56
    assert "at least 56 are needed" in result.reason
    assert "people label everything" in result.sentence
    assert "People only is cheaper" in result.sentence
    assert result.expected.net_saving < 0
    assert certify(*one_model(0, 56)[:1], [one_model(0, 56)[1]], one_model(0, 56)[2]).certified  # type: ignore[arg-type, list-item]


def test_a_draw_without_any_question_certifies_nothing() -> None:
    plan = plan_of(1000, 10, p="0.1", costs=(1, 10))
    calibration = calibration_of([0.5] * 10, ["a"] * 10, [["a"]] * 10, plan=plan, asked=[False] * 10)
    result = certify(plan, [policies([(at(1.0),)])], calibration)
    assert (result.certified, result.asked) == (False, 0)


def test_the_sentence_is_in_plain_words() -> None:
    plan, chain, calibration = one_model(0, 100)
    assert certify(plan, [chain], calibration).sentence.startswith(  # type: ignore[arg-type, list-item]
        "At most 5 % of the labels in the delivered data set differ from the label that a person gave or "
        "would have given (epsilon = 0.05), with probability at least 95 % over the random draw (alpha = "
        "0.05). People's own mistakes are not counted."
    )
    for target, words in (("pool", "were left out"), ("population", "a new item from the same source")):
        plan, chain, calibration = one_model(0, 100, target=target)
        assert words in certify(plan, [chain], calibration).sentence  # type: ignore[arg-type, list-item]


def test_expected_money() -> None:
    plan, chain, calibration = one_model(0, 100)
    pool = np.arange(1, 1001) / 1000
    (chain,) = build_chains(plan, u=pool, v=np.arange(1000))  # type: ignore[arg-type]
    result = certify(plan, [chain], calibration)  # type: ignore[arg-type]
    assert result.thresholds == (Key(1.0, 999),)
    assert result.expected.net_cost == pytest.approx(
        1000 * 1 + 100 * 10
    )  # every item by the model, 100 by people
    assert result.expected.net_saving == pytest.approx(0.8)
    assert result.expected.routing_saving == pytest.approx(0.9)


def test_comparison_rules_are_refused_as_the_rule_of_a_plan() -> None:
    plan, chain, calibration = one_model(0, 100, rule="pointwise_argmin")
    with pytest.raises(PlanError, match="does not hold its stated level"):
        certify(plan, [chain], calibration)  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize("bound", ["clt", "hoeffding", "hypergeometric", "binomial"])
@pytest.mark.parametrize("seed", range(3))
def test_the_rules_of_the_paper_against_all_pairs(bound: str, seed: int) -> None:
    calibration, m = random_calibration(seed)
    answers = [
        ("0" if row.u < 0.9 else "1",) * 2 for row in calibration.rows
    ]  # few errors, so that some pairs pass
    rng = np.random.default_rng(seed)
    labels = ["0" if rng.random() < 0.97 else "1" for _ in range(m)]
    plan = plan_of(1000, m, epsilon="0.2", p="0.8", costs=(1, 2, 8))
    asked = [row.asked for row in calibration.rows]
    calibration = calibration_of([r.u for r in calibration.rows], labels, answers, plan=plan, asked=asked)  # type: ignore[arg-type]
    losses = observed_losses(calibration, loss=LOSS, sources=3)
    scores = sorted({row.u for row in calibration.rows})
    rule = BOUNDS.get(bound)
    target = "pool" if bound in {"hypergeometric", "hoeffding"} else "population"
    best: tuple[float, float, float] | None = None
    feasible = []
    for first, second in combinations_with_replacement([-1.0, *scores], 2):
        thresholds = tuple(None if u < 0 else Key(u, V_MAX) for u in (first, second))
        total = losses.totals(pack_thresholds([thresholds]))[0]
        if rule.upper(losses.evidence(plan, total), 0.05, target=target)[0] <= 0.2:
            routed = route(calibration.u, calibration.v, thresholds)
            cost = float(np.array([1, 2, 8])[routed].mean())
            feasible.append((second, first, cost))
            best = min(best or (np.inf, 0, 0), (cost, first, second))
    results = {entry.rule: entry for entry in compare(plan, calibration, bound=bound)}
    assert best is not None
    assert results["pointwise_argmin"].routing_cost == pytest.approx(best[0])
    second, first, cost = max(feasible)
    expected = tuple(None if u < 0 else Key(u, V_MAX) for u in (first, second))
    assert results["lexicographic"].thresholds == expected
    assert results["lexicographic"].routing_cost == pytest.approx(cost)
    for entry in results.values():
        assert not entry.holds_level
        assert "For comparison only" in entry.sentence
        assert entry.upper_bound <= 0.2


@pytest.mark.parametrize("models", [1, 3, 5])
def test_the_rules_of_the_paper_for_other_numbers_of_sources(models: int) -> None:
    rng = np.random.default_rng(models)
    costs = (*range(1, models + 1), 20)
    plan = plan_of(5000, 400, costs=costs, p="1", epsilon="0.1")
    u = rng.random(400)
    answers = [["a" if rng.random() > 0.3 * score**2 else "b" for _ in range(models)] for score in u]
    calibration = calibration_of(u, ["a"] * 400, answers, plan=plan)  # type: ignore[arg-type]
    for entry in compare(plan, calibration):
        assert entry.upper_bound <= 0.1
        assert entry.routing_saving > 0.3
        assert len(entry.thresholds) == models


def test_the_feasible_region() -> None:
    calibration, m = random_calibration(3, m=200)
    plan = plan_of(1000, m, epsilon="0.3")
    region = feasible_region(plan, calibration, grid=8)
    assert region.feasible.shape == region.cost.shape == (len(region.u1), len(region.u2))
    assert region.u1[0] == -1
    assert region.feasible[0, 0]
    assert not region.feasible[np.tril_indices(len(region.u1), -1)].any()
    losses = observed_losses(calibration, loss=LOSS, sources=3)
    for i, j in combinations_with_replacement(range(len(region.u1)), 2):
        thresholds = tuple(None if u < 0 else Key(u, V_MAX) for u in (region.u1[i], region.u2[j]))
        assert region.errors[i, j] == losses.totals(pack_thresholds([thresholds]))[0][0]
    with pytest.raises(ValueError, match="two models and people"):
        feasible_region(plan_of(1000, m, costs=(1, 10)), calibration)


def test_the_risk_along_a_chain() -> None:
    plan, chain, calibration = one_model(15, 100, target="pool")
    path = risk_path(plan, chain, calibration)  # type: ignore[arg-type]
    assert [point.observed_errors for point in path] == [0] * 9 + [5, 15]
    assert [point.certified for point in path] == [True] * 9 + [False] * 2
    assert all(point.upper_bound >= point.estimate for point in path)
    assert path[8].upper_bound <= 0.05 < path[9].upper_bound


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u": 1.5}, r"outside \[0, 1\]"),
        ({"u": float("nan")}, r"outside \[0, 1\]"),
        ({"v": -1}, "tie-break"),
        ({"position": 1}, "drawn twice"),
        ({"position": 1000}, "outside the pool"),
        ({"item_id": "i1"}, "drawn twice"),
        ({"order": 5}, "its place in the draw"),
        ({"answers": ("a", "b")}, "2 answers for 1 models"),
        ({"asked": False}, "although the draw did not ask"),
        ({"p": 0}, "the plan says"),
    ],
)
def test_rows_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    plan = plan_of(1000, 3, p="1", costs=(1, 10))
    good = calibration_of([0.1, 0.2, 0.3], ["a"] * 3, [["a"]] * 3, plan=plan)
    row = type(good.rows[0])(**{**vars(good.rows[0]), **change})
    with pytest.raises(CalibrationError, match=message):
        certify(plan, [policies([(at(1.0),)])], Calibration((row, *good.rows[1:])))
    with pytest.raises(CalibrationError, match="m = 3"):
        certify(plan, [policies([(at(1.0),)])], Calibration(good.rows[1:]))


@pytest.mark.parametrize("chains", [[], [policies([(at(0.5), at(0.1))])], [policies([(at(0.5),)])]])
def test_chains_that_do_not_fit_are_refused(chains: list[object]) -> None:
    plan = plan_of(1000, 1, p="1", costs=(1, 2, 10))
    calibration = calibration_of([0.1], ["a"], [["a", "a"]], plan=plan)
    with pytest.raises(ValueError, match=r"no chain|fall|1 thresholds for 3"):
        certify(plan, chains, calibration)  # type: ignore[arg-type]


def test_the_whole_way_on_a_synthetic_pool() -> None:
    rng = np.random.default_rng(8)
    world = make_world("power", 3000, rng)
    for target in ("dataset", "pool", "population"):
        plan = plan_of(3000, 500, target=target)
        drawn = rng.choice(3000, 500, replace=False)
        reference = np.ones(3000, dtype=bool)
        reference[drawn] = False
        pilot = world.pilot(rng.choice(np.flatnonzero(reference), plan.pilot, replace=False))
        chains = build_chains(plan, u=world.u, v=world.v, pilot=pilot, reference=reference)
        calibration = calibration_of(
            world.u[drawn],
            ["0"] * 500,
            world.answers[drawn].astype(str).tolist(),
            plan=plan,
            asked=list(rng.random(500) < 0.9),  # type: ignore[arg-type]
        )
        result = certify(plan, chains, calibration)
        assert result.certified
        assert result.expected.net_saving > 0.4
        assert result.pointwise_upper_bound is not None
        assert result.pointwise_upper_bound <= 0.05
