"""`pointwise_argmin`: Algorithm 1 and Eq. (8) of the paper, for comparison only."""

from __future__ import annotations

import numpy as np

from routing.core.arrays import Floats, Ints
from routing.core.messages import gettext_noop
from routing.core.rules.base import Rule

RULE = Rule(
    name="pointwise_argmin",
    title=gettext_noop("The paper's rule: cheapest feasible pair"),
    holds_level=False,
    description=(
        "the cheapest among all tuples of thresholds whose own bound is at most epsilon, uncorrected for "
        "having looked at all of them; does not hold its stated level"
    ),
)


def choose(thresholds: Ints, cost: Floats) -> int:
    """Row of least ``cost`` (r,) among the feasible ``thresholds`` (r, S - 1); of equals, the one with the
    largest first threshold, then the largest second, and so on.
    """
    least = np.flatnonzero(cost == cost.min())
    return int(least[np.lexsort(thresholds[least, ::-1].T)[-1]])
