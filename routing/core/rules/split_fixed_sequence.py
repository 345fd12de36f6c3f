"""`split_fixed_sequence`: learn the chain from the first part of the asked items, test it on the rest.

Given the first part A, the rest B of the asked items is a simple random sample of the N' = N - n_A items that
are not in A; so a chain learnt from A is fixed as far as B is concerned, and `fixed_sequence` holds its level
on B, whatever A was like.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

from routing.core.messages import gettext_noop
from routing.core.rules.base import Rule

RULE = Rule(
    name="split_fixed_sequence",
    title=gettext_noop("Chain learnt from labels"),
    holds_level=True,
    description=gettext_noop(
        "The first part of the calibration labels teaches the order of the steps, the rest tests it: good "
        "where many labels are affordable and no pilot can foretell the errors."
    ),
    constant_p_only=True,
)


def first_part(asked: int, share: Decimal) -> int:
    """n_A = floor(share n): how many of the asked items, first in draw order, teach the chain."""
    return floor(Fraction(share) * asked)
