"""Which source labels an item: the threshold rule, and who steps in where a source has no usable answer.

Paper, Section 3.1 (the rule T for three sources) and its appendix on more sources, on the key (U, V) instead
of U.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Bools, Ints
from routing.core.keys import Threshold, increasing, pack, pack_thresholds


def route(u: ArrayLike, v: ArrayLike, thresholds: tuple[Threshold, ...]) -> Ints:
    """Nominal source of each item, 0 .. S - 1, where S - 1 is people.

    Item i goes to the first source k whose threshold is not below its key, else to people.

    Parameters
    ----------
    u, v : (n,)
        Uncertainties in [0, 1] and tie-breaks in [0, 2**53).
    thresholds : S - 1 keys, never falling
        None where nothing goes to that source.

    Raises
    ------
    ValueError
        The thresholds fall, or an uncertainty lies outside [0, 1] or is NaN.
    """
    if not increasing(thresholds):
        raise ValueError("thresholds must not fall from one source to the next")
    scores = np.asarray(u, dtype=np.float64)
    if not np.all((scores >= 0) & (scores <= 1)):
        raise ValueError(
            "every uncertainty must lie in [0, 1]; an unusable score is stored as 1 with its reason"
        )
    limits = pack_thresholds([thresholds])[0]
    return np.searchsorted(limits, pack(scores, v), side="left").astype(np.int64)


def first_usable_source(nominal: Ints, usable: Bools) -> Ints:
    """Source that finally labels: the first from the nominal one on with a usable answer, at last people.

    Parameters
    ----------
    nominal : (n,)
        Sources 0 .. S - 1 as from `route`.
    usable : (n, S - 1)
        Whether source k has a usable answer for the item.
    """
    final = np.array(nominal, dtype=np.int64, copy=True)
    for source in range(usable.shape[1]):
        final[(final == source) & ~usable[:, source]] = source + 1
    return final
