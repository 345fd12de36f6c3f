"""Certifications beyond counts and one chain: several chains, mean losses, betting, second draws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from routing.core.arrays import Floats, Keys
from routing.core.calibration import Calibration, ObservedLosses, observed_losses, sorted_losses
from routing.core.calibration_rows import CalibrationError
from routing.core.certify import certify, risk_path, select
from routing.core.losses import make_loss
from routing.core.plan import Plan
from routing.core.route import route
from tests.core.worlds import at, calibration_of, plan_of, policies

pytestmark = pytest.mark.costly

LOSS = make_loss("zero_one")


def test_several_chains_share_the_level_and_the_cheapest_certified_policy_wins() -> None:
    """Sixteen errors of 500 pass at the full level of the pool, not at a third of it."""
    plan = plan_of(3000, 500, p="1", target="pool", costs=(1, 10), rule="multi_chain")
    answers = [["wrong" if i < 16 else "right"] for i in range(500)]
    u = np.arange(1, 501) / 500
    calibration = calibration_of(u, ["right"] * 500, answers, plan=plan)  # type: ignore[arg-type]
    everything = policies([(at(1.0),)], costs=[10.0, 1.0], name="everything")
    little = policies([(at(0.01),), (at(0.02),)], costs=[10.0, 9.0, 8.0], name="little")
    least = policies([(at(0.001),)], costs=[10.0, 9.9], name="least")
    assert certify(plan, [everything], calibration).certified
    result = certify(plan, [everything, little, least], calibration)
    assert [test.level for test in result.tests] == [plan.exact_alpha / 3] * 3
    assert (result.chain, result.index) == ("little", 2)


def test_a_mean_loss_is_certified_through_the_pool_and_the_words_say_so() -> None:
    """Half of the answers share one of two labels with the truth."""
    plan = plan_of(3000, 500, p="1", costs=(1, 10), loss="jaccard", epsilon="0.3")
    half, whole = '["a","b"]', '["a"]'
    answers = [[half if i % 2 else whole] for i in range(500)]
    calibration = calibration_of(np.zeros(500), [whole] * 500, answers, plan=plan)  # type: ignore[arg-type]
    result = certify(plan, [policies([(at(1.0),)])], calibration)
    assert result.certified
    assert (result.observed_errors, result.allowed_errors) == (125, None)
    assert result.pointwise_upper_bound is not None
    assert 0.25 < result.pointwise_upper_bound <= 0.3
    assert "The mean loss 'jaccard' against the label that a person gave" in result.sentence
    assert "of the labels in the delivered data set is at most 0.3 (epsilon)" in result.sentence
    assert "holds for the whole pool" in result.sentence
    strict = certify(
        plan_of(3000, 500, p="1", costs=(1, 10), loss="jaccard", epsilon="0.2"),
        [policies([(at(1.0),)])],
        calibration,
    )
    assert not strict.certified
    assert "already showed a total loss of 125" in strict.reason
    assert "with no loss at all" in strict.reason


def shuffled_model(bound: str, *, epsilon: str = "0.1", target: str = "pool") -> tuple[Plan, Calibration]:
    """The sixty of 400 items of which the model is least sure are wrong; they come in any order."""
    plan = plan_of(1000, 400, costs=(1, 10), p="1", target=target, bound=bound, epsilon=epsilon)
    u = np.random.default_rng(5).permutation(np.arange(1, 401)) / 400
    answers = [["wrong" if score > 0.85 else "right"] for score in u]
    return plan, calibration_of(u, ["right"] * 400, answers, plan=plan)  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", ["betting_upper", "hoeffding_bentkus", "hoeffding"])
@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_bounds_for_means_certify_counts_as_well(bound: str, target: str) -> None:
    plan, calibration = shuffled_model(bound, target=target)
    chain = policies([(at(k / 40),) for k in range(1, 41)])
    result = certify(plan, [chain], calibration)
    exact = certify(shuffled_model("hypergeometric")[0], [chain], calibration)
    assert 34 <= result.index <= exact.index < 40
    points = risk_path(plan, chain, calibration)
    assert [point.certified for point in points] == [j <= result.index for j in range(len(points))]
    certified = points[result.index]
    assert certified.estimate < certified.upper_bound <= 0.1 + 1e-9


def test_a_sequential_bound_stops_at_the_first_failure() -> None:
    """The losses of the policies far behind it are never read."""
    plan, calibration = shuffled_model("betting_upper")
    chain = policies([(at(k / 400),) for k in range(1, 401)])
    losses = observed_losses(calibration, loss=LOSS, sources=2)
    read: list[int] = []

    class Watched(ObservedLosses):
        def losses_in_order(self, thresholds: Keys) -> Floats:
            read.append(len(thresholds))
            return super().losses_in_order(thresholds)

    watched = Watched(losses.keys, losses.upper, losses.lower, losses.drawn, losses.order, losses.weights)
    assert 340 < select(plan, [chain], watched).index < 400
    read.clear()
    reversed_chain = policies([(at(k / 400),) for k in range(400, 0, -1)])
    assert select(plan, [reversed_chain], watched).index == 0
    assert sum(read) <= 16


def test_labels_that_people_gave_before_leave_more_to_the_pool() -> None:
    """N = 700 of N_all = 1000: E = 50 instead of 35."""
    answers = [["wrong" if i < 10 else "right"] for i in range(300)]
    chain = policies([(at(1.0),)])
    results = []
    for size in (None, 1000):
        plan = plan_of(700, 300, p="1", costs=(1, 10), data_set_size=size)
        calibration = calibration_of(np.zeros(300), ["right"] * 300, answers, plan=plan)  # type: ignore[arg-type]
        results.append(certify(plan, [chain], calibration))
    alone, beside = results
    for limit in ("s", "c_s", "c_0"):
        assert alone.tests[0].verdict.limits[limit] < beside.tests[0].verdict.limits[limit]
    assert beside.certified
    assert "data set of 1000 items differ from the label that a person gave" in beside.sentence
    assert "People had labelled 300 of these items before the run." in beside.sentence
    assert beside.pointwise_upper_bound is not None
    assert beside.pointwise_upper_bound <= 0.05


def test_no_draw_of_a_tiny_pool_lets_too_many_wrong_labels_into_the_whole_data_set() -> None:
    size, asked, whole = 8, 4, 14
    plan = plan_of(size, asked, p="1", costs=(1, 9), data_set_size=whole, epsilon="0.15", alpha="0.3")
    assert plan.budget == 2
    u, v = np.arange(size) / size, np.zeros(size, dtype=np.int64)
    chain = policies([(at((k - 1) / size),) for k in (3, 5, 8)], costs=[9.0, 3.0, 1.0, 2.0])
    worst = 0.0
    for wrong_items in combinations(range(size), 4):
        wrong = np.isin(np.arange(size), wrong_items).astype(float)[:, None]
        false = 0
        draws = [np.array(draw) for draw in combinations(range(size), asked)]
        for items in draws:
            seen = sorted_losses(u[items], v[items], wrong[items], wrong[items], drawn=asked)
            thresholds = select(plan, [chain], seen).policy.thresholds
            routed = route(u, v, thresholds) == 0
            routed[items] = False
            false += wrong[routed].sum() > plan.budget
        worst = max(worst, false / len(draws))
    assert 0 < worst <= float(plan.alpha)


class Given:
    """A loss that gives what it is told to and says that it is 0 or 1."""

    name = "given"
    bound = 1.0

    def __init__(self, value: float, *, binary: bool) -> None:
        self.value, self.binary = value, binary

    def __call__(self, label: str, prediction: str) -> float:
        return self.value


@pytest.mark.parametrize(
    ("value", "binary", "words"),
    [
        (1.5, False, r"gave 1.5, outside its range \[0, 1\]"),
        (float("nan"), False, "gave nan, outside"),
        (0.5, True, "gave 0.5, but says that it is 0 or 1 only"),
    ],
)
def test_a_loss_is_held_to_what_it_says_and_the_item_is_named(value: float, binary: bool, words: str) -> None:
    calibration = calibration_of([0.1], ["a"], [["b"]], plan=plan_of(100, 1, costs=(1, 10)))
    with pytest.raises(CalibrationError, match=f"item 'i0': the loss 'given' {words}"):
        observed_losses(calibration, loss=Given(value, binary=binary), sources=2)


@pytest.mark.parametrize("name", ["numeric", "tests.core.own_losses:BatchDistance"])
def test_a_label_without_a_loss_is_named(name: str) -> None:
    plan = plan_of(100, 2, costs=(1, 10))
    calibration = calibration_of([0.1, 0.2], ["1", "one"], [["1"], ["1"]], plan=plan)
    with pytest.raises(CalibrationError, match=r"item 'i1': .*one"):
        observed_losses(calibration, loss=make_loss(name), sources=2)


def test_all_at_once_is_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    labels = [None if rng.random() < 0.2 else str(rng.integers(9)) for _ in range(40)]
    answers = [[None if rng.random() < 0.3 else str(rng.integers(9)) for _ in range(2)] for _ in range(40)]
    calibration = calibration_of(rng.random(40).tolist(), labels, answers, plan=plan_of(100, 40))
    batch = make_loss("tests.core.own_losses:BatchDistance", {"largest": 5})
    single = make_loss("tests.core.own_losses:Distance", {"largest": 5})
    one, other = (observed_losses(calibration, loss=loss, sources=3) for loss in (batch, single))
    np.testing.assert_array_equal(one.upper, other.upper)
    np.testing.assert_array_equal(one.lower, other.lower)
    assert one.upper.max() == 5
    assert (one.upper != one.lower).any()
