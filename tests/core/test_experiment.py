"""An experiment measures what it says, and the rules that promise a level keep it."""

from __future__ import annotations

from dataclasses import asdict, replace
from decimal import Decimal
from math import exp

import numpy as np
import pytest
from scipy import stats

from routing.core.cascade import NO_TIES, Decision, Stage
from routing.core.experiment.measure import Deployment, Terms, measure, measure_deployment
from routing.core.experiment.methods import METHODS
from routing.core.experiment.reliability import reliability
from routing.core.experiment.run import run
from routing.core.experiment.settings import ExperimentError, Settings
from routing.core.experiment.shift import deploy, weights
from routing.core.experiment.split import Split
from routing.core.experiment.summary import clopper_pearson, finite_test_bound
from routing.core.experiment.table import Table
from routing.core.experiment.with_expert import WITH_EXPERT
from routing.core.keys import Key
from tests.core.tables import made_up

pytestmark = pytest.mark.costly

HALF = Decision.of_thresholds((Key(0.4, 2**53 - 1), Key(0.8, 2**53 - 1)), pilot=True)


def split_of(table: Table, m: int, seed: int = 0) -> Split:
    return Split(table, m=m, p=0.8, seed=np.random.SeedSequence(seed))


def priced(table: Table) -> Table:
    """The table with a cost of its own for every label."""
    rng = np.random.default_rng(5)
    return replace(table, costs=table.costs * rng.uniform(0.5, 1.5, table.costs.shape))


@pytest.mark.parametrize("target", ["dataset", "pool", "population"])
def test_everything_paid_and_every_error_is_counted_item_by_item(target: str) -> None:
    table = priced(made_up(60))
    table.usable[::7, 0] = False
    table.usable[::5, 1] = False
    split = split_of(table, 25)
    pilot = split.pilot_items(target, 12)
    found = measure(split, HALF, Terms(target, 0.1, 12))
    asked = set(split.asked_items.tolist())
    errors = test_errors = paid = routed = base = 0.0
    labels = 0
    for i in range(60):
        u = table.u[i, 0]
        source = 0 if u <= 0.4 else 1 if u <= 0.8 else 2
        tried = [source]
        while source < 2 and not table.usable[i, source]:
            source += 1
            tried.append(source)
        loss = table.loss[i, source] if source < 2 else 0.0
        test_errors += loss * (i not in split.drawn)
        errors += 0.0 if target == "dataset" and i in asked else loss
        ran = {0, *tried}
        if i in asked:
            ran |= {0, 1, 2}
        if i in pilot:
            ran |= {0, 1}
        paid += sum(table.costs[i, k] for k in ran)
        labels += 2 in ran
        if i not in asked:
            routed += sum(table.costs[i, k] for k in tried)
            base += table.costs[i, 2]
    assert found.error == pytest.approx(errors / 60)
    assert found.test_error == pytest.approx(test_errors / 35)
    assert found.net_saving == pytest.approx(1 - paid / table.costs[:, 2].sum())
    assert found.routing_saving == pytest.approx(1 - routed / base)
    assert found.human_labels == labels
    assert found.violated == (errors > 6)


def test_an_error_of_exactly_epsilon_is_no_violation() -> None:
    table = made_up(30)
    table.loss[:] = 0
    table.loss[:3, 0] = 1
    everything = Decision((0,), (Stage(0, None),))
    split = split_of(table, 10)
    assert not measure(split, everything, Terms("pool", 0.1, 0)).violated
    table.loss[3, 0] = 1
    assert measure(split_of(replace(table), 10), everything, Terms("pool", 0.1, 0)).violated


