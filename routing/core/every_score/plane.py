"""The plane of u_1 and u_2, each model's threshold on its own score, for the figure beside a certificate."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats, Keys
from routing.core.every_score.chain import CASCADE, ScoreChain
from routing.core.every_score.items import EVERYTHING
from routing.core.every_score.losses import AskedItems
from routing.core.keys import NOWHERE, V_MAX, pack
from routing.core.plan import Plan
from routing.core.region import Region

MOST = 28
"""Thresholds along either side."""


def score_plane(plan: Plan, asked: AskedItems) -> Region:
    """Pairs (u_1, u_2), each judged as if it were the only one looked at: shown, not certified.

    The policy of a pair keeps f_1 where U_1 <= u_1, else f_2 where U_2 <= u_2, and people label the rest.
    So the lower edge is the first model alone and the left edge the second one alone.  Where f_2 was not
    called on an item that a pair sends to it, errors and cost are NaN.

    Parameters
    ----------
    asked
        Of a run with two models that both have a score of their own.

    Raises
    ------
    ValueError
        The run has another number of models.
    """
    if plan.sources != 3:
        raise ValueError(f"the plane is drawn for two models and people, not for {plan.sources} sources")
    first = _edges(asked.items.keys[asked.items.usable[:, 0], 0].real)
    second = _edges(asked.items.keys[asked.items.usable[:, 1] & asked.known[:, 1], 1].real)
    pairs = np.stack(np.meshgrid(_keys(first), _keys(second), indexing="ij"), axis=-1).reshape(-1, 2)
    takes = pairs[:, 1].real >= 0
    # Where nothing goes to the second model it is not called either.
    th = np.where(takes, complex(*EVERYTHING), pairs[:, 0])
    chain = ScoreChain("plane", CASCADE, (0, 1), np.column_stack([pairs[:, 0], th, pairs[:, 1]]))
    unknown = asked.items.rows(~asked.known[:, 1])
    seen = ~chain.calls(unknown)[1].any(axis=1)
    evidence, lower = asked.evidence(plan, chain)
    target = "pool" if plan.target == "dataset" and np.any(lower < evidence.total) else plan.target
    upper = plan.bound_rule().upper(evidence, float(plan.alpha), target=target)
    prices = np.array([float(cost) for cost in plan.costs])
    cost = prices[chain.delivers(asked.items)].mean(axis=1)
    shape = (len(first), len(second))
    feasible = (seen & (upper <= float(plan.risk_limit))).reshape(shape)
    feasible[0, 0] = True  # people alone
    return Region(
        u1=first,
        u2=second,
        feasible=feasible,
        errors=np.where(seen, evidence.total, np.nan).reshape(shape),
        cost=np.where(seen, cost, np.nan).reshape(shape),
    )


def _edges(scores: Floats) -> Floats:
    """-1, "nothing goes here", and scores with about equally many items between them."""
    at = np.linspace(0.0, 1.0, MOST)
    spread = np.quantile(scores, at, method="inverted_cdf") if len(scores) else np.zeros(0)
    return np.concatenate([[-1.0], np.unique(spread)])


def _keys(edges: Floats) -> Keys:
    keys = pack(edges, np.full(len(edges), V_MAX))
    keys[0] = complex(*NOWHERE)
    return keys
