"""`split_fixed_sequence`: the first asked items teach the chain, the rest tests it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import floor

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from routing.core import sample_split
from routing.core.arrays import Floats, Keys
from routing.core.bins import Bins, make_bins
from routing.core.bounds.hypergeometric import tail
from routing.core.calibration import ObservedLosses, along, cumulative, sorted_losses
from routing.core.certify import certify_losses, select
from routing.core.chain import Chain, cut_slices
from routing.core.keys import Key, count_at_or_below, pack, pack_thresholds
from routing.core.outlook import outlook, smallest_n
from routing.core.plan import Plan
from routing.core.rules.split_fixed_sequence import first_part
from routing.core.sample_split import SampleSplit
from routing.core.targets.dataset import two_levels
from tests.core.worlds import at, make_world, plan_of, policies

pytestmark = [pytest.mark.costly, pytest.mark.no_cover]

RULE = "split_fixed_sequence"
Losses = NDArray[np.float64]


def tiny_plan(size: int, asked: int, share: str, **changes: object) -> Plan:
    settings = {"epsilon": "0.26", "alpha": "0.4", "p": "1", "costs": (1, 2, 9), "split_share": share}
    return plan_of(size, asked, rule=RULE, **(settings | changes))


def all_splits(size: int, asked: int, first: int) -> Iterator[list[int]]:
    """Every way to draw; the order inside a part does not matter to counts."""
    for taught in combinations(range(size), first):
        rest = [item for item in range(size) if item not in taught]
        for tested in combinations(rest, asked - first):
            yield [*taught, *tested]


def hostile(plan: Plan, slices: Bins, keys: Keys, losses: Floats) -> Chain:
    """A chain that depends on the first items in a wild way and goes back and forth."""
    rng = np.random.default_rng(int(1000 * keys.real.sum()) + int(losses.sum()))
    size = len(slices.ends)
    sequence = []
    for _ in range(5):
        low, high = sorted(rng.integers(0, size + 1, 2).tolist())
        sequence.append(tuple(slices.ends[k - 1] if k else None for k in (low, high)))
    return policies(sequence, costs=[100.0, *rng.permutation(5).astype(float)], name="learnt")


@pytest.mark.parametrize("learner", [hostile, sample_split.learn_chain])
@pytest.mark.parametrize("target", ["dataset", "pool"])
@pytest.mark.parametrize(("size", "asked", "share"), [(7, 4, "0.25"), (7, 5, "0.4")])
def test_false_certificates_of_all_draws(
    monkeypatch: pytest.MonkeyPatch, learner: object, target: str, size: int, asked: int, share: str
) -> None:
    monkeypatch.setattr(sample_split, "learn_chain", learner)
    rng = np.random.default_rng(size)
    u, v = (np.arange(size) + 0.5) / size, np.zeros(size, dtype=np.int64)
    slices = make_bins(u, v, count=size, whole_ties=False)
    plan = tiny_plan(size, asked, share, target=target)
    first = first_part(asked, plan.split_share)
    worst = 0.0
    for world in range(3):
        losses = (rng.random((size, 2)) < (0.3, 0.6, 0.9)[world]).astype(float)
        blank = rng.random(size) < (0.4 if world == 1 else 0.0)
        sums, false, draws = cumulative(losses), 0, 0
        for draw in all_splits(size, asked, first):
            items = np.array(draw)
            lower = np.where(blank[items, None], 0.0, losses[items])
            upper = np.where(blank[items, None], 1.0, losses[items])
            seen = sorted_losses(u[items], v[items], upper, lower, drawn=asked)
            choice = select(plan, (), seen, slices=slices)
            draws += 1
            if choice.index:
                thresholds = pack_thresholds([choice.policy.thresholds])
                wrong = float(along(sums, count_at_or_below(pack(u, v), thresholds))[0])
                if target == "dataset":  # what people labelled is right, in both parts
                    wrong -= float(seen.totals(thresholds)[2][0])
                false += wrong > plan.budget
        share_false = false / draws
        assert share_false <= float(plan.alpha) + 1e-12
        worst = max(worst, share_false)
    assert worst > 0 or learner is not hostile  # hard enough for the level to matter


def observed(first: list[float], rest: list[float], *, blank_first: int = 0) -> ObservedLosses:
    """One model; losses of the asked items in draw order, the last ``blank_first`` of A never labelled."""
    losses = np.array([[loss] for loss in (*first, *rest)])
    upper, lower = losses.copy(), losses.copy()
    if blank_first:
        places = slice(len(first) - blank_first, len(first))
        upper[places], lower[places] = 1.0, 0.0
    n = len(losses)
    return sorted_losses((np.arange(n) + 0.5) / n, np.zeros(n, dtype=int), upper, lower, drawn=n)


EVERYTHING = policies([(at(1.0),)], name="learnt")


def one_model(target: str, **changes: object) -> Plan:
    return plan_of(3000, 500, p="1", costs=(1, 10), target=target, rule=RULE, split_share="0.2", **changes)


@pytest.mark.parametrize(("known", "blank"), [(0, 0), (7, 0), (40, 0), (7, 7), (7, 4)])
def test_the_pool_is_tested_with_what_the_first_part_has_left(known: int, blank: int) -> None:
    """P[Hyp(N', E - K_A + 1, n_B) <= K_B]; what nobody could label there counts as wrong."""
    plan = one_model("pool")
    allowed = max(
        k for k in range(-1, 60) if k < 0 or tail(2900, 150 - known + 1, 400, k) <= float(plan.alpha)
    )
    assert allowed > 0
    for errors in (allowed, allowed + 1):
        first = [0.0] * (100 - known) + [1.0] * known
        losses = observed(first, [1.0] * errors + [0.0] * (400 - errors), blank_first=blank)
        test = SampleSplit.of(plan, losses).test(EVERYTHING, plan.exact_alpha)
        assert test.verdict.eligible[1] == (errors <= allowed)
        assert test.verdict.allowed[1] == allowed
        assert (test.upper[1], test.taught.upper[1]) == (errors, known)  # type: ignore[union-attr]


def test_nothing_is_rejected_where_the_first_part_alone_has_used_up_the_budget() -> None:
    for epsilon, certified in (("0.011", True), ("0.01", True), ("0.0099", False)):
        plan = plan_of(
            3000, 2990, p="1", costs=(1, 10), target="pool", rule=RULE, split_share="0.9", epsilon=epsilon
        )
        first = first_part(2990, plan.split_share)
        losses = observed([1.0] * 30 + [0.0] * (first - 30), [0.0] * (2990 - first))
        test = SampleSplit.of(plan, losses).test(EVERYTHING, plan.exact_alpha)
        assert plan.budget == floor(Decimal(epsilon) * 3000)
        assert test.verdict.eligible[1] == certified
        assert (test.verdict.allowed[1] >= 0) == certified


@pytest.mark.parametrize("bound", ["betting_upper", "hoeffding", "hoeffding_bentkus"])
def test_other_bounds_take_off_what_the_first_part_has_used(bound: str) -> None:
    """Fewer errors are allowed beside more in the first part; none where these exceed the budget."""
    allowed = []
    for known in (0, 20, 60, 151):
        plan = one_model("pool", bound=bound, alpha="0.2", epsilon="0.05")
        passing = [
            errors
            for errors in range(25)
            if SampleSplit.of(
                plan,
                observed(
                    ([1.0] * known + [0.0] * (200 - known))[:200],
                    [float(k % (800 // errors) == 0) if errors else 0.0 for k in range(800)],
                ),
            )
            .test(EVERYTHING, plan.exact_alpha)
            .verdict.eligible[1]
        ]
        allowed.append(max(passing, default=-1))
    assert allowed == sorted(allowed, reverse=True)
    assert allowed[0] > allowed[2]
    assert allowed[-1] == -1


def test_the_data_set_forgives_what_people_mended_in_the_first_part_but_not_what_nobody_could_label() -> None:
    plan = one_model("dataset")
    for known, blank in ((0, 0), (40, 0), (0, 12)):
        levels = two_levels(pool_size=2900, asked=400, budget=150, level=plan.exact_alpha, spent=blank)
        unspent = two_levels(pool_size=2900, asked=400, budget=150, level=plan.exact_alpha)
        assert levels.s == unspent.s > 0
        assert (levels.wide < unspent.wide) == (blank > 0)
        for errors in range(levels.narrow, levels.wide + 2):
            losses = observed(
                [1.0] * known + [0.0] * (100 - known),
                [1.0] * errors + [0.0] * (400 - errors),
                blank_first=blank,
            )
            eligible = SampleSplit.of(plan, losses).test(EVERYTHING, plan.exact_alpha).verdict.eligible[1]
            assert eligible == (errors <= levels.narrow or levels.s <= errors <= levels.wide)


def test_the_population_is_tested_on_the_rest_alone() -> None:
    plan = one_model("population", epsilon="0.05")
    for errors in range(10, 16):
        passes = stats.binom.cdf(errors, 400, 0.05) <= 0.05
        losses = observed([1.0] * 100, [1.0] * errors + [0.0] * (400 - errors))
        assert SampleSplit.of(plan, losses).test(EVERYTHING, plan.exact_alpha).verdict.eligible[1] == passes


def world_losses(order: NDArray[np.int64] | None = None) -> tuple[Plan, Bins, ObservedLosses]:
    rng = np.random.default_rng(3)
    world = make_world("power", 3000, rng)
    plan = plan_of(3000, 500, p="1", rule=RULE)
    asked = rng.permutation(3000)[:500]
    slices = cut_slices(plan, u=world.u, v=world.v)
    rows = np.arange(500) if order is None else order
    items = asked[rows]
    losses = world.losses[items]
    seen = sorted_losses(world.u[items], world.v[items], losses, losses, drawn=500, order=rows)
    return plan, slices, seen


def test_the_first_part_is_the_first_in_the_order_of_the_draw_however_the_rows_come() -> None:
    plan, slices, seen = world_losses()
    result = certify_losses(plan, (), seen, slices=slices)
    shuffled = world_losses(np.random.default_rng(0).permutation(500))[2]
    again = certify_losses(plan, (), shuffled, slices=slices)
    assert result.certified
    assert again.chains == result.chains
    assert (again.thresholds, again.observed_errors) == (result.thresholds, result.observed_errors)
    first, rest = seen.split(150)
    assert sorted(first.order.tolist()) == list(range(150))
    assert len(rest.keys) == 350
    assert result.tests[0].taught.size == 150  # type: ignore[union-attr]


def test_the_rest_does_not_shape_the_chain() -> None:
    plan, _, seen = world_losses()
    slices = make_bins(seen.keys.real, seen.keys.imag.astype(np.int64), count=5, whole_ties=False)
    changed = seen.upper.copy()
    changed[seen.order >= 150] = 1.0
    other = ObservedLosses(seen.keys, changed, changed, seen.drawn, seen.order, seen.weights)
    one, two = (certify_losses(plan, (), losses, slices=slices) for losses in (seen, other))
    assert one.chains == two.chains
    assert one.certified
    assert not two.certified
    assert "more among those that taught it" in two.reason


def test_the_upper_bound_shown_speaks_about_the_whole_pool() -> None:
    plan, slices, seen = world_losses()
    for target in ("pool", "dataset"):
        aimed = plan_of(3000, 500, p="1", rule=RULE, target=target)
        result = certify_losses(aimed, (), seen, slices=slices)
        assert result.pointwise_upper_bound is not None
        assert 0 < result.pointwise_upper_bound <= float(plan.epsilon)


def test_nobody_asked_first_means_nothing_learnt_and_people_alone() -> None:
    plan = tiny_plan(100, 3, "0.3")
    u, v = np.arange(100) / 100, np.zeros(100, dtype=np.int64)
    seen = sorted_losses(u[:3], v[:3], np.zeros((3, 2)), np.zeros((3, 2)), drawn=3)
    result = certify_losses(plan, (), seen, slices=make_bins(u, v, count=10, whole_ties=False))
    assert not result.certified
    assert result.thresholds == (None, None)


def test_slices_and_chains_do_not_go_together() -> None:
    plan, slices, seen = world_losses()
    with pytest.raises(ValueError, match="pass the slices of the pool and no chains"):
        certify_losses(plan, (), seen)
    with pytest.raises(ValueError, match="pass the slices of the pool and no chains"):
        certify_losses(plan, [policies([(Key(0.1, 0), Key(0.2, 0))])], seen, slices=slices)
    with pytest.raises(ValueError, match="learns no chain"):
        certify_losses(plan_of(3000, 500), (), seen, slices=slices)


@pytest.mark.parametrize(("size", "share"), [(1000, "0.25"), (1000, "0.3"), (100_000, "0.3"), (120, "0.7")])
def test_the_smallest_n_is_the_first_whose_rest_is_enough(size: int, share: str) -> None:
    plan = plan_of(size, 100, p="1", target="pool", rule=RULE, split_share=share)

    def certifies(n: int) -> bool:
        first = first_part(n, plan.split_share)
        return bool(tail(size - first, plan.budget + 1, n - first, 0) <= float(plan.alpha))

    assert smallest_n(plan) == next(n for n in range(1, size + 1) if certifies(n))
    assert smallest_n(plan_of(size, 100, p="1", target="pool")) < smallest_n(plan)


def test_the_outlook_tells_both_parts() -> None:
    view = outlook(plan_of(3000, 500, target="pool", rule=RULE))
    assert view.expected_tested_labels == 450 - 135
    assert "the first 135 teach the order of the steps, 315 test it" in view.sentence
    spread = Fraction(view.allowed_errors_at_expected_n, 315)
    known = -(-spread * 135 // 1)
    assert tail(2865, 150 - int(known) + 1, 315, view.allowed_errors_at_expected_n) <= 0.05
    few = outlook(plan_of(3000, 60, target="pool", rule=RULE))
    assert not few.certifiable
    assert f"at least {few.smallest_n} labels are needed" in few.sentence


def test_the_rest_is_a_sample_of_its_own_whatever_the_probability_of_asking() -> None:
    """Given the first part, nothing is left of the Bernoulli draws: weighted and plain means agree."""
    plan = plan_of(3000, 800, p="0.5", costs=(1, 10), target="pool", rule=RULE, split_share="0.25")
    losses = observed([0.0] * 100, [1.0] * 30 + [0.0] * 270)
    losses = ObservedLosses(losses.keys, losses.upper, losses.lower, 800, 2 * losses.order)
    evidence = SampleSplit.of(plan, losses).evidence(EVERYTHING.thresholds)
    assert (evidence.asked, evidence.drawn, evidence.pool_size) == (300, 300, 2900)
    np.testing.assert_allclose(evidence.weighted_mean, [0.0, 0.1])
    np.testing.assert_allclose(evidence.mean, [0.0, 0.1])