def test_a_model_left_out_costs_nothing_and_one_run_for_its_score_is_paid() -> None:
    table = made_up(50)
    split = split_of(table, 20)
    terms = Terms("pool", 0.1, 10)
    people = 8.0 * 50
    n = int(split.asked.sum())
    second = measure(split, Decision((1,), (Stage(1, 1, -np.inf, NO_TIES),)), terms)
    assert second.net_saving == pytest.approx(1 - (2 * 50 + people) / people)
    assert second.human_labels == 50
    nobody = measure(split, Decision((), ()), terms)
    assert (nobody.net_saving, nobody.error, nobody.human_labels) == (0.0, 0.0, 50)
    alone = measure(split, Decision((1,), (Stage(1, None),)), terms)
    assert alone.net_saving == pytest.approx(1 - (2 * 50 + 8 * n) / people)
    assert alone.error == pytest.approx(table.loss[:, 1].mean())


def test_a_deployment_pays_for_its_calibration_too() -> None:
    table = made_up(40)
    split = split_of(table, 15)
    later = deploy(table, 1.0, 0.5, np.random.default_rng(1))
    found = measure_deployment(split, HALF, later, Terms("population", 0.1, 8))
    u = later.table.u[:, 0]
    source = np.where(u <= 0.4, 0, np.where(u <= 0.8, 1, 2))
    price = np.array([1.0, 2.0, 8.0])
    asked, pilot = set(split.asked_items.tolist()), set(split.pilot_items("population", 8).tolist())
    before = 0.0
    for i in range(40):
        ran = ({0} if i in split.drawn else set()) | ({0, 1} if i in pilot else set())
        before += price[list(ran | ({0, 1, 2} if i in asked else set()))].sum()
    paid = 40 + price[source][source > 0].sum() + before
    assert found.net_saving == pytest.approx(1 - paid / (8 * 40))
    assert found.routing_saving == pytest.approx(1 - price[source].sum() / (8 * 40))
    wrong = np.column_stack([later.table.loss, np.zeros(40)])[np.arange(40), source]
    assert found.error == found.test_error == pytest.approx(wrong.mean())
    assert found.human_labels == (source == 2).sum() + len(asked)


def test_the_draw_is_simple_random_and_the_pilot_is_kept_apart_for_a_population() -> None:
    table = made_up(200)
    split = split_of(table, 80, seed=3)
    assert len(set(split.drawn.tolist())) == 80
    assert not set(split.pilot_items("population", 40)) & set(split.drawn)
    assert len(set(split.pilot_items("dataset", 40)) & set(split.drawn)) > 0
    hits = sum(int(7 in split_of(table, 80, seed=s).drawn) for s in range(300))
    assert stats.binomtest(hits, 300, 0.4).pvalue > 1e-4
    asked = sum(int(split_of(table, 80, seed=s).asked.sum()) for s in range(50))
    assert stats.binomtest(asked, 80 * 50, 0.8).pvalue > 1e-4


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    table = made_up(400)
    settings = Settings(repeats=4, sizes=(100,))
    first, again = run(table, settings), run(table, settings)
    assert first == again
    assert run(table, replace(settings, seed=1)).rows != first.rows


def test_rows_come_in_order_and_name_their_settings() -> None:
    settings = Settings(
        epsilons=(Decimal("0.1"), Decimal("0.2")),
        sizes=(100, 150),
        repeats=2,
        targets=("dataset", "population"),
        rules=("fixed_sequence", "coannotating"),
    )
    steps: list[int] = []
    results = run(made_up(400), settings, progress=steps.append)
    assert steps == [1, 1]
    assert [(r.rule, r.target, r.bound, r.m, r.epsilon) for r in results.rows] == [
        (rule, target, bound, m, epsilon)
        for rule in ("fixed_sequence", "coannotating")
        for target, bound in (
            ("dataset", "hypergeometric" if rule == "fixed_sequence" else ""),
            ("population", "binomial" if rule == "fixed_sequence" else ""),
        )
        for m in (100, 150)
        for epsilon in (0.1, 0.2)
    ]
    assert {row.holds_level for row in results.rows} == {True, False}
    assert all(row.repeats == 2 and row.severity is None for row in results.rows)


