"""Bounds for losses of any size and varying probabilities of asking, and what all bounds have in common."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, e, exp, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from routing.core.bounds import BOUNDS, Bound, Evidence, recommended
from routing.core.bounds.base import Bound as Base, full_losses

Floats = NDArray[np.float64]
EVERY = [bound.name for bound in BOUNDS]
CERTIFYING = [bound.name for bound in BOUNDS if bound.certifies]
CELLS = list(product(("dataset", "pool", "population"), (True, False), (True, False)))
"""Target, whether the loss is 0 or 1, whether p is constant."""


def constant(rows: Floats, *, size: int, drawn: int, p: str, bound: float = 1.0) -> Evidence:
    """Evidence of the losses (J, n) of asked items in draw order."""
    return Evidence(
        total=rows.sum(axis=1),
        squares=(rows**2).sum(axis=1),
        asked=rows.shape[1],
        drawn=drawn,
        p=Fraction(p),
        pool_size=size,
        loss_bound=bound,
        binary=bool(np.isin(rows, (0, 1)).all()),
        rows=lambda start, stop: rows[start:stop],
    )


def varying(rows: Floats, *, size: int, p: str, p_min: str, bound: float = 1.0) -> Evidence:
    """Evidence of the weighted losses (J, m) of all drawn items in draw order."""
    return Evidence(
        total=np.count_nonzero(rows, axis=1).astype(float),
        squares=np.count_nonzero(rows, axis=1).astype(float),
        asked=int(rows.shape[1] * Fraction(p)),
        drawn=rows.shape[1],
        p=Fraction(p),
        pool_size=size,
        loss_bound=bound,
        binary=False,
        weighted=rows.sum(axis=1),
        weighted_squares=(rows**2).sum(axis=1),
        p_min=Fraction(p_min),
        rows=lambda start, stop: rows[start:stop],
    )


def divergence(a: float, b: float) -> float:
    return (a * log(a / b) if a else 0.0) + ((1 - a) * log((1 - a) / (1 - b)) if a < 1 else 0.0)


@pytest.mark.parametrize("loss_bound", [1.0, 2.0])
def test_hoeffding_bentkus_is_what_the_formula_says(loss_bound: float) -> None:
    rng = np.random.default_rng(1)
    n = 70
    rows = loss_bound * rng.random((6, n)) * (rng.random((6, n)) < np.linspace(0, 1, 6)[:, None])
    evidence = constant(rows, size=500, drawn=80, p="0.9", bound=loss_bound)
    for target in ("pool", "population"):
        for risk in (0.02, 0.2, 0.7):
            got = BOUNDS.get("hoeffding_bentkus").p_values(evidence, Fraction(risk), target=target)
            for value, row in zip(got, rows, strict=True):
                x, r = row.mean() / loss_bound, risk / loss_bound
                first = exp(-n * divergence(min(x, r), r))
                second = e * stats.binom.cdf(ceil(n * x - 1e-9), n, r)
                assert value == pytest.approx(min(first, second, 1.0), rel=1e-9)


def test_hoeffding_bentkus_without_a_loss_is_the_exact_probability() -> None:
    evidence = constant(np.zeros((1, 59)), size=10**6, drawn=59, p="1")
    got = BOUNDS.get("hoeffding_bentkus").p_values(evidence, Fraction(1, 20), target="population")
    assert got[0] == pytest.approx(0.95**59)


def test_hoeffding_bentkus_where_the_probabilities_vary() -> None:
    """Rows are scaled by p_min; a finite pool has the first term alone."""
    rows = np.zeros((1, 200))
    rows[0, 30:50] = 2.0
    evidence = varying(rows, size=900, p="0.7", p_min="0.5")
    first, second = exp(-200 * divergence(0.1, 0.15)), e * stats.binom.cdf(20, 200, 0.15)
    assert second < first
    bound = BOUNDS.get("hoeffding_bentkus")
    assert bound.p_values(evidence, Fraction(3, 10), target="pool")[0] == pytest.approx(first)
    assert bound.p_values(evidence, Fraction(3, 10), target="population")[0] == pytest.approx(second)


def test_empirical_bernstein_is_the_formula_of_the_paper() -> None:
    rng = np.random.default_rng(2)
    m, p, n, b = 400, 0.8, 310, 2.0
    losses = 2 * rng.random((3, n)) * (rng.random((3, n)) < 0.1)
    weighted = np.concatenate([losses / p, np.zeros((3, m - n))], axis=1)
    margin = np.sqrt(2 * weighted.var(axis=1, ddof=1) * log(2 / 0.05) / m)
    expected = weighted.mean(axis=1) + margin + 7 * b * log(2 / 0.05) / (3 * (m - 1) * p)
    bound = BOUNDS.get("empirical_bernstein")
    evidence = constant(losses, size=5000, drawn=m, p="0.8", bound=b)
    assert np.allclose(bound.upper(evidence, 0.05, target="population"), expected, rtol=1e-10)
    assert np.allclose(bound.p_values(evidence, expected, target="population"), 0.05, rtol=1e-9)
    one = constant(np.zeros((1, 1)), size=10, drawn=1, p="1", bound=b)
    assert bound.upper(one, 0.05, target="population")[0] == b
    assert bound.p_values(one, Fraction(1), target="population")[0] == 1.0


def test_hoeffding_where_the_probabilities_vary() -> None:
    rows = np.zeros((2, 300))
    rows[1, :4] = (1.25, 2.0, 2.0, 1.0)
    evidence = varying(rows, size=900, p="0.7", p_min="0.5")
    expected = np.array([0.0, 6.25 / 300]) + 2 * sqrt(log(20) / 600)
    assert np.allclose(BOUNDS.get("hoeffding").upper(evidence, 0.05, target="pool"), expected)


def test_clt_where_the_probabilities_vary() -> None:
    rng = np.random.default_rng(9)
    rows = np.where(rng.random((2, 300)) < 0.1, 1 / rng.choice([0.5, 0.8], (2, 300)), 0.0)
    evidence = varying(rows, size=900, p="0.7", p_min="0.5")
    expected = rows.mean(axis=1) + stats.norm.ppf(0.95) * rows.std(axis=1, ddof=1) / sqrt(300)
    assert np.allclose(BOUNDS.get("clt").upper(evidence, 0.05, target="population"), expected)


@pytest.mark.parametrize(("m", "share"), [(500, 0.093), (100, 0.167)])
def test_clt_passes_a_policy_at_the_limit_far_too_often(m: int, share: float) -> None:
    """One policy with R = epsilon = 0.05, p = 0.9, summed over every number of observed errors."""
    counts = np.arange(m + 1.0)
    seen = Evidence.of_counts(counts, asked=m, drawn=m, p=Fraction(9, 10), pool_size=3000)
    passes = BOUNDS.get("clt").upper(seen, 0.05, target="population") <= 0.05
    assert stats.binom.pmf(counts, m, 0.045)[passes].sum() == pytest.approx(share, abs=5e-4)


# --- What all bounds have in common -------------------------------------------------------------------------


VALID = {
    # bound: cells (target, binary, constant p) in which it certifies
    "hypergeometric": {("dataset", True, True), ("pool", True, True)},
    "binomial": {("population", True, True)},
    "betting_upper": {cell for cell in CELLS if cell[2] or cell[0] == "population"},
    "hoeffding_bentkus": set(CELLS),
    "empirical_bernstein": {cell for cell in CELLS if cell[0] == "population"},
    "hoeffding": set(CELLS),
    "betting": set(),
    "clt": set(),
}


@pytest.mark.parametrize("name", EVERY)
def test_each_bound_is_valid_where_the_table_says_and_refused_in_words_elsewhere(name: str) -> None:
    bound = BOUNDS.get(name)
    for target, binary, constant_p in CELLS:
        refusal = bound.refusal(target=target, binary=binary, constant_p=constant_p)
        assert (refusal is None) is ((target, binary, constant_p) in VALID[name])
        if refusal:
            instead = recommended(target=target, binary=binary, constant_p=constant_p)
            assert str(refusal).startswith(f"the bound '{name}' ")
            assert str(refusal).endswith(f"; use '{instead}'")
            assert (target, binary, constant_p) in VALID[instead]


def test_each_bound_has_words_for_somebody_who_has_to_choose() -> None:
    assert len({bound.title for bound in BOUNDS}) == len(EVERY) == len({bound.summary for bound in BOUNDS})
    for bound in BOUNDS:
        assert bound.title
        assert bound.summary.endswith(".")
        assert ". " not in bound.summary


def kinds(bound: Bound) -> list[tuple[str, Evidence]]:
    """Evidence of every kind that the bound takes, with the target."""
    rng = np.random.default_rng(7)
    chance = np.array([0.0, 0.01, 0.1, 0.5, 1.0])[:, None]
    zero_one = (rng.random((5, 90)) < chance).astype(float)
    weights = 1 / rng.choice([0.5, 0.75, 1.0], (5, 100))
    found = []
    for target, binary, constant_p in CELLS:
        if bound.certifies and bound.refusal(target=target, binary=binary, constant_p=constant_p):
            continue
        if constant_p:
            rows = zero_one if binary else 2 * zero_one * rng.random((5, 90))
            seen = constant(rows, size=400, drawn=100, p="0.9", bound=1.0 if binary else 2.0)
        else:
            rows = weights * (rng.random((5, 100)) < chance / weights)
            seen = varying(rows if binary else rows * rng.random((5, 100)), size=400, p="0.75", p_min="0.5")
        found.append((target, seen))
    return found


@pytest.mark.parametrize("name", EVERY)
def test_p_values_fall_with_r_and_upper_bounds_invert_them(name: str) -> None:
    bound = BOUNDS.get(name)
    for target, seen in kinds(bound):
        grid = [Fraction(k, 37) * int(seen.loss_bound) for k in range(38)]
        p = np.array([bound.p_values(seen, r, target=target) for r in grid])
        assert np.all((p >= 0) & (p <= 1))
        assert np.all(np.diff(p, axis=0) <= 1e-9)
        upper = bound.upper(seen, 0.05, target=target)
        assert np.all(upper >= 0)
        most = seen.loss_bound
        bisected = Base.upper(bound, seen, 0.05, target=target)
        assert np.allclose(np.minimum(upper, most), np.minimum(bisected, most), atol=1e-8)


@pytest.mark.parametrize("name", CERTIFYING)
def test_no_loss_all_losses_and_nobody_asked(name: str) -> None:
    bound = BOUNDS.get(name)
    for target, seen in kinds(bound):
        size = 4000
        many = replace(seen, asked=size, drawn=size, p=Fraction(1), pool_size=2 * size)
        none = full_losses(many, 0)
        assert bound.p_values(none, Fraction(1, 20), target=target)[0] <= 0.05
        assert 0 < bound.upper(none, 0.05, target=target)[0] <= 0.05
        every = full_losses(many, size)
        assert bound.p_values(every, Fraction(1, 20), target=target)[0] > 0.99
        if target != "dataset" or not seen.binary:
            assert bound.upper(every, 0.05, target=target)[0] >= 0.99 * seen.loss_bound
        nobody = full_losses(replace(seen, asked=0, drawn=0), 0)
        assert bound.p_values(nobody, Fraction(1, 20), target=target).tolist() == [1.0]


@pytest.mark.parametrize("name", CERTIFYING)
@pytest.mark.parametrize(("loss_bound", "p_min"), [(1.0, None), (2.0, None), (1.0, "0.4")])
def test_the_smallest_sample_is_where_no_loss_begins_to_certify(
    name: str, loss_bound: float, p_min: str | None
) -> None:
    bound = BOUNDS.get(name)
    for target in ("pool", "population"):
        binary = loss_bound == 1.0 and p_min is None
        if bound.refusal(target=target, binary=binary, constant_p=p_min is None):
            continue
        least = bound.smallest_sample(
            epsilon=Fraction(1, 20),
            alpha=0.05,
            p=Fraction(1, 2) if p_min else Fraction(1),
            pool_size=4000,
            loss_bound=loss_bound,
            p_min=Fraction(p_min) if p_min else None,
            target=target,
        )
        for asked, certifies in ((least - 1, False), (least, True)):
            drawn = 2 * asked if p_min else asked
            sizes = Evidence.of_counts(
                np.zeros(1), asked=asked, drawn=drawn, p=Fraction(asked, drawn), pool_size=4000
            )
            sizes = replace(sizes, loss_bound=loss_bound, p_min=Fraction(p_min) if p_min else None)
            p = bound.p_values(full_losses(sizes, 0), Fraction(1, 20), target=target, level=0.05)[0]
            assert (p <= 0.05) is np.bool_(certifies)


WORLDS = [
    (bound.name, target, kind)
    for bound, target, kind in product(BOUNDS, ("pool", "population"), ("zero_one", "bounded", "varying"))
    if not bound.refusal(target=target, binary=kind == "zero_one", constant_p=kind != "varying")
]


@pytest.mark.parametrize(("name", "target", "kind"), WORLDS)
def test_each_bound_holds_its_level_where_the_target_is_just_missed(
    name: str, target: str, kind: str
) -> None:
    """2,000 draws at alpha = 0.2; the limit of false certificates is what chance passes once in 100,000."""
    bound, trials, m, size, alpha = BOUNDS.get(name), 2000, 100, 160, 0.2
    rng = np.random.default_rng([EVERY.index(name), target == "pool", ord(kind[0])])
    pool = (rng.random(size) < 0.15) * (1.0 if kind == "zero_one" else rng.choice([0.3, 1.0], size))
    chance = rng.choice([0.3, 0.9], size) if kind == "varying" else np.full(size, 0.8)
    items = np.array(
        [rng.permutation(size)[:m] if target == "pool" else rng.integers(0, size, m) for _ in range(trials)]
    )
    limit = Fraction(float(pool.mean())) - Fraction(1, 10**9)  # new items: drawn from the pool, put back
    asked = rng.random(items.shape) < chance[items]
    if kind == "varying":
        rows = np.where(asked, pool[items] / chance[items], 0.0)
        seen = varying(rows, size=size, p="0.6", p_min="0.3")
        false = int(np.sum(bound.p_values(seen, limit, target=target, level=alpha) <= alpha))
    else:
        false = 0
        for n in np.unique(asked.sum(axis=1)):
            here = asked.sum(axis=1) == n
            rows = pool[items[here][asked[here]].reshape(-1, n)]
            seen = constant(rows, size=size, drawn=m, p="0.8")
            false += int(np.sum(bound.p_values(seen, limit, target=target, level=alpha) <= alpha))
    assert false <= stats.binom.isf(1e-5, trials, alpha)


@pytest.mark.parametrize("name", ["betting_upper", "hoeffding_bentkus"])
def test_where_nothing_can_be_certified_more_items_are_needed_than_there_are(name: str) -> None:
    sizes = {"alpha": 0.05, "p": Fraction(1), "loss_bound": 1.0}
    for target in ("pool", "population"):
        least = BOUNDS.get(name).smallest_sample(
            epsilon=Fraction(1, 10**6), pool_size=40, target=target, **sizes
        )
        assert least > 40


def test_a_bound_needs_no_more_than_its_p_values() -> None:
    """What the contract gives to a new bound, by the example of a worse Hoeffding."""

    class Worse(Base):
        name = "worse"
        certifies = True

        def refusal(self, *, target: str, binary: bool, constant_p: bool = True) -> str:
            return ""

        def p_values(self, evidence: Evidence, r: object, *, target: str, level: float = 0.05) -> Floats:
            return np.minimum(2 * BOUNDS.get("hoeffding").p_values(evidence, r, target=target), 1.0)

    seen = Evidence.of_counts(np.arange(4.0), asked=900, drawn=900, p=Fraction(1), pool_size=5000)
    expected = np.arange(4) / 900 + sqrt(log(2 / 0.05) / 1800)
    assert np.allclose(Worse().upper(seen, 0.05, target="pool"), expected, atol=1e-12)
    assert Worse().largest_count(seen, Fraction(1, 20), 0.05, target="pool") == int(
        900 * (0.05 - sqrt(log(2 / 0.05) / 1800))
    )
    least = Worse().smallest_sample(
        epsilon=Fraction(1, 20), alpha=0.05, p=Fraction(1), pool_size=5000, loss_bound=1.0
    )
    assert least == ceil(log(2 / 0.05) / 2 / 0.05**2)
