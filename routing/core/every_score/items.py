"""What every model said of n items: its own key (U_k, V_k), and whether its answer can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Bools, Ints, Keys
from routing.core.keys import V_MAX, Key, pack

EVERYTHING = Key(1.0, V_MAX)
"""The threshold that takes every item, and the key of an item without a usable answer."""


@dataclass(frozen=True)
class ScoredItems:
    """Keys and usability of n items for K models.

    Attributes
    ----------
    keys : (n, K)
        As from `pack`; `EVERYTHING` where the answer cannot be used, or where the model has no score at all.
    usable : (n, K)
    """

    keys: Keys
    usable: Bools

    @classmethod
    def of(
        cls, u: ArrayLike, v: ArrayLike, usable: ArrayLike | None = None, *, scored: Sequence[bool] = ()
    ) -> ScoredItems:
        """From each model's own uncertainty and tie-breaks, both (n, K).

        Parameters
        ----------
        u
            In [0, 1], or NaN where there is no score.
        usable
            Whether the answer can be used; all can by default.
        scored
            Which models have a score of their own: those whose column is not NaN throughout, by default.
            An answer without a score of a model that has one is not usable (Section 7); the answers of a
            model without any score are.

        Raises
        ------
        ValueError
            The shapes differ, or an uncertainty lies outside [0, 1].
        """
        scores, ties = np.asarray(u, dtype=np.float64), np.asarray(v)
        good = np.ones(scores.shape, dtype=np.bool_) if usable is None else np.asarray(usable, dtype=np.bool_)
        if scores.ndim != 2 or not scores.shape == ties.shape == good.shape:
            raise ValueError(
                f"uncertainties, tie-breaks and usability have the shapes {scores.shape}, {ties.shape} and "
                f"{good.shape}; expected one row per item and one column per model in each"
            )
        missing = np.isnan(scores)
        if not np.all(missing | ((scores >= 0) & (scores <= 1))):
            raise ValueError("an uncertainty lies outside [0, 1]; leave it out (NaN) where it has no meaning")
        has_score = np.array(scored or ~missing.all(axis=0), dtype=np.bool_)
        good = good & ~(missing & has_score)
        last = ~good | ~has_score
        return cls(pack(np.where(last, 1.0, scores), np.where(last, V_MAX, ties)), good)

    @property
    def size(self) -> int:
        """n."""
        return len(self.keys)

    @property
    def models(self) -> int:
        """K."""
        return int(self.keys.shape[1])

    def rows(self, chosen: Ints | Bools | slice) -> ScoredItems:
        """Some of the items."""
        return ScoredItems(self.keys[chosen], self.usable[chosen])