@pytest.mark.parametrize("models", [1, 2, 3])
def test_every_rule_that_a_table_allows_runs(models: int) -> None:
    results = run(made_up(300, models=models), Settings(repeats=2, sizes=(120,)))
    rules = {row.rule for row in results.rows}
    of_the_second = {"pac_labeling_2", "bargain_2", "lotus_2"}
    assert rules == set(METHODS.names()) - {WITH_EXPERT} - (of_the_second if models == 1 else set())
    assert len(results.refused) == (len(of_the_second) if models == 1 else 0)


@pytest.mark.parametrize("target", ["dataset", "pool"])
@pytest.mark.parametrize("rule", ["fixed_sequence", "multi_chain", "split_fixed_sequence"])
def test_a_certifying_rule_exceeds_epsilon_rarely_and_saves(rule: str, target: str) -> None:
    settings = Settings(
        epsilons=(Decimal("0.08"),), sizes=(300,), repeats=60, targets=(target,), rules=(rule,)
    )
    (row,) = run(made_up(1200), settings).rows
    assert row.violation_rate * 60 <= stats.binom.isf(0.001, 60, 0.05)
    assert row.error_mean < 0.08
    assert row.net_saving_mean > 0.2
    assert row.routing_saving_mean > row.net_saving_mean


def test_bounded_losses_without_answers_run_on_the_bounds_for_them() -> None:
    plain = made_up(400)
    table = replace(
        plain,
        loss=plain.loss * np.random.default_rng(2).uniform(0.2, 1.0, plain.loss.shape),
        answers=None,
        binary=False,
        loss_name="routing.core.experiment.table:RecordedLoss",
        loss_params={"bound": 1.0},
    )
    settings = Settings(
        epsilons=(Decimal("0.1"),),
        sizes=(200,),
        repeats=10,
        rules=("fixed_sequence", "pointwise_argmin", "cse", "pac_labeling_1"),
    )
    results = run(table, settings)
    assert [(row.rule, row.bound) for row in results.rows] == [
        ("fixed_sequence", "betting_upper"),
        ("pointwise_argmin", "clt"),
        ("pac_labeling_1", "clt"),
    ]
    assert results.rows[0].error_mean < 0.1
    assert results.rows[0].net_saving_mean > 0
    assert "loss of 0 or 1" in results.refused[0]


def test_varying_probabilities_of_asking_are_used() -> None:
    plain = made_up(500)
    table = replace(plain, p=np.where(plain.u[:, 0] > 0.5, 1.0, 0.4))
    rules = ("fixed_sequence", "pointwise_argmin", "pac_labeling_1", "coannotating", "cse")
    settings = Settings(
        epsilons=(Decimal("0.15"),), sizes=(400,), repeats=5, targets=("population",), rules=rules
    )
    results = run(table, settings)
    assert {row.rule for row in results.rows} == set(rules) - {"cse"}
    assert results.rows[0].bound == "betting_upper"
    assert results.rows[0].p == pytest.approx(table.p.mean())
    calibration_labels = results.rows[0].human_labels_mean
    assert calibration_labels > 0.6 * 400


