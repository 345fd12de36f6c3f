"""`lexicographic`: the rule in the proof of the paper's Theorem 4.4, for comparison only."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.messages import gettext_noop
from routing.core.rules.base import Rule

RULE = Rule(
    name="lexicographic",
    title=gettext_noop("The rule of the paper's proof: largest thresholds"),
    holds_level=False,
    description=(
        "the largest u_2, then the largest u_1, among all pairs whose own bound is at most epsilon; "
        "does not hold its stated level"
    ),
)


def choose(thresholds: Ints, cost: Floats) -> int:
    """Row of the feasible ``thresholds`` (r, S - 1) with the largest last one, then the one before it, and so
    on.
    """
    return int(np.lexsort(thresholds.T)[-1])
