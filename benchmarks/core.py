"""How long the statistics take, in three tables.

    .venv/bin/python benchmarks/core.py [--runs 5] [--only certify,pairs,betting]

certify   chains from a pilot and the certificate, with and without the sort of U, by pool and sources
pairs     the paper's rules over all pairs of distinct scores, beside its Algorithm 1 as a loop
betting   the betting bound along a chain, beside the packages `confseq` and `mapie` where these are installed
          (requirements-bench.txt), their numbers compared with ours

Medians of processor time, after one run that is not timed: one thread computes and nothing waits, so on an
idle machine that is the time that passes.  Worlds are made up: models err more where they are less certain.
"""

import argparse
import os
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from itertools import combinations_with_replacement
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import routing.core.chain
from benchmarks import core_peers
from benchmarks.core_peers import Rows
from routing.core.bounds import BOUNDS
from routing.core.bounds.hypergeometric import largest_count, largest_self_consistent
from routing.core.calibration import ObservedLosses, sorted_losses
from routing.core.certify import certify_losses
from routing.core.chain import PilotData, build_chains
from routing.core.compare import Comparison, compare_losses
from routing.core.grid import score_grid
from routing.core.keys import V_MAX, Key
from routing.core.plan import Plan
from routing.core.search import Search

COSTS = {3: (1000, 6000, 32768), 6: (100, 300, 1000, 3000, 10000, 32768), 4: (300, 1000, 6000, 32768)}
POOLS = ((1_497, 300), (100_000, 2_000), (1_000_000, 10_000))


class World(NamedTuple):
    """Scores (N,), tie-breaks (N,) and losses (N, S - 1)."""

    u: NDArray[np.float64]
    v: NDArray[np.int64]
    losses: NDArray[np.float64]


def make_world(size: int, sources: int, *, graded: bool = False, seed: int = 0) -> World:
    """Model k is wrong with probability 0.4 U^2 / k; ``graded`` losses are uniform in [0, 1] where wrong."""
    rng = np.random.default_rng(seed)
    u, v = rng.random(size), rng.integers(0, V_MAX, size)
    rates = 0.4 / np.arange(1, sources) * u[:, None] ** 2
    losses = (rng.random(rates.shape) < rates).astype(np.float64)
    return World(u, v, losses * rng.random(losses.shape) if graded else losses)


def make_plan(size: int, drawn: int, sources: int, **changes: object) -> Plan:
    settings: dict[str, object] = {"target": "dataset", "costs": tuple(map(Decimal, COSTS[sources]))}
    settings |= {"epsilon": Decimal("0.05"), "alpha": Decimal("0.05"), "p": Decimal("0.9")}
    return Plan(m=drawn, pool_size=size, **{**settings, **changes})  # type: ignore[arg-type]


def observe(world: World, drawn: NDArray[np.int64], *, seed: int = 1) -> ObservedLosses:
    """Losses of the drawn items (m,) that people were asked about."""
    asked = np.flatnonzero(np.random.default_rng(seed).random(len(drawn)) < 0.9)
    rows = drawn[asked]
    losses = world.losses[rows]
    return sorted_losses(world.u[rows], world.v[rows], losses, losses, drawn=len(drawn), order=asked)


def clear_caches() -> None:
    """What one analysis computes once, each timed run computes, too."""
    largest_count.cache_clear()
    largest_self_consistent.cache_clear()


def median_ms(step: Callable[[], object], runs: int) -> float:
    times = []
    for run in range(runs + 1):
        clear_caches()
        start = time.process_time()
        step()
        if run:
            times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


# --- certify ---


def certify_table(runs: int) -> None:
    print("\nCertify: chain of the default rule from pool and pilot, then the tests on m labels")
    print(
        f"{'N':>10} {'m':>7} {'sources':>8} {'ratio':>6} {'whole':>10} {'ratio':>6} {'without the sort':>17}"
    )
    first: tuple[float, float] | None = None
    for sources in (3, 6):
        for size, drawn in POOLS:
            whole, without = certify_times(size, drawn, sources, runs)
            first = first or (whole, without)
            print(
                f"{size:>10,} {drawn:>7,} {sources:>8} {whole / first[0]:>6.1f} {whole:>7.1f} ms"
                f" {without / first[1]:>6.1f} {without:>10.1f} ms"
            )