def test_what_is_refused_is_said_and_nothing_left_is_an_error() -> None:
    table = made_up(300)
    settings = Settings(repeats=1, sizes=(100,), rules=("fixed_sequence",), bounds=("binomial",))
    with pytest.raises(ExperimentError, match=r"nothing can be run: .*'hypergeometric'"):
        run(table, settings)
    both = run(table, replace(settings, bounds=("binomial", "hypergeometric")))
    assert [row.bound for row in both.rows] == ["hypergeometric"]
    assert len(both.refused) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repeats": 0}, "--repeats 0"),
        ({"seed": -1}, "--seed -1"),
        ({"epsilons": (Decimal("1.5"),)}, "epsilon = 1.5"),
        ({"epsilons": (Decimal("0.1"), Decimal("0.1"))}, "--epsilon: a value stands there twice"),
        ({"sizes": (500,)}, "m = 500 items cannot be drawn from a pool of 300"),
        ({"p": Decimal("0")}, "p = 0"),
        ({"severities": (30.0,)}, "--shift 30"),
        ({"severities": (1.0,), "drift": -1.0}, "--drift -1"),
        ({"drift": 1.0}, "give the severities with --shift"),
        ({"targets": ("world",)}, "there is no target 'world'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        run(made_up(300), replace(Settings(repeats=1), **change))
    assert words in str(caught.value)


def test_a_shift_weights_hard_items_as_stated_and_raises_the_error() -> None:
    table = made_up(300)
    rank = stats.rankdata(table.u[:, 0]) - 0.5
    for drift in (0.0, 0.5):
        one = weights(table, 2.0, drift)
        hardness = rank / 300 + drift * table.loss.mean(axis=1)
        assert one / one[0] == pytest.approx(np.exp(2 * (hardness - hardness[0])))
        assert one.sum() == pytest.approx(1)
    assert weights(table, 0.0) == pytest.approx(np.full(300, 1 / 300))
    settings = Settings(
        epsilons=(Decimal("0.1"),),
        sizes=(150,),
        repeats=20,
        severities=(0.0, 2.0),
        drift=1.0,
        targets=("population",),
        rules=("fixed_sequence", "best_single_model"),
    )
    calm, shifted, *single = run(table, settings).rows
    assert (calm.severity, shifted.severity) == (0.0, 2.0)
    assert shifted.error_mean > calm.error_mean
    assert shifted.routing_saving_mean < calm.routing_saving_mean
    # Drawn alike, the deployments have the models' own error on average.
    assert single[0].error_mean == pytest.approx(table.loss[:, 1].mean(), abs=0.02)


def test_a_deployment_keeps_answers_out_and_draws_its_own_tie_breaks() -> None:
    later = deploy(made_up(50), 0.0, 0.0, np.random.default_rng(4))
    assert isinstance(later, Deployment)
    assert later.v.shape == (50, 2)
    assert len(np.unique(later.v)) == 100


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    for count, repeats in ((0, 20), (3, 100), (20, 20)):
        exact = stats.binomtest(count, repeats).proportion_ci(0.95, "exact")
        assert clopper_pearson(count, repeats) == pytest.approx((exact.low, exact.high))


def test_the_bound_for_a_finite_test_set_spends_alpha_once_more() -> None:
    bound = finite_test_bound(0.05, 0.05, items=2000, loss_bound=2.0)
    t = bound - 0.05
    assert 0.95 - 0.95 * exp(-2 * 2000 * t**2 / 4) == pytest.approx(0.9)
    assert finite_test_bound(0.05, 0.05, items=0, loss_bound=1.0) == 0.05


def test_ece_is_the_weighted_gap_of_the_bins() -> None:
    u = np.array([0.05, 0.05, 0.32, 0.32, 0.32, 1.0])
    loss = np.array([0, 1, 0, 0, 1, 0.0])
    found = reliability(u, loss)
    assert found.counts.tolist() == [1, 3, 2]
    assert found.confidence == pytest.approx([0.0, 0.68, 0.95])
    assert found.accuracy == pytest.approx([1.0, 2 / 3, 0.5])
    assert found.ece == pytest.approx((1 * 1.0 + 3 * abs(0.68 - 2 / 3) + 2 * 0.45) / 6)


def test_a_row_is_plain_numbers_and_texts() -> None:
    (row,) = run(made_up(200), Settings(repeats=2, sizes=(80,), rules=("people_only",))).rows
    assert {type(value) for value in asdict(row).values()} <= {str, int, float, bool, type(None)}
    assert row.net_saving_mean == 0
    assert row.human_labels_mean == 200
