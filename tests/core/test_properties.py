"""What must hold whatever the data: monotone, blind to names and scales, and equal to brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from routing.core.bounds import BOUNDS, Evidence
from routing.core.calibration import ObservedLosses, sorted_losses
from routing.core.certify import Certification, certify_losses
from routing.core.chain import Chain, build_chains
from routing.core.keys import V_MAX, Key, Thresholds, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.route import route
from tests.core.worlds import plan_of, policies

pytestmark = pytest.mark.costly

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)
CERTIFYING = [bound.name for bound in BOUNDS if bound.certifies]
COUNTING = [bound.name for bound in BOUNDS if bound.certifies and bound.counts_only]


@dataclass(frozen=True)
class Asked:
    """Asked items with few distinct scores and the losses of two models on them."""

    u: Floats
    v: NDArray[np.int64]
    losses: Floats

    def observed(self, order: NDArray[np.int64] | None = None) -> ObservedLosses:
        rows = np.arange(len(self.u)) if order is None else order
        return sorted_losses(
            self.u[rows], self.v[rows], self.losses[rows], self.losses[rows], drawn=len(rows)
        )


def asked_items(seed: int, size: int, *, binary: bool, rate: float = 0.1) -> Asked:
    rng = np.random.default_rng(seed)
    losses = (rng.random((size, 2)) < rate * rng.random()).astype(np.float64)
    if not binary:
        losses *= rng.choice([0.25, 0.5, 1.0], (size, 2))
    return Asked(rng.integers(0, 8, size) / 7, rng.integers(0, V_MAX, size), losses)


def random_chain(seed: int, length: int = 8) -> Chain:
    """Policies in any order and at any cost: nothing about a chain is monotone."""
    rng = np.random.default_rng(seed)
    steps: list[Thresholds] = []
    for _ in range(length):
        low, high = sorted(rng.integers(0, 9, 2).tolist())
        steps.append(tuple(Key((place - 1) / 7, V_MAX) if place else None for place in (low, high)))
    return policies(steps, costs=[100.0, *rng.permutation(length).astype(float)])


def evidence_of(asked: Asked, chain: Chain, *, pool_size: int, binary: bool) -> Evidence:
    losses = asked.observed()
    thresholds = pack_thresholds(policy.thresholds for policy in chain.policies)
    total, squares, _ = losses.totals(thresholds)
    return Evidence(
        total=total,
        squares=squares,
        asked=losses.asked,
        drawn=losses.drawn,
        p=Fraction(1),
        pool_size=pool_size,
        binary=binary,
        rows=lambda start, stop: losses.losses_in_order(thresholds[start:stop]),
    )


def target_of(name: str, *, binary: bool) -> str:
    """A target for which the bound is valid; '' if there is none."""
    for target in ("pool", "population"):
        if not BOUNDS.get(name).refusal(target=target, binary=binary, constant_p=True):
            return target
    return ""


VALID = [(name, binary) for name in CERTIFYING for binary in (True, False) if target_of(name, binary=binary)]


# --- Monotone -----------------------------------------------------------------------------------------------

SHARES = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)


@pytest.mark.parametrize("name", COUNTING)
@given(size=st.integers(1, 60), epsilons=st.tuples(SHARES, SHARES), alphas=st.tuples(SHARES, SHARES))
@settings(max_examples=60, deadline=None)
def test_a_larger_epsilon_or_level_never_allows_fewer_errors(
    name: str, size: int, epsilons: tuple[Fraction, Fraction], alphas: tuple[Fraction, Fraction]
) -> None:
    bound, target = BOUNDS.get(name), target_of(name, binary=True)
    sizes = Evidence.of_counts(np.zeros(1), asked=size, drawn=size, p=Fraction(1), pool_size=2 * size)
    allowed = [
        bound.largest_count(sizes, r, float(alpha), target=target)
        for r, alpha in (
            (min(epsilons), min(alphas)),
            (max(epsilons), min(alphas)),
            (max(epsilons), max(alphas)),
        )
    ]
    assert allowed == sorted(allowed)


@pytest.mark.parametrize("name", COUNTING)
@given(size=st.integers(1, 40), epsilon=SHARES, alpha=SHARES)
@settings(max_examples=60, deadline=None)
def test_the_allowed_errors_are_those_whose_p_value_is_small(
    name: str, size: int, epsilon: Fraction, alpha: Fraction
) -> None:
    bound, target = BOUNDS.get(name), target_of(name, binary=True)
    counts = np.arange(size + 1, dtype=np.float64)
    every = Evidence.of_counts(counts, asked=size, drawn=size, p=Fraction(1), pool_size=2 * size)
    values = bound.p_values(every, epsilon, target=target, level=float(alpha))
    largest = bound.largest_count(every, epsilon, float(alpha), target=target)
    assert np.array_equal(values <= float(alpha), counts <= largest)


@pytest.mark.parametrize(("name", "binary"), VALID)
@given(seed=SEEDS, size=st.integers(1, 40), risks=st.tuples(SHARES, SHARES))
@settings(max_examples=40, deadline=None)
def test_p_values_never_rise_with_epsilon(
    name: str, binary: bool, seed: int, size: int, risks: tuple[Fraction, Fraction]
) -> None:
    target = target_of(name, binary=binary)
    asked = asked_items(seed, size, binary=binary)
    evidence = evidence_of(asked, random_chain(seed), pool_size=3 * size, binary=binary)
    low, high = (BOUNDS.get(name).p_values(evidence, r, target=target) for r in sorted(risks))
    assert np.all(high <= low + 1e-12)
    assert np.all((high >= 0) & (low <= 1))


@pytest.mark.parametrize(("name", "binary"), VALID)
@given(seed=SEEDS, size=st.integers(1, 30), alpha=st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=15, deadline=None)
def test_the_upper_bound_is_where_the_p_value_crosses_the_level(
    name: str, binary: bool, seed: int, size: int, alpha: float
) -> None:
    bound, target = BOUNDS.get(name), target_of(name, binary=binary)
    evidence = evidence_of(
        asked_items(seed, size, binary=binary, rate=0.6),
        random_chain(seed, 4),
        pool_size=3 * size,
        binary=binary,
    )
    upper = bound.upper(evidence, alpha, target=target)
    assert np.all((upper >= 0) & (upper <= 1))
    above, below = np.minimum(upper + 1e-6, 1.0), np.maximum(upper - 1e-6, 0.0)
    assert np.all((bound.p_values(evidence, above, target=target, level=alpha) <= alpha) | (upper > 1 - 1e-6))
    assert np.all((bound.p_values(evidence, below, target=target, level=alpha) > alpha) | (upper < 1e-6))


def chosen_cost(result: Certification, chain: Chain) -> float:
    return chain.policies[result.index].expected_cost


@pytest.mark.parametrize(
    ("target", "bound", "loss"),
    [
        ("pool", "", "zero_one"),
        ("population", "", "zero_one"),
        ("pool", "hoeffding", "jaccard"),
        ("dataset", "hoeffding", "zero_one"),
    ],
)
@given(
    seed=SEEDS,
    size=st.integers(20, 120),
    epsilons=st.tuples(SHARES, SHARES),
    alphas=st.tuples(SHARES, SHARES),
)
@settings(max_examples=60, deadline=None)
def test_a_larger_epsilon_or_alpha_never_certifies_a_dearer_policy(
    target: str,
    bound: str,
    loss: str,
    seed: int,
    size: int,
    epsilons: tuple[Fraction, Fraction],
    alphas: tuple[Fraction, Fraction],
) -> None:
    observed = asked_items(seed, size, binary=loss == "zero_one").observed()
    chain = random_chain(seed + 1)
    costs = []
    for epsilon, alpha in (
        (min(epsilons), min(alphas)),
        (max(epsilons), min(alphas)),
        (max(epsilons), max(alphas)),
    ):
        plan = plan_of(
            3 * size,
            size,
            p=1,
            target=target,
            bound=bound,
            loss=loss,
            epsilon=round(float(epsilon), 4),
            alpha=round(float(alpha), 4),
        )
        costs.append(chosen_cost(certify_losses(plan, [chain], observed), chain))
    assert costs == sorted(costs, reverse=True)


# --- Blind to scale and order -------------------------------------------------------------------------------


def rescaled(u: Floats, rng: np.random.Generator) -> dict[float, float]:
    """A random strictly increasing map of the scores that occur, into [0, 1]."""
    places = np.unique(u)
    images = np.sort(rng.choice(np.arange(10_001), len(places), replace=False)) / 10_000
    return dict(zip(places.tolist(), images.tolist(), strict=True))


def mapped(thresholds: Thresholds, images: dict[float, float]) -> Thresholds:
    return tuple(None if t is None else Key(images[t.u], t.v) for t in thresholds)


@given(seed=SEEDS, size=st.integers(1, 80))
@settings(max_examples=60, deadline=None)
def test_routing_does_not_see_the_scale_of_the_scores(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, 20, size) / 19, rng.integers(0, V_MAX, size)
    images = rescaled(u, rng)
    again = np.array([images[score] for score in u.tolist()])
    ends = sorted(Key(float(u[i]), int(v[i])) for i in rng.integers(0, size, 2))
    thresholds: Thresholds = tuple(ends)
    order = rng.permutation(size)
    routed = route(u, v, thresholds)
    assert np.array_equal(route(again, v, mapped(thresholds, images)), routed)
    assert np.array_equal(route(u[order], v[order], thresholds), routed[order])


@pytest.mark.parametrize("target", ["dataset", "pool", "population"])
@pytest.mark.parametrize("with_pilot", [True, False])
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_chains_and_certificates_see_neither_the_scale_of_the_scores_nor_the_order_of_the_items(
    target: str, with_pilot: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    size, m, small = 400, 150, 60
    u, v = rng.integers(0, 120, size) / 119, rng.integers(0, V_MAX, size)
    losses = (rng.random((size, 2)) < np.array([0.2, 0.1]) * u[:, None]).astype(np.float64)
    answers = np.where(rng.random((size, 2)) < 0.8, "a", "b").astype(object)
    order = rng.permutation(size)
    drawn, tried = order[:m], order[m : m + small]
    images = rescaled(u, rng)
    plan = plan_of(size, m, p=1, target=target, pilot_size=small, epsilon="0.08")

    def outcome(scores: Floats, shuffle: NDArray[np.int64]) -> tuple[tuple[Chain, ...], Certification]:
        reference = np.ones(size, dtype=np.bool_)
        reference[drawn] = False
        chains = build_chains(
            plan,
            u=scores[shuffle],
            v=v[shuffle],
            pilot=PilotData.of(scores[tried], v[tried], answers[tried].tolist()) if with_pilot else None,
            reference=reference[shuffle],
        )
        rows = rng.permutation(drawn)
        seen = sorted_losses(scores[rows], v[rows], losses[rows], losses[rows], drawn=m)
        return chains, certify_losses(plan, chains, seen)

    chains, result = outcome(u, np.arange(size))
    again = np.array([images[score] for score in u.tolist()])
    for scores, shuffle in ((u, order), (again, np.arange(size)), (again, order)):
        other_chains, other = outcome(scores, shuffle)
        assert [chain.name for chain in other_chains] == [chain.name for chain in chains]
        for chain, other_chain in zip(chains, other_chains, strict=True):
            assert len(chain.policies) > 10
            assert other_chain.policies == tuple(
                replace(
                    policy,
                    thresholds=mapped(policy.thresholds, images) if scores is again else policy.thresholds,
                )
                for policy in chain.policies
            )
        assert (other.index, other.chain, other.sentence) == (result.index, result.chain, result.sentence)
        assert other.observed_errors == result.observed_errors
        assert np.array_equal(route(scores, v, other.thresholds), route(u, v, result.thresholds)), (
            "the same items go the same way"
        )
