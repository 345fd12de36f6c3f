"""The paper's selection rules: the same choice as its Algorithm 1 written down as a loop over all tuples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from routing.core import grid as grid_module, search
from routing.core.arrays import Bools, Floats, Ints
from routing.core.bounds import BOUNDS
from routing.core.calibration import ObservedLosses, observed_losses, sorted_losses
from routing.core.compare import compare_losses
from routing.core.grid import score_grid
from routing.core.keys import V_MAX, Key, Thresholds, pack_thresholds
from routing.core.plan import Plan
from routing.core.region import feasible_region
from tests.core.worlds import calibration_of, plan_of

pytestmark = pytest.mark.costly

FINE = "tests.core.test_compare:BETWEEN"
"""A loss of one's own with values between 0 and 2."""


@dataclass(frozen=True)
class Between:
    name: str = FINE
    bound: float = 2.0
    binary: bool = False

    def __call__(self, label: str, prediction: str) -> float:
        return abs(float(label) - float(prediction))


BETWEEN = Between()


@dataclass(frozen=True)
class Draw:
    """m calibration items: scores, losses of each model, whether asked, and with which probability."""

    u: NDArray[np.float64]
    losses: NDArray[np.float64]
    asked: NDArray[np.bool_]
    p: NDArray[np.float64]

    @property
    def models(self) -> int:
        return self.losses.shape[1]

    @property
    def observed(self) -> ObservedLosses:
        rows = np.flatnonzero(self.asked)
        return sorted_losses(
            self.u[rows],
            rows,
            self.losses[rows],
            self.losses[rows],
            drawn=len(self.u),
            order=rows,
            weights=1 / self.p[rows],
        )


def draw(seed: int, *, m: int = 60, models: int = 2, loss: str = "zero_one", varying: bool = False) -> Draw:
    rng = np.random.default_rng(seed)
    u = np.round(rng.random(m), 2 if seed % 2 else 1)
    losses = (rng.random((m, models)) < (0.3 * u**2)[:, None]).astype(np.float64)
    if loss == FINE:
        losses *= np.round(2 * rng.random((m, models)), 3)
    p = np.where(rng.random(m) < 0.5, 0.6, 1.0) if varying else np.full(m, 0.8)
    return Draw(u, losses, rng.random(m) < p, p)


def plan_for(world: Draw, loss: str, varying: bool = False, **changes: object) -> Plan:
    settings: dict[str, object] = {"costs": tuple(2**k for k in range(world.models + 1)), "p": "0.8"}
    settings |= {"loss": loss, "epsilon": "0.3" if loss == "zero_one" else "0.5"}
    settings |= {"p_min": "0.6"} if varying else {}
    return plan_of(1000, len(world.u), **{**settings, **changes})


def passing(plan: Plan, world: Draw, sources: Ints, policies: list[Thresholds], bound: str) -> Bools:
    """Whether each policy, which sends item i to sources[j, i], passes a test of its own."""
    if bound == "clt":  # Eqs. (5) and (7), as printed
        every = np.column_stack([world.losses, np.zeros(len(world.u))])
        z = stats.norm.ppf(1 - float(plan.alpha))
        result = []
        for source in sources:
            w = np.where(world.asked, every[np.arange(len(source)), source] / world.p, 0.0)
            result.append(w.mean() + z * w.std(ddof=1) / np.sqrt(len(w)) <= float(plan.epsilon))
        return np.array(result)
    evidence = world.observed.evidence_of(plan, pack_thresholds(policies))
    rule, loss, alpha = BOUNDS.get(bound), plan.loss_function(), float(plan.alpha)
    pool = not rule.refusal(target="pool", binary=loss.binary, constant_p=plan.constant_p)
    target = "pool" if pool else "population"
    return rule.p_values(evidence, plan.exact_epsilon, target=target, level=alpha) <= alpha