def certify_times(size: int, drawn: int, sources: int, runs: int) -> tuple[float, float]:
    """Median milliseconds of the whole, and of the whole without cutting the sorted pool into slices."""
    world, plan = make_world(size, sources), make_plan(size, drawn, sources)
    rng = np.random.default_rng(2)
    items = rng.choice(size, plan.pilot, replace=False)
    wrong = np.array([[f"wrong by {k}" for k in range(1, sources)]])
    answers = np.where(world.losses[items] > 0, wrong, "right").astype(object)
    pilot = PilotData.of(u=world.u[items], v=world.v[items], answers=answers)
    calibration = rng.choice(size, drawn, replace=False)
    cut = routing.core.chain.make_bins
    sorting = 0.0

    def timed_cut(*arguments: object, **options: object) -> object:
        nonlocal sorting
        start = time.process_time()
        slices = cut(*arguments, **options)  # type: ignore[arg-type]
        sorting = 1000 * (time.process_time() - start)
        return slices

    whole, without = [], []
    routing.core.chain.make_bins = timed_cut  # type: ignore[assignment]
    try:
        for run in range(runs + 1):
            clear_caches()
            start = time.process_time()
            chains = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
            result = certify_losses(plan, chains, observe(world, calibration))
            taken = 1000 * (time.process_time() - start)
            assert result.certified
            if run:
                whole.append(taken)
                without.append(taken - sorting)
    finally:
        routing.core.chain.make_bins = cut
    return statistics.median(whole), statistics.median(without)


# --- pairs ---


def pairs_table(runs: int) -> None:
    print("\nPairs: both rules of the paper over all pairs of distinct scores")
    print("Algorithm 1 as a loop over the pairs, NumPy within each (one run), and the search; bound 'clt'")
    print(f"{'m':>7} {'pairs':>12} {'ratio':>9} {'loop':>12} {'search':>10}   same choice")
    for drawn in (100, 200, 500):
        loop_beside_search(drawn, runs)
    print("The search alone; four sources and bounds that bet look at fewer scores")
    print(
        f"{'m':>7} {'sources':>7} {'tuples':>13} {'loss':>7} {'costs':>9} {'bound':>20} {'ratio':>6}"
        f" {'search':>10} {'peak memory':>12}"
    )
    first = None
    for drawn in (2_000, 10_000):
        for sources, graded, own_costs, bounds in (
            (3, False, False, ("clt", "hypergeometric", "hoeffding_bentkus")),
            (3, False, True, ("clt",)),
            (3, True, False, ("clt", "empirical_bernstein", "hoeffding_bentkus", "betting_upper")),
            (3, True, True, ("clt",)),
            (4, False, False, ("clt",)),
            (4, True, False, ("clt",)),
        ):
            for bound in bounds:
                taken, rest = search_row(drawn, bound, runs, sources, graded=graded, own_costs=own_costs)
                first = first or taken
                print(rest.format(ratio=taken / first))


def loop_beside_search(drawn: int, runs: int) -> None:
    world, plan = make_world(drawn, 3), make_plan(100 * drawn, drawn, 3, epsilon=Decimal("0.1"))
    everyone = np.arange(drawn)
    losses = observe(world, everyone)
    asked = np.zeros(drawn, dtype=bool)
    asked[losses.order] = True
    start = time.process_time()
    choices = algorithm_1(plan, world, asked)
    loop = 1000 * (time.process_time() - start)
    search = median_ms(lambda: compare_losses(plan, world.u, losses), runs)
    found = {entry.rule: entry.thresholds for entry in compare_losses(plan, world.u, losses)}
    assert found == choices, (found, choices)
    pairs = (drawn + 1) * (drawn + 2) // 2
    print(f"{drawn:>7,} {pairs:>12,} {loop / search:>9,.0f} {loop:>9,.0f} ms {search:>7.1f} ms   yes")


