"""The bound `betting_upper`, for losses from 0 to 1 (docs/methods.md, "betting_upper"): in floats, whose
error is far below what it is compared to; where it is not, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log, sqrt

from hypac_verify.reading import Plan
from hypac_verify.tails import TooCloseError

BETTING = "betting_upper"
CLOSE = 1e-9
"""Logarithms of a capital that are nearer to what they have to reach than this are not told apart."""
LONGEST_PATH = 2**18
PRECISION = 1e-12
MOST_STEPS = 10**5
"""Of more asked items the bets take too long here."""


def capital(losses: Sequence[float], r: float, size: int | None, level: float) -> float | None:
    """Logarithm of the largest capital along the losses, in draw order, if the target were ``r``; of a pool
    of ``size`` items, or None for a source without an end. None where no pool has so high a target.
    """
    odds, steps = 2 * log(1 / level), max(len(losses), 1)
    if r <= 0 if size is None else sum(losses) >= size * r:
        return 0.0
    seen, spread, variance, grown, best = 0.0, 0.25, 0.25, 0.0, 0.0
    for place, loss in enumerate(losses):
        mean = r if size is None else (size * r - seen) / (size - place)
        if mean >= 1:
            return None
        stake = min(sqrt(odds / steps / variance), 0.5 / (1 - mean)) * (loss - mean)
        grown += log(max(1 - stake, 0.25))
        best = max(best, grown)
        seen += loss
        spread += (loss - (0.5 + seen) / (place + 2)) ** 2
        variance = spread / (place + 2)
    return best


def rejects(losses: Sequence[float], plan: Plan, level: Fraction) -> bool:
    """Whether "the target is more than epsilon" is rejected. Raises TooCloseError where that is not told."""
    found = capital(losses, float(limit_of(plan)), pool_of(plan), float(level))
    if found is None:
        return True
    aim = log(1 / level)
    if abs(found - aim) < CLOSE:
        raise TooCloseError
    return found > aim


def pool_of(plan: Plan) -> int | None:
    return None if plan.target == "population" else plan.pool_size


def limit_of(plan: Plan) -> Fraction:
    """Largest mean loss over the pool, or of the source."""
    return plan.epsilon * plan.whole_size / plan.pool_size


def upper(losses: Sequence[float], plan: Plan) -> float:
    """The upper bound on the target at alpha."""
    size, level = pool_of(plan), float(plan.alpha)

    def rejected(r: float) -> bool:
        found = capital(losses, r, size, level)
        return found is None or found >= log(1 / level)

    low, high = 0.0, 1.0
    if not rejected(high):
        return high * plan.pool_size / plan.whole_size
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high * plan.pool_size / plan.whole_size


def smallest_n(plan: Plan, level: Fraction) -> int:
    """Least n with which no loss at all certifies at ``level``; more than there can be where none does."""
    size = plan.pool_size
    most = max(LONGEST_PATH, size) if plan.target == "population" else size
    low, high = 0, 1
    while not rejects([0.0] * min(high, most), plan, level):
        if high >= most:
            return most + 1
        low, high = high, 2 * high
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rejects([0.0] * middle, plan, level) else (middle, high)
    return high