def algorithm_1(
    plan: Plan, world: Draw, bound: str, *, costs: Floats | None = None, scores: Floats | None = None
) -> dict[str, tuple[Thresholds, float]]:
    """Thresholds and mean cost by rule, from all tuples of occurring scores, one after the other."""
    if costs is None:
        costs = np.tile([float(cost) for cost in plan.costs], (len(world.u), 1))
    places = [-1.0, *(np.unique(world.u) if scores is None else scores)]
    edges = list(combinations_with_replacement(places, plan.sources - 1))
    sources = np.array([(world.u[:, None] > np.array(edge)).sum(axis=1) for edge in edges])
    policies = [tuple(None if u < 0 else Key(float(u), V_MAX) for u in edge) for edge in edges]
    cost = [float(costs[np.arange(len(source)), source].mean()) for source in sources]
    feasible = np.flatnonzero(passing(plan, world, sources, policies, bound)).tolist() or [0]
    least = min(cost[j] for j in feasible) + 1e-12
    cheap = max((j for j in feasible if cost[j] <= least), key=lambda j: edges[j])
    far = max(feasible, key=lambda j: edges[j][::-1])
    return {
        "pointwise_argmin": (policies[cheap], cost[cheap]),
        "lexicographic": (policies[far], cost[far]),
    }


def check(plan: Plan, world: Draw, bound: str, **options: Any) -> None:
    expected = algorithm_1(plan, world, bound, **options)
    options.pop("scores", None)
    for entry in compare_losses(plan, world.u, world.observed, bound=bound, **options):
        thresholds, cost = expected[entry.rule]
        assert entry.thresholds == thresholds
        assert entry.routing_cost == pytest.approx(cost)
        assert not entry.holds_level
        assert "For comparison only" in entry.sentence


BOUND_NAMES = ("clt", "hypergeometric", "binomial", "hoeffding", "hoeffding_bentkus", "empirical_bernstein")
CASES = [
    (bound, loss, varying)
    for bound in BOUND_NAMES
    for loss in ("zero_one", FINE)
    for varying in (False, True)
    if bound == "clt"
    or not all(
        BOUNDS.get(bound).refusal(target=target, binary=loss == "zero_one", constant_p=not varying)
        for target in ("pool", "population")
    )
]
SIZES = {1: 200, 2: 60, 3: 25}


@pytest.mark.parametrize("models", SIZES)
@pytest.mark.parametrize(("bound", "loss", "varying"), CASES)
def test_the_choice_of_algorithm_1(bound: str, loss: str, varying: bool, models: int) -> None:
    for seed in range(3):
        world = draw(seed, m=SIZES[models], models=models, loss=loss, varying=varying)
        plan = plan_for(world, loss, varying)
        check(plan, world, bound)
        # Costs of single items in any order: the second model may be dearer than people, or cheaper than
        # the first.
        rng = np.random.default_rng(seed)
        check(plan, world, bound, costs=rng.integers(0, 9, (len(world.u), models + 1)).astype(float))


@pytest.mark.parametrize("loss", ["zero_one", FINE])
def test_the_largest_last_threshold_need_not_be_the_cheapest(loss: str) -> None:
    """Above a score of 0.5 the second model costs more than people, item by item."""
    world = draw(1, m=200, loss=loss)
    costs = np.column_stack([np.ones(200), np.where(world.u > 0.5, 9.0, 2.0), np.full(200, 8.0)])
    plan = plan_for(world, loss, epsilon="0.08")
    check(plan, world, "clt", costs=costs)
    cheapest, furthest = compare_losses(plan, world.u, world.observed, costs=costs)
    assert cheapest.thresholds[1] < furthest.thresholds[1]
    assert cheapest.routing_cost < furthest.routing_cost


