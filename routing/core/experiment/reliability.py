"""How well a model's own score tells how often it is right: reliability diagram and ECE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from routing.core.arrays import Floats, Ints

BINS = 10


@dataclass(frozen=True)
class Reliability:
    """Bins of equal width along the confidence 1 - U; empty ones are left out.

    Attributes
    ----------
    confidence, accuracy : (b,)
        Mean confidence in each bin, and mean of 1 - loss / B.
    counts : (b,)
    ece : float
        Expected calibration error (Naeini et al. 2015, cited in the paper): the mean over all items of
        |accuracy - confidence| of their bin.
    """

    confidence: Floats
    accuracy: Floats
    counts: Ints
    ece: float


def reliability(u: Floats, loss: Floats, *, loss_bound: float = 1.0, bins: int = BINS) -> Reliability:
    """The diagram of uncertainties ``u`` (N,) in [0, 1] and losses (N,) in [0, loss_bound]."""
    confidence = 1 - u
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    full = counts > 0
    means = np.bincount(place, weights=confidence, minlength=bins)[full] / counts[full]
    right = np.bincount(place, weights=1 - loss / loss_bound, minlength=bins)[full] / counts[full]
    gap = float(np.sum(counts[full] * np.abs(right - means)) / max(len(u), 1))
    return Reliability(means, right, counts[full], gap)


def interval(right: int, count: int) -> dict[str, float]:
    """The exact 95 % interval ``low`` to ``high`` of a share of which ``right`` of ``count`` were seen
    (Clopper and Pearson 1934).
    """
    low = float(special.betaincinv(right, count - right + 1, 0.025)) if right else 0.0
    high = float(special.betaincinv(right + 1, count - right, 0.975)) if right < count else 1.0
    return {"low": low, "high": high}