def algorithm_1(
    plan: Plan, world: World, asked: NDArray[np.bool_]
) -> dict[str, tuple[Key | None, Key | None]]:
    """The paper's Algorithm 1 with Eqs. (5), (7) and (8), and the choice of its proof, pair by pair."""
    z = statistics.NormalDist().inv_cdf(1 - float(plan.alpha))
    prices = np.array([float(cost) for cost in plan.costs])
    weighted = np.column_stack([world.losses, np.zeros(len(asked))]) * asked[:, None] / float(plan.p)
    rows = np.arange(len(asked))
    feasible = []
    for pair in combinations_with_replacement([-1.0, *np.sort(world.u).tolist()], 2):
        source = (world.u > pair[0]).astype(int) + (world.u > pair[1])
        w = weighted[rows, source]
        if w.mean() + z * w.std(ddof=1) / np.sqrt(len(w)) <= float(plan.epsilon):
            feasible.append((pair, prices[source].mean()))
    least = min(cost for _, cost in feasible)
    cheapest = max(pair for pair, cost in feasible if cost <= least + 1e-9)
    furthest = max((pair for pair, _ in feasible), key=lambda pair: pair[::-1])
    chosen = {"pointwise_argmin": cheapest, "lexicographic": furthest}
    return {
        rule: tuple(None if u < 0 else Key(u, V_MAX) for u in pair)  # type: ignore[misc]
        for rule, pair in chosen.items()
    }


def search_row(
    drawn: int, bound: str, runs: int, sources: int, *, graded: bool, own_costs: bool
) -> tuple[float, str]:
    """Median milliseconds, and the line of the table with a place for the ratio."""
    world = make_world(drawn, sources, graded=graded)
    plan = make_plan(100 * drawn, drawn, sources, loss="jaccard" if graded else "zero_one")
    losses = observe(world, np.arange(drawn))
    costs = None
    if own_costs:
        costs = np.random.default_rng(3).random((drawn, 3)) * np.array([2.0, 4.0, 16.0])

    def search() -> list[Comparison]:
        return compare_losses(plan, world.u, losses, bound=bound, costs=costs)

    taken = median_ms(search, runs)
    tracemalloc.start()
    search()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    grid = Search.over(plan, losses, BOUNDS.get(bound), "pool", score_grid(plan, world.u, losses)).grid
    tuples = int((len(grid.scores) + 1 - grid.heads.ends).sum())
    loss, priced = "graded" if graded else "0-1", "by item" if own_costs else "by label"
    return taken, (
        f"{drawn:>7,} {sources:>7} {tuples:>13,} {loss:>7} {priced:>9} {bound:>20} {{ratio:>6.1f}}"
        f" {taken:>7.1f} ms {peak:>8.1f} MiB"
    )


# --- betting ---


def betting_table(runs: int) -> None:
    print("\nBetting: 300 policies along a chain, m = n = 10,000 items, graded losses, a pool of 100,000")
    world = make_world(10_000, 3, graded=True)
    size = 100_000
    plan = make_plan(size, 10_000, 3, target="pool", loss="jaccard", bound="betting_upper", p=Decimal(1))
    losses = sorted_losses(world.u, world.v, world.losses, world.losses, drawn=10_000)
    edges = np.linspace(0, 1, 300)
    keys = np.column_stack([edges**1.5, edges]) + 1j * V_MAX
    evidence = losses.evidence_of(plan, keys)
    epsilon, alpha = plan.exact_epsilon, float(plan.alpha)
    bound = BOUNDS.get("betting_upper")

    def p_values(target: str) -> NDArray[np.float64]:
        return bound.p_values(evidence, epsilon, target=target, level=alpha)

    targets = ("pool", "population")
    times = {target: median_ms(lambda target=target: p_values(target), runs) for target in targets}
    uppers = {}
    for target in targets:
        taken = median_ms(lambda target=target: bound.upper(evidence, alpha, target=target), min(runs, 3))
        print(
            f"  ours, {target:<11} p-values {times[target]:>7.1f} ms, upper bounds {taken:>8.1f} ms,"
            f" {taken / times[target]:.1f} times as long"
        )
        uppers[target] = taken / 300
    assert evidence.rows is not None
    rows = Rows(evidence.rows(0, 300), size, float(epsilon), alpha)
    core_peers.beside_confseq(rows, evidence, times, uppers["pool"], runs)
    core_peers.beside_mapie(rows, evidence, runs)


def main() -> None:
    tables = {"certify": certify_table, "pairs": pairs_table, "betting": betting_table}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each step, after one that is not")
    parser.add_argument("--only", default=",".join(tables), help="tables to print, with commas between them")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, medians of {options.runs} runs, processor time"
    )
    for name in options.only.split(","):
        tables[name](options.runs)


if __name__ == "__main__":
    main()
