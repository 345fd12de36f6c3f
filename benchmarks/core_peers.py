"""The same numbers from other packages, where these are installed: `confseq` bets along the draw, `mapie` has
Hoeffding-Bentkus p-values, two upper bounds and fixed-sequence testing.
"""

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from runner import median_ms

from routing.core.bounds import BOUNDS, Evidence
from routing.core.rules.fixed_sequence import prefix


class Rows(NamedTuple):
    """Losses (J, n) in [0, 1] in draw order, all items asked; N, epsilon and alpha."""

    losses: NDArray[np.float64]
    pool_size: int
    epsilon: float
    alpha: float


def beside_confseq(rows: Rows, evidence: Evidence, p_values_ms: Mapping[str, float], runs: int) -> None:
    """P-values of all policies by target, beside the milliseconds that ours took."""
    try:
        mart, bets = _confseq()
    except ImportError as error:
        print(f"  confseq: skipped, not installed ({error}); see requirements-bench.txt")
        return
    name = f"confseq {version('confseq')}"
    bound = BOUNDS.get("betting_upper")
    n = rows.losses.shape[1]

    def fixed(x: NDArray[np.float64], m: float) -> NDArray[np.float64]:
        return np.asarray(bets(x, alpha=rows.alpha, fixed_n=n), dtype=np.float64)

    for target, size in (("pool", rows.pool_size), ("population", None)):
        options: dict[str, Any] = {"alpha": rows.alpha, "lambdas_fn_negative": fixed, "N": size, "theta": 0}

        def p_values(options: dict[str, Any] = options) -> NDArray[np.float64]:
            capital = [mart(x, rows.epsilon, **options).max() for x in rows.losses]
            return 1 / np.maximum(capital, 1.0)

        taken, theirs = median_ms(p_values, max(1, runs // 2)), p_values()
        mine = bound.p_values(evidence, rows.epsilon, target=target, level=rows.alpha)
        # Where the losses alone already exceed N r it stops at a mean below 0, and we say p = 1.
        fits = np.ones(len(mine), dtype=bool)
        if size is not None:
            fits = rows.losses.sum(axis=1) < size * rows.epsilon
        gap = np.abs(np.log(mine[fits]) - np.log(theirs[fits])).max()
        print(
            f"  {name}, {target} p-values: {taken / p_values_ms[target]:.1f} times ours, {taken:.1f} ms;"
            f" largest |ln p - ln p| {gap:.1e} over {fits.sum()} policies"
        )


def _confseq() -> tuple[Any, Any]:
    if not hasattr(np, "float_"):
        np.float_ = np.float64  # a name that NumPy 2 no longer has and confseq 0.0.11 annotates with
    from confseq.betting import betting_mart
    from confseq.betting_strategies import lambda_predmix_eb

    return betting_mart, lambda_predmix_eb


def beside_mapie(rows: Rows, evidence: Evidence, runs: int) -> None:
    """Hoeffding-Bentkus p-values, fixed-sequence testing on them, and two upper bounds."""
    try:
        from mapie.risk_control.fwer_control import control_fwer
        from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value, get_r_hat_plus
    except ImportError as error:
        print(f"  mapie: skipped, not installed ({error}); see requirements-bench.txt")
        return
    name = f"mapie {version('mapie')}"
    n, epsilon, alpha = rows.losses.shape[1], rows.epsilon, rows.alpha
    bentkus = BOUNDS.get("hoeffding_bentkus")
    own = partial(bentkus.p_values, evidence, epsilon, target="population", level=alpha)
    other = partial(compute_hoeffding_bentkus_p_value, evidence.mean, n, epsilon)
    ours, mine = median_ms(own, runs), own()
    taken, theirs = median_ms(other, runs), other()[:, 0]
    capped = np.minimum(theirs, 1.0)
    gap = np.abs(np.log(np.minimum(mine, 1.0)) - np.log(capped)).max()
    length = prefix(mine <= alpha)
    # Our first policy is people alone and never tested; theirs is.
    rejected = len(control_fwer(theirs[1:], alpha, "fixed_sequence")) + 1
    print(
        f"  {name}, Hoeffding-Bentkus p-values: {taken / ours:.1f} times ours, {taken:.2f} ms; largest"
        f" |ln p - ln p| {gap:.1e}"
    )
    print(f"  {name}, fixed sequence on them: passes {rejected} policies, ours {length}")
    for label, bound in (("hoeffding", "hoeffding"), ("bernstein", "empirical_bernstein")):
        rule = BOUNDS.get(bound)
        upper = rule.upper(evidence, alpha, target="population")
        theirs = get_r_hat_plus(rows.losses.T, np.zeros(len(upper)), "rcps", label, alpha, 0.25)[1]
        gap = np.abs(upper - np.minimum(theirs, 1.0)).max()
        print(f"  {name}, upper bounds '{label}': largest difference from our '{bound}' {gap:.1e}")
