"""Running sums over all tuples of thresholds, and least values in ranges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest
from hypothesis import given, strategies as st

from routing.core.arrays import Floats, Ints
from routing.core.calibration import sorted_losses
from routing.core.grid import TUPLES, RangeArgmin, ScoreGrid, score_grid
from routing.core.keys import Key, pack_thresholds
from routing.core.route import route
from tests.core.worlds import plan_of


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_the_last_of_the_least_values_in_every_range(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=float)
    start, stop = np.nonzero(np.arange(len(values))[:, None] <= np.arange(len(values)))
    found = RangeArgmin(values).within(start, stop)
    for i, j, position in zip(start, stop, found, strict=True):
        piece = numbers[i : j + 1]
        assert position == max(k for k in range(i, j + 1) if numbers[k] == min(piece))


@dataclass(frozen=True)
class Sample:
    """m items, the losses and probabilities of those asked about, and the grid of them all."""

    u: Floats
    costs: Floats
    asked: Ints
    losses: Floats
    p: Floats
    grid: ScoreGrid


def sample(models: int, m: int = 40, digits: int = 1) -> Sample:
    rng = np.random.default_rng(models)
    u = np.round(rng.random(m), digits)
    asked = np.flatnonzero(rng.random(m) < 0.7)
    losses = rng.random((len(asked), models))
    p = rng.choice([0.5, 0.8], len(asked))
    plan = plan_of(1000, m, costs=tuple(range(1, models + 2)), p="0.7", p_min="0.5")
    observed = sorted_losses(u[asked], asked, losses, losses, drawn=m, order=asked, weights=1 / p)
    costs = rng.random((m, models + 1))
    return Sample(u, costs, asked, losses, p, score_grid(plan, u, observed, costs=costs))


@pytest.mark.parametrize("models", [1, 2, 3])
def test_sums_and_costs_are_those_of_routing_the_items(models: int) -> None:
    items = sample(models)
    grid, n = items.grid, len(items.asked)
    places = np.array(list(combinations_with_replacement(range(len(grid.scores) + 1), models)))
    sums, cost = grid.totals(places), grid.cost(places)
    with_people = np.column_stack([items.losses, np.zeros(n)])
    assert grid.keys(places) == pytest.approx(pack_thresholds([grid.thresholds(row) for row in places]))
    for row, edges in enumerate(places):
        source = route(items.u, np.arange(len(items.u)), grid.thresholds(edges))
        loss = with_people[np.arange(n), source[items.asked]]
        weighted = loss / items.p
        expected = [loss.sum(), (loss**2).sum(), weighted.sum(), (weighted**2).sum()]
        assert sums[:, row] == pytest.approx(expected)
        assert cost[row] == pytest.approx(items.costs[np.arange(len(source)), source].mean())


@pytest.mark.parametrize("models", [1, 2, 3])
def test_a_head_and_a_last_threshold_make_a_tuple(models: int) -> None:
    grid = sample(models).grid
    heads = grid.heads
    head, last = np.nonzero(heads.ends[:, None] <= np.arange(len(grid.scores) + 1))
    places = np.column_stack([heads.places[head], last])
    assert len(places) == comb(len(grid.scores) + models, models)
    assert heads.sums[:, head] + grid.last[:, last] == pytest.approx(grid.totals(places))
    m = grid.drawn[-1]
    assert (heads.cost[head] + grid.gain[last]) / m == pytest.approx(grid.cost(places))


def test_fewer_scores_are_occurring_ones_and_keep_their_sums() -> None:
    grid = sample(2, m=300, digits=3).grid
    few = grid.within(1000)
    places = len(few.scores) + 1
    assert comb(places + 1, 2) <= 1000 < comb(places + 2, 2)
    assert np.isin(few.scores, grid.scores).all()
    assert few.scores[-1] == grid.scores[-1]
    at = np.concatenate([[0], np.searchsorted(grid.scores, few.scores) + 1])
    pairs = np.array(list(combinations_with_replacement(range(places), 2)))
    assert few.totals(pairs) == pytest.approx(grid.totals(at[pairs]))
    assert few.cost(pairs) == pytest.approx(grid.cost(at[pairs]))
    assert grid.within(10**6) is grid


def test_four_sources_are_searched_on_as_many_heads_as_agreed() -> None:
    grid = sample(3, m=3000, digits=6).grid
    heads = grid.heads.places
    used = len(np.unique(heads))
    assert len(heads) == comb(used + 1, 2) <= TUPLES < comb(used + 2, 2)
    assert heads.max() == len(grid.scores)


def test_the_last_place_holds_every_item() -> None:
    items = sample(1)
    grid = items.grid
    assert grid.drawn[-1] == len(items.u)
    assert grid.thresholds(np.array([len(grid.scores)])) == (Key(float(items.u.max()), 2**53 - 1),)
    assert grid.thresholds(np.array([0])) == (None,)
    assert grid.sources == 2
