"""The order of the items: the key (U, V).

U is the uncertainty score of the cheapest source, V a tie-break that a hash of the item id fixes when the
pool is frozen.  A threshold is such a key, or None: "nothing goes here".  Both parts are exactly
representable in a float64 (V has 53 bits), so a key packs into one complex128, whose order in NumPy is the
lexicographic one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Ints, Keys

V_BITS = 53
V_MAX = 2**V_BITS - 1


class Key(NamedTuple):
    """A place in the order of the items: uncertainty in [0, 1], then tie-break in [0, 2**53)."""

    u: float
    v: int


Threshold = Key | None
NOWHERE = (-np.inf, 0.0)
"""The threshold None in numbers: below every item."""
Thresholds = tuple[Threshold, ...]


def pack(u: ArrayLike, v: ArrayLike) -> Keys:
    """Keys of items with uncertainties ``u`` (n,) and tie-breaks ``v`` (n,) as sortable numbers (n,)."""
    real = np.asarray(u, dtype=np.float64)
    keys = np.empty(real.shape, dtype=np.complex128)
    keys.real = real + 0.0  # -0.0 and 0.0 are one score
    keys.imag = np.asarray(v, dtype=np.float64)
    return keys


def pack_threshold(threshold: Threshold) -> complex:
    """A threshold as such a number; None lies below every item."""
    return complex(*NOWHERE) if threshold is None else complex(threshold.u + 0.0, float(threshold.v))


def pack_thresholds(policies: Iterable[Sequence[Threshold]]) -> Keys:
    """Thresholds of J policies with S - 1 sources before people, shape (J, S - 1)."""
    rows = list(policies)
    pairs = [NOWHERE if threshold is None else threshold for policy in rows for threshold in policy]
    numbers = np.array(pairs, dtype=np.float64).reshape(-1, 2) + 0.0  # -0.0 and 0.0 are one score
    return numbers.view(np.complex128).reshape(len(rows), -1 if rows else 0)


def unpack(key: complex) -> Key:
    """The key that `pack` made ``key`` of."""
    return Key(float(key.real), int(key.imag))


def count_at_or_below(sorted_keys: Keys, thresholds: Keys) -> Ints:
    """How many of ``sorted_keys`` are not above each threshold; same shape as ``thresholds``."""
    return np.searchsorted(sorted_keys, thresholds, side="right").astype(np.int64)


def increasing(thresholds: Sequence[Threshold]) -> bool:
    """Whether the thresholds never fall from one source to the next (None is below everything)."""
    previous: Threshold = None
    for threshold in thresholds:
        if previous is not None and (threshold is None or threshold < previous):
            return False
        previous = threshold if threshold is not None else previous
    return True
