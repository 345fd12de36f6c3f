"""The bounds that bet along the draw: against the formulas written out, by enumeration, by simulation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from math import log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from routing.core.bounds import BOUNDS, Evidence
from routing.core.bounds.base import Bound as Base

UPPER = BOUNDS.get("betting_upper")
PAPER = BOUNDS.get("betting")
Floats = NDArray[np.float64]


def seen(
    rows: Floats, *, size: int, drawn: int = 0, p: str = "1", bound: float = 1.0, p_min: str | None = None
) -> Evidence:
    """Evidence of losses (J, n) in draw order; weighted losses of all m rows where ``p_min`` is given."""
    total, squares = rows.sum(axis=1), (rows**2).sum(axis=1)
    varying = p_min is not None
    return Evidence(
        total=total,
        squares=squares,
        asked=rows.shape[1],
        drawn=drawn or rows.shape[1],
        p=Fraction(p),
        pool_size=size,
        loss_bound=bound,
        binary=False,
        weighted=total if varying else None,
        weighted_squares=squares if varying else None,
        p_min=Fraction(p_min) if p_min is not None else None,
        rows=lambda start, stop: rows[start:stop],
    )


def written_out(x: list[float], r: float, alpha: float, size: int | None) -> float:
    """The p-value step by step, for losses and r scaled to [0, 1]; ``size`` None for new items."""
    n = len(x)
    if size is not None and sum(x) >= size * r:
        return 1.0
    total, deviations, variance, capital, best, before = 0.5, 0.25, 0.25, 0.0, 0.0, 0.0
    for t, loss in enumerate(x, start=1):
        bet = sqrt(2 * log(1 / alpha) / (n * variance))
        mean = r if size is None else (size * r - before) / (size - t + 1)
        if mean <= 0:
            return 1.0
        if mean >= 1:
            return 0.0
        capital += log(1 - min(bet, 1 / (2 * (1 - mean))) * (loss - mean))
        best = max(best, capital)
        before += loss
        total += loss
        deviations += (loss - total / (t + 1)) ** 2
        variance = deviations / (t + 1)
    return float(np.exp(-best))


@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize("n", [1, 2, 7, 60, 300])
def test_betting_upper_is_what_the_formulas_say(target: str, n: int) -> None:
    rng = np.random.default_rng(n)
    rows = rng.choice([0.0, 0.0, 0.0, 0.5, 1.3, 2.0], (9, n)) * (np.arange(9) / 8)[:, None]
    for r in (Fraction(1, 20), Fraction(3, 10), Fraction(19, 10)):
        for level in (0.01, 0.05, 0.3):
            got = UPPER.p_values(seen(rows, size=320, bound=2.0), r, target=target, level=level)
            pool = 320 if target == "pool" else None
            expected = [written_out((row / 2).tolist(), float(r) / 2, level, pool) for row in rows]
            assert np.allclose(got, expected, rtol=1e-9)


def test_betting_upper_by_hand() -> None:
    """n = 2, both right: lambda_1 = 2 sqrt(ln 20), s_1 = (1/4 + 1/16) / 2; both bets are cut at 1 / 1.9."""
    got = UPPER.p_values(seen(np.zeros((1, 2)), size=100), Fraction(1, 20), target="population", level=0.05)
    assert got[0] == pytest.approx((1 + 0.05 / 1.9) ** -2)
    second = (100 * 0.05) / 99  # nothing wrong among the first: five wrong ones are left in 99
    got = UPPER.p_values(seen(np.zeros((1, 2)), size=100), Fraction(1, 20), target="pool", level=0.05)
    assert got[0] == pytest.approx(1 / ((1 + 0.05 / 1.9) * (1 + second / (2 * (1 - second)))))


def test_betting_upper_at_the_ends() -> None:
    wrong, right = np.ones((1, 20)), np.zeros((1, 20))
    for target in ("pool", "population"):
        assert UPPER.p_values(seen(wrong, size=40), Fraction(1, 20), target=target)[0] == 1.0
        assert UPPER.p_values(seen(right, size=40), Fraction(0), target=target)[0] == 1.0
        assert UPPER.p_values(seen(right, size=40), Fraction(1), target=target)[0] == 0.0
        nobody = UPPER.p_values(seen(np.zeros((3, 0)), size=40), Fraction(1, 20), target=target)
        assert nobody.tolist() == [1.0, 1.0, 1.0]
    assert UPPER.upper(seen(wrong, size=40), 0.05, target="population")[0] == 1.0
    # Whoever has asked about every item knows: 2 of 40, and no bound is needed.
    all_asked = np.zeros((1, 40))
    all_asked[0, [3, 17]] = 1.0
    assert UPPER.p_values(seen(all_asked, size=40), Fraction(2, 40), target="pool")[0] == 1.0
    assert UPPER.p_values(seen(all_asked, size=40), Fraction(3, 40), target="pool")[0] == 0.0


def test_p_values_fall_with_r_and_the_upper_bound_inverts_them() -> None:
    rng = np.random.default_rng(4)
    rows = rng.random((12, 90)) * (rng.random((12, 90)) < np.linspace(0, 1, 12)[:, None])
    for bound, target in ((UPPER, "pool"), (UPPER, "population"), (PAPER, "population")):
        evidence = seen(rows, size=200, drawn=100, p="0.9")
        p = np.array([bound.p_values(evidence, Fraction(k, 60), target=target) for k in range(61)])
        assert np.all(np.diff(p, axis=0) <= 1e-12)
        upper = bound.upper(evidence, 0.05, target=target)
        assert np.allclose(upper, Base.upper(bound, evidence, 0.05, target=target), atol=1e-9)
        assert np.all(bound.p_values(evidence, upper, target=target)[upper < 1] <= 0.05)


def test_a_loss_of_another_range_gives_the_same_test() -> None:
    rows = np.random.default_rng(6).random((4, 50))
    for target in ("pool", "population"):
        one = UPPER.p_values(seen(rows, size=80), Fraction(6, 10), target=target)
        two = UPPER.p_values(seen(2 * rows, size=80, bound=2.0), Fraction(12, 10), target=target)
        assert np.allclose(one, two, rtol=1e-12)


def test_varying_probabilities_are_bets_on_all_drawn_rows() -> None:
    rng = np.random.default_rng(8)
    p = rng.choice([0.25, 0.5, 1.0], 80)
    rows = np.where(rng.random(80) < p, rng.random(80) * 0.2 / p, 0.0)[None, :]
    evidence = replace(seen(rows, size=500, p="0.55", p_min="0.25"), asked=44)
    got = UPPER.p_values(evidence, Fraction(3, 10), target="population", level=0.1)
    assert got[0] == pytest.approx(written_out((rows[0] / 4).tolist(), 0.3 / 4, 0.1, None), rel=1e-9)


@pytest.mark.parametrize("level", [0.1, 0.3, 0.5])
def test_betting_upper_is_valid_in_every_small_pool(level: float) -> None:
    """All pools of six with losses 0, 1/2, 1 and all orders of the draw: P(p <= level) <= level."""
    size, n = 6, 4
    for pool in combinations_with_replacement((0.0, 0.5, 1.0), size):
        rows = np.array(list(permutations(pool, n)))
        for r in (Fraction(1, 12), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            if Fraction(sum(pool)) > size * r:
                p = UPPER.p_values(seen(rows, size=size), r, target="pool", level=level)
                assert np.mean(p <= level) <= level + 1e-12


@pytest.mark.parametrize("target", ["pool", "population", "varying"])
def test_betting_upper_holds_its_level_where_the_target_is_just_missed(target: str) -> None:
    """1,500 draws; more false certificates than a binomial law allows (1 in 100,000) would be an error."""
    rng, trials, n, size, alpha = np.random.default_rng(11), 1500, 120, 200, 0.1
    if target == "pool":
        pool = np.where(rng.random(size) < 0.15, rng.random(size), 0.0)
        rows = np.array([rng.permutation(pool)[:n] for _ in range(trials)])
        evidence, limit = seen(rows, size=size), Fraction(float(pool.mean())) - Fraction(1, 10**9)
    elif target == "population":
        rows = (rng.random((trials, n)) < 0.1) * rng.beta(2, 1, (trials, n))
        evidence, limit = seen(rows, size=size), Fraction(2, 30)
    else:
        p = rng.choice([0.3, 0.8], (trials, n))
        losses = rng.random((trials, n)) < 0.2
        rows = np.where(losses & (rng.random((trials, n)) < p), 1 / p, 0.0)
        evidence = seen(rows, size=size, p="0.55", p_min="0.3")
        limit = Fraction(2, 10)
    name = "pool" if target == "pool" else "population"
    false = int(np.sum(UPPER.p_values(evidence, limit, target=name, level=alpha) <= alpha))
    assert 0 < false <= stats.binom.isf(1e-5, trials, alpha)


def test_the_bound_of_the_paper_is_its_confidence_set_written_out() -> None:
    n, m, alpha, p = 45, 50, 0.05, 0.9
    rng = np.random.default_rng(3)
    asked = np.sort(rng.choice(m, n, replace=False))
    rows = (rng.random((1, n)) < 0.1).astype(float)
    x = np.zeros(m)
    x[asked] = rows[0]
    grid = np.linspace(0.0005, 0.9995, 2000)
    inside = np.ones(len(grid), dtype=bool)
    up, down = np.ones(len(grid)), np.ones(len(grid))
    total, deviations, variance = 0.5, 0.25, 0.25
    for t, value in enumerate(x, start=1):
        bet = sqrt(2 * log(2 / alpha) / (m * variance))
        up *= 1 + np.minimum(bet, 0.5 / grid) * (value - grid)
        down *= 1 - np.minimum(bet, 0.5 / (1 - grid)) * (value - grid)
        inside &= 0.5 * np.maximum(up, down) < 1 / alpha
        total += value
        deviations += (value - total / (t + 1)) ** 2
        variance = deviations / (t + 1)
    evidence = replace(seen(rows, size=900, drawn=m, p="0.9"), places=asked)
    assert PAPER.upper(evidence, alpha, target="population")[0] == pytest.approx(
        grid[inside].max() / p, abs=0.001
    )


def test_the_one_sided_bound_is_tighter_than_the_paper_s() -> None:
    rows = (np.random.default_rng(2).random((5, 450)) < 0.03).astype(float)
    evidence = seen(rows, size=3000, drawn=500, p="0.9")
    assert np.all(
        UPPER.upper(evidence, 0.05, target="population") < PAPER.upper(evidence, 0.05, target="population")
    )


def test_without_the_order_of_the_draw_there_is_no_bet() -> None:
    evidence = replace(seen(np.zeros((1, 5)), size=10), rows=None)
    with pytest.raises(ValueError, match=r"draw order.*Evidence\.rows"):
        UPPER.p_values(evidence, Fraction(1, 20), target="pool")


@pytest.mark.parametrize("target", ["pool", "population"])
def test_the_least_sample_without_a_loss(target: str) -> None:
    least = UPPER.smallest_sample(
        epsilon=Fraction(1, 20), alpha=0.05, p=Fraction(9, 10), pool_size=400, loss_bound=2.0, target=target
    )
    for n, certifies in ((least - 1, False), (least, True)):
        evidence = seen(np.zeros((1, n)), size=400, bound=2.0)
        p = UPPER.p_values(evidence, Fraction(1, 20), target=target, level=0.05)[0]
        assert (p <= 0.05) is np.bool_(certifies)


def test_forecast_of_the_largest_count_places_the_errors_evenly() -> None:
    sizes = seen(np.zeros((1, 300)), size=1000)
    count = UPPER.largest_count(sizes, Fraction(1, 10), 0.05, target="pool")
    assert 0 < count < 30
    for errors, passes in ((count, True), (count + 1, False)):
        row = np.zeros((1, 300))
        row[0, ((np.arange(errors) + 0.5) * 300 / errors).astype(int)] = 1.0
        p = UPPER.p_values(seen(row, size=1000), Fraction(1, 10), target="pool", level=0.05)[0]
        assert (p <= 0.05) is np.bool_(passes)


def test_what_betting_refuses_names_what_to_use() -> None:
    for target in ("pool", "dataset", "population"):
        assert UPPER.refusal(target=target, binary=False) is None
        assert "use 'betting_upper'" in str(PAPER.refusal(target=target, binary=False))
    assert UPPER.refusal(target="population", binary=False, constant_p=False) is None
    assert "use 'hoeffding_bentkus'" in str(UPPER.refusal(target="pool", binary=False, constant_p=False))
    assert not PAPER.certifies
