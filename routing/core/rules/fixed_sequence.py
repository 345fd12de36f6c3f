"""`fixed_sequence`: test the policies of a chain in order, each at the full level, up to a failure.

Let j be the first policy of the chain whose target exceeds the limit.  Every prefix that holds it has
rejected its hypothesis, which happens with probability at most the level; so, with at least the complementary
probability, no policy of the prefix exceeds the limit, and any of them may be chosen by any criterion.
Neither the losses nor the policies need be monotone: the chain only has to be fixed without the draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from routing.core.arrays import Bools, Floats
from routing.core.messages import gettext_noop
from routing.core.rules.base import Rule

RULE = Rule(
    name="fixed_sequence",
    title=gettext_noop("One chain"),
    holds_level=True,
    description=gettext_noop(
        "All thresholds are on the first model's score, as in the paper. Steps that are each a little "
        "cheaper and riskier are tested in order up to the first that fails; the cheapest before it is taken."
    ),
)


@dataclass(frozen=True)
class Verdict:
    """What the tests along one chain of J policies say.

    Attributes
    ----------
    eligible : (J,)
        Certified policies.  The first, people alone, always is.
    prefixes : mapping
        Length of the rejected prefix of each test that was made along the chain, people alone included.
    allowed : (J,)
        Largest number of observed errors with which the policy passes; NaN for a loss that is no count.
    required : int
        Least number of observed errors of a policy that only the wider of two tests admits; else 0.
    limits : mapping
        The numbers of errors that decide, by name, where no item is used up by teaching; empty for a loss
        that is no count.
    """

    eligible: Bools
    prefixes: Mapping[str, int]
    allowed: Floats
    required: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)


def prefix(passes: Bools) -> int:
    """Length of the prefix that ends before the first policy that fails; the first one is never tested."""
    failures = np.flatnonzero(~passes[1:])
    return int(failures[0]) + 1 if len(failures) else len(passes)


def cheapest(eligible: Bools, cost: Floats) -> int:
    """Index of the eligible policy of least cost, the first of equals."""
    return int(np.argmin(np.where(eligible, cost, np.inf)))