def test_the_normal_approximation_that_falls_as_losses_are_added() -> None:
    """All losses of the second model are equal: once it has every item, nothing varies any more."""
    u = np.arange(1, 21) / 20
    world = Draw(u, np.tile([2.0, 0.5], (20, 1)), np.ones(20, dtype=bool), np.ones(20))
    plan = plan_for(world, FINE, p="1", epsilon="0.505")
    policies = [(None, Key(0.95, V_MAX)), (None, Key(1.0, V_MAX))]
    sources = np.array([[1] * 19 + [2], [1] * 20])
    assert passing(plan, world, sources, policies, "clt").tolist() == [False, True]
    check(plan, world, "clt")
    furthest = compare_losses(plan, world.u, world.observed)[1]
    assert furthest.thresholds == (None, Key(1.0, V_MAX))
    assert furthest.upper_bound == pytest.approx(0.5)


@pytest.mark.parametrize("epsilon", ["0.08", "0.12", "0.15"])
def test_four_sources_with_more_scores_than_are_looked_at(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first guess must not be a tuple that is cheaper than all that are looked at."""
    monkeypatch.setattr(grid_module, "TUPLES", 60)  # ten places
    monkeypatch.setattr(search, "GUESSES", 100)
    for seed in range(1, 8, 2):
        world = draw(seed, m=40, models=3, loss=FINE)
        plan = plan_for(world, FINE, epsilon=epsilon)
        scores = np.unique(world.u)
        tried = scores[np.linspace(0, len(scores), 10).round().astype(int)[1:] - 1]
        check(plan, world, "clt", scores=tried)
        for entry in compare_losses(plan, world.u, world.observed):
            assert f"looked for at 9 of {len(scores)} scores" in entry.sentence


def test_of_two_equally_cheap_pairs_the_larger_first_threshold_is_chosen() -> None:
    """Two scores; (0.25, 0.25) and (none, 0.75) cost 3 for a pair of items and show two errors each."""
    u = np.repeat([0.25, 0.75], 20)
    losses = np.zeros((40, 2))
    losses[:2, 0] = losses[20:, 0] = losses[20:22, 1] = 1
    costs = np.repeat([[1.0, 2.0, 9.0], [9.0, 1.0, 2.0]], 20, axis=0)
    world = Draw(u, losses, np.ones(40, dtype=bool), np.ones(40))
    plan = plan_for(world, "zero_one", p="1", epsilon="0.15")
    cheapest, furthest = compare_losses(plan, u, world.observed, costs=costs)
    assert cheapest.routing_cost == furthest.routing_cost == 1.5
    assert cheapest.thresholds == (Key(0.25, V_MAX), Key(0.25, V_MAX))
    assert furthest.thresholds == (None, Key(0.75, V_MAX))
    check(plan, world, "clt", costs=costs)


@pytest.mark.parametrize("models", [2, 3])
@pytest.mark.parametrize("bound", ["clt", "empirical_bernstein"])
def test_many_small_blocks_choose_as_one_large_one(
    bound: str, models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CELLS", 64)
    monkeypatch.setattr(search, "GUESSES", 40)
    for seed in range(4):
        world = draw(seed, m=120 if models == 2 else 25, models=models, loss=FINE)
        plan = plan_for(world, FINE, epsilon="0.7")
        check(plan, world, bound)
        rng = np.random.default_rng(seed)
        check(plan, world, bound, costs=rng.integers(0, 9, (len(world.u), models + 1)).astype(float))


def test_a_bound_that_bets_looks_at_fewer_scores_and_says_so() -> None:
    world = draw(3, m=300)
    world = Draw(np.random.default_rng(3).random(300), world.losses, world.asked, world.p)
    plan = plan_for(world, "zero_one")
    scores = np.unique(world.u)
    tried = scores[np.unique(np.linspace(0, 300, 61).round().astype(int))[1:] - 1]
    check(plan, world, "betting_upper", scores=tried)
    betting = compare_losses(plan, world.u, world.observed, bound="betting_upper")
    assert all("looked for at 60 of 300 scores" in entry.sentence for entry in betting)
    counting = compare_losses(plan, world.u, world.observed, bound="hypergeometric")
    assert not any("looked for" in entry.sentence for entry in counting)


def test_no_error_observed_gives_a_bound_of_zero_as_printed() -> None:
    world = draw(0, m=50)
    world = Draw(world.u, np.zeros((50, 2)), world.asked, world.p)
    for entry in compare_losses(plan_for(world, "zero_one", epsilon="0.0001"), world.u, world.observed):
        assert entry.upper_bound == 0
        assert entry.thresholds[0] == Key(float(world.u.max()), V_MAX)


def test_people_alone_where_nothing_passes() -> None:
    world = draw(0, m=20)
    plan = plan_for(world, "zero_one", epsilon="0.01")
    for entry in compare_losses(plan, world.u, world.observed, bound="hoeffding"):
        assert entry.thresholds == (None, None)
        assert entry.routing_saving == 0
        assert entry.upper_bound > 0.01


@pytest.mark.parametrize("loss", ["zero_one", FINE])
def test_one_grid_serves_several_epsilons(loss: str) -> None:
    world = draw(5, m=120, loss=loss)
    first = plan_for(world, loss)
    costs = np.random.default_rng(0).random((120, 3)) * np.array([1.0, 2.0, 4.0])
    grid = score_grid(first, world.u, world.observed, costs=costs)
    for epsilon in ("0.1", "0.2", "0.4"):
        plan = plan_for(world, loss, epsilon=epsilon)
        shared = compare_losses(plan, world.u, world.observed, grid=grid)
        assert shared == compare_losses(plan, world.u, world.observed, costs=costs)


def test_what_cannot_be_compared_is_refused() -> None:
    world = draw(1, loss=FINE)
    plan = plan_for(world, FINE)
    with pytest.raises(ValueError, match="needs a loss of 0 or 1"):
        compare_losses(plan, world.u, world.observed, bound="hypergeometric")
    rows = calibration_of([0.5], ["1"], [["1", "1"]], plan=plan)
    with pytest.raises(ValueError, match="needs a loss of 0 or 1"):
        feasible_region(replace(plan, bound="hypergeometric"), rows)
    with pytest.raises(ValueError, match="one row per item of the draw"):
        compare_losses(plan, world.u, world.observed, costs=np.ones((3, 3)))
    with pytest.raises(ValueError, match="people cost nothing"):
        compare_losses(plan, world.u, world.observed, costs=np.zeros((60, 3)))
    varying = plan_for(world, FINE, varying=True)
    with pytest.raises(ValueError, match="its weight"):
        compare_losses(varying, world.u, replace(world.observed, weights=None))


@pytest.mark.parametrize("bound", ["hoeffding", "betting_upper"])
def test_the_feasible_region_of_a_loss_between_0_and_b(bound: str) -> None:
    rng = np.random.default_rng(4)
    plan = plan_of(2000, 150, loss=FINE, bound=bound, target="pool", p="0.8", epsilon="0.5", costs=(1, 2, 8))
    labels, answers = ["1"] * 150, rng.choice(["1", "0.5", "2"], (150, 2)).tolist()
    asked = (rng.random(150) < 0.8).tolist()
    calibration = calibration_of(rng.random(150).tolist(), labels, answers, plan=plan, asked=asked)
    region = feasible_region(plan, calibration)
    assert region.feasible.shape[0] <= 40
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=3)
    pairs = list(combinations_with_replacement(range(len(region.u1)), 2))
    policies = [
        tuple(None if u < 0 else Key(u, V_MAX) for u in (region.u1[i], region.u2[j])) for i, j in pairs
    ]
    evidence = losses.evidence_of(plan, pack_thresholds(policies))
    values = BOUNDS.get(bound).p_values(evidence, plan.exact_epsilon, target="pool", level=0.05)
    rows, columns = np.array(pairs).T
    assert region.errors[rows, columns] == pytest.approx(evidence.total)
    assert (region.feasible[rows, columns] == (values <= 0.05))[1:].all()
    assert 0 < region.feasible.sum() < len(pairs)
