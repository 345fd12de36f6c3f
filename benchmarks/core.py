"""How long the statistics take, in three tables.

    .venv/bin/python benchmarks/core.py [--runs 5] [--only certify,pairs,betting]

certify   chains from a pilot and the certificate, with and without the sort of U, by pool and sources
pairs     the paper's rules over all pairs of distinct scores
betting   the betting bound along a chain, and Hoeffding-Bentkus p-values, beside the packages `confseq` and
          `mapie` where these are installed (requirements-bench.txt), their numbers compared with ours

Medians of processor time, after one run that is not timed: one thread computes and nothing waits, so on an
idle machine that is the time that passes.  Worlds are made up: models err more where they are less certain.
"""

import math
import statistics
import time
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from runner import Table, machine, median_ms, options_of, parts

import routing.core.chain
from routing.core.bounds import BOUNDS
from routing.core.bounds.hypergeometric import largest_count, largest_self_consistent
from routing.core.calibration import ObservedLosses, sorted_losses
from routing.core.certify import certify_losses
from routing.core.chain import PilotData, build_chains
from routing.core.compare import Comparison, compare_losses
from routing.core.grid import score_grid
from routing.core.keys import V_MAX
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


# --- certify ---


def certify_table(runs: int) -> None:
    title = "Certify: chain of the default rule from pool and pilot, then the tests on m labels"
    table = Table("N", "m", "sources", "ratio", "whole, ms", "ratio", "without the sort, ms", title=title)
    first: tuple[float, float] | None = None
    for sources in (3, 6):
        for size, drawn in POOLS:
            whole, without = certify_times(size, drawn, sources, runs)
            first = first or (whole, without)
            times = (f"{whole / first[0]:.1f}", f"{whole:.1f}", f"{without / first[1]:.1f}", f"{without:.1f}")
            table.row(f"{size:,}", f"{drawn:,}", sources, *times)


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
    sorting: list[float] = []

    def timed_cut(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        slices = cut(*arguments, **options)
        sorting.append(time.process_time() - start)
        return slices

    def whole() -> None:
        chains = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
        assert certify_losses(plan, chains, observe(world, calibration)).certified

    with patch.object(routing.core.chain, "make_bins", timed_cut):
        taken = median_ms(whole, runs, before=clear_caches)
    return taken, taken - 1000 * statistics.median(sorting[1:])


# --- pairs ---


def pairs_table(runs: int) -> None:
    table = Table(
        *("m", "sources", "tuples", "loss", "costs", "bound", "ratio", "search, ms", "peak memory, MiB"),
        title="Both rules of the paper; four sources and bounds that bet look at fewer scores",
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
                found = search(drawn, bound, runs, sources, graded=graded, own_costs=own_costs)
                first = first or found.taken
                kind, priced = "graded" if graded else "0-1", "by item" if own_costs else "by label"
                times = (f"{found.taken / first:.1f}", f"{found.taken:.1f}", f"{found.peak:.1f}")
                table.row(f"{drawn:,}", sources, f"{found.tuples:,}", kind, priced, bound, *times)


class Found(NamedTuple):
    """Median milliseconds, MiB allocated in one call, and how many tuples of scores there are."""

    taken: float
    peak: float
    tuples: int


def search(drawn: int, bound: str, runs: int, sources: int, *, graded: bool, own_costs: bool) -> Found:
    world = make_world(drawn, sources, graded=graded)
    plan = make_plan(100 * drawn, drawn, sources, loss="jaccard" if graded else "zero_one")
    losses = observe(world, np.arange(drawn))
    costs = None
    if own_costs:
        costs = np.random.default_rng(3).random((drawn, 3)) * np.array([2.0, 4.0, 16.0])

    def compare() -> list[Comparison]:
        return compare_losses(plan, world.u, losses, bound=bound, costs=costs)

    taken = median_ms(compare, runs, before=clear_caches)
    tracemalloc.start()
    compare()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    grid = Search.over(plan, losses, BOUNDS.get(bound), "pool", score_grid(plan, world.u, losses)).grid
    return Found(taken, peak, int((len(grid.scores) + 1 - grid.heads.ends).sum()))


# --- betting ---


def betting_table(runs: int) -> None:
    print("\nBetting: 300 policies along a chain, m = n = 10,000 items, graded losses, a pool of 100,000")
    world = make_world(10_000, 3, graded=True)
    size = 100_000
    plan = make_plan(size, 10_000, 3, target="pool", loss="jaccard", bound="betting_upper", p=Decimal(1))
    losses = sorted_losses(world.u, world.v, world.losses, world.losses, drawn=10_000)
    edges = np.linspace(0, 1, 300)
    evidence = losses.evidence_of(plan, np.column_stack([edges**1.5, edges]) + 1j * V_MAX)
    epsilon, alpha = plan.exact_epsilon, float(plan.alpha)
    assert evidence.rows is not None
    rows = evidence.rows(0, 300)  # losses (J, n) in draw order, all items asked

    def ours(bound: str, target: str) -> tuple[float, NDArray[np.float64]]:
        """Milliseconds and p-values of all policies."""
        p_values = partial(BOUNDS.get(bound).p_values, evidence, epsilon, target=target, level=alpha)
        return median_ms(p_values, runs, before=clear_caches), p_values()

    for target, pool_size in (("pool", size), ("population", None)):
        mine = ours("betting_upper", target)
        print(f"  ours, {target:<11} p-values {mine[0]:>7.1f} ms")
        # Where the losses alone already exceed N r it stops at a mean below 0, and we say p = 1.
        fits = rows.sum(axis=1) < (pool_size or math.inf) * float(epsilon)
        confseq = partial(confseq_p_values, rows, float(epsilon), alpha, pool_size)
        beside("confseq", f"{target} p-values", mine, confseq, max(1, runs // 2), fits)
    bentkus = ours("hoeffding_bentkus", "population")
    mapie = partial(mapie_p_values, evidence.mean, rows.shape[1], float(epsilon))
    beside("mapie", "Hoeffding-Bentkus p-values", bentkus, mapie, runs)


def beside(
    package: str,
    what: str,
    ours: tuple[float, NDArray[np.float64]],
    theirs: Callable[[], NDArray[np.float64]],
    runs: int,
    fits: NDArray[np.bool_] | slice = slice(None),
) -> None:
    """How long another package takes for the same, and how far its p-values are from ours."""
    try:
        name = f"{package} {version(package)}"
    except PackageNotFoundError:
        print(f"  {package}: skipped, not installed; see requirements-bench.txt")
        return
    taken = median_ms(theirs, runs)
    own, other = (np.log(np.minimum(found, 1.0)[fits]) for found in (ours[1], theirs()))
    print(
        f"  {name}, {what}: {taken / ours[0]:.1f} times ours, {taken:.2f} ms; largest |ln p - ln p| "
        f"{np.abs(own - other).max():.1e} over {len(own)} policies"
    )


def confseq_p_values(
    rows: NDArray[np.float64], epsilon: float, alpha: float, size: int | None
) -> NDArray[np.float64]:
    if not hasattr(np, "float_"):
        np.float_ = np.float64  # a name that NumPy 2 no longer has and confseq 0.0.11 annotates with
    from confseq.betting import betting_mart
    from confseq.betting_strategies import lambda_predmix_eb

    def fixed(x: NDArray[np.float64], m: float) -> NDArray[np.float64]:
        return np.asarray(lambda_predmix_eb(x, alpha=alpha, fixed_n=rows.shape[1]), dtype=np.float64)

    bets: dict[str, Any] = {"alpha": alpha, "lambdas_fn_negative": fixed, "N": size, "theta": 0}
    return 1 / np.maximum([betting_mart(x, epsilon, **bets).max() for x in rows], 1.0)


def mapie_p_values(mean: NDArray[np.float64], n: int, epsilon: float) -> NDArray[np.float64]:
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    return compute_hoeffding_bentkus_p_value(mean, n, epsilon)[:, 0]


TABLES = {"certify": certify_table, "pairs": pairs_table, "betting": betting_table}


def main() -> None:
    options = options_of(
        __doc__,
        runs=(5, "timed runs of each step, after one that is not"),
        only=(",".join(TABLES), "tables to print, with commas between them"),
    )
    print(f"{machine('numpy', 'scipy')}, medians of {options.runs} runs, processor time")
    for name in parts(options.only):
        TABLES[name](options.runs)


if __name__ == "__main__":
    main()
