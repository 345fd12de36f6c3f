"""Chains of policies on every model's own score: what each policy delivers, and whom it calls.

Three shapes (docs/statistics.md, "every_score"), with K models counted from 0 here, and key_k = (U_k, V_k):

* `OWN`, one threshold t: f_k's label where key_k <= t, else people.  What a policy takes, the next ones take.
* `CASCADE`, (t1, th, t2): f_k where key_k <= t1; else people where key_k > th; else f_K is called, and
  delivers where key_K <= t2; else people.  Without a usable f_k: f_K is called if th takes everything.
* `FIRST_SCORE`, K thresholds, all on the first model's key: the paper's policies, for a last model that has
  no score.

A model without a usable answer never delivers.  All thresholds are fixed without the draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from routing.core.arrays import Bools, Floats, Keys
from routing.core.every_score.items import EVERYTHING, ScoredItems
from routing.core.keys import NOWHERE, Threshold, Thresholds, pack_thresholds, unpack

OWN, CASCADE, FIRST_SCORE = "own", "cascade", "first_score"
WIDTHS = {OWN: (1, 1), CASCADE: (2, 3)}
"""How many models and thresholds a shape has; of `FIRST_SCORE` one threshold for each model."""
CELLS = 1 << 22
"""Policies times items that are looked at together: bounds the memory."""

Sources = NDArray[np.int16]
"""Who labels: 0 .. K - 1 for models, K for people."""


@dataclass(frozen=True)
class ScoreChain:
    """A named chain; its first policy is people alone.

    Attributes
    ----------
    name, shape : str
    models : places 0 .. K - 1
        (k,) of `OWN`, (k, K - 1) of `CASCADE`, all models of `FIRST_SCORE`.
    thresholds : (J, 1), (J, 3) or (J, K) keys
        As from `pack_thresholds`.
    share : Fraction or None
        Its share of alpha; None for the one chain that gets what the others leave.
    """

    name: str
    shape: str
    models: tuple[int, ...]
    thresholds: Keys
    share: Fraction | None = None

    @classmethod
    def of(
        cls,
        name: str,
        shape: str,
        models: tuple[int, ...],
        policies: Iterable[Thresholds],
        share: Fraction | None = None,
    ) -> ScoreChain:
        """The chain with the thresholds of each policy, as a certificate holds them."""
        return cls(name, shape, models, pack_thresholds(policies), share)

    @property
    def size(self) -> int:
        """J."""
        return len(self.thresholds)

    def policy(self, index: int) -> Thresholds:
        """The thresholds of one policy, as a certificate holds them."""
        return tuple(_threshold(complex(key)) for key in self.thresholds[index])

    def fault(self, models: int) -> str:
        """Why this is no chain for K = ``models`` models, in words; '' if it is one."""
        if self.shape not in (OWN, CASCADE, FIRST_SCORE):
            return f"its shape {self.shape!r} is unknown"
        places, wide = WIDTHS.get(self.shape, (models, models))
        if len(self.models) != places or list(self.models) != sorted({*self.models} & {*range(models)}):
            return f"it works with the models {self.models}, counted from 0, of {models}"
        if self.thresholds.ndim != 2 or self.thresholds.shape[1] != wide:
            return f"its thresholds have the shape {self.thresholds.shape}"
        if not self.size or np.any(self.thresholds[0].real >= 0):
            return "it must start with people alone, where nothing goes to a model"
        t = self.thresholds
        if self.shape == OWN and np.any(t[1:, 0] < t[:-1, 0]):
            return "a policy takes less than the one before it"
        if self.shape == CASCADE and np.any(t[:, 0] > t[:, 1]):
            return "a policy calls the last model below what it delivers without it"
        if self.shape == FIRST_SCORE and np.any(t[:, :-1] > t[:, 1:]):
            return "the thresholds of a policy fall from one source to the next"
        return ""

    def head(self, size: int) -> ScoreChain:
        """Its first policies."""
        return ScoreChain(self.name, self.shape, self.models, self.thresholds[:size], self.share)

    def only(self, index: int) -> ScoreChain:
        """One of its policies by itself."""
        rows = self.thresholds[index : index + 1]
        return ScoreChain(self.name, self.shape, self.models, rows, self.share)

    def delivers(self, items: ScoredItems, policies: slice = slice(None)) -> Sources:
        """Who labels each item under each policy, (J, n)."""
        thresholds, people = self.thresholds[policies], items.models
        if self.shape == FIRST_SCORE:
            return self._by_first_score(items, thresholds)
        k = self.models[0]
        source = np.full((len(thresholds), items.size), people, dtype=np.int16)
        if self.shape == CASCADE:
            last = self.models[1]
            keeps = items.usable[:, last] & (items.keys[:, last] <= thresholds[:, 2, None])
            source[self._called(items, thresholds) & keeps] = last
        source[items.usable[:, k] & (items.keys[:, k] <= thresholds[:, 0, None])] = k
        return source

    def calls(self, items: ScoredItems, policies: slice = slice(None)) -> dict[int, Bools]:
        """Which items each further model is called for under each policy, (J, n), by model.

        Left out is the model whose key decides first: it is called for all items.
        """
        thresholds = self.thresholds[policies]
        if self.shape == OWN:
            return {}
        if self.shape == CASCADE:
            return {self.models[1]: self._called(items, thresholds)}
        nominal = self._nominal(items, thresholds)
        called: dict[int, Bools] = {}
        waiting = (nominal == 0) & ~items.usable[:, 0]
        for model in range(1, items.models):
            called[model] = (nominal == model) | waiting
            waiting = called[model] & ~items.usable[:, model]
        return called

    def paid(self, items: ScoredItems, prices: Sequence[float]) -> Floats:
        """Summed cost (J,) of later models and people on ``items``, all of whose answers are known.

        ``prices`` (K + 1,) are those of the models and of people; the first model is paid on every item
        whatever the policy, and left out.
        """
        total = np.zeros(self.size)
        if self.models[0]:
            # Its key decides everywhere, but where nothing goes to a model.
            total += items.size * prices[self.models[0]] * (self.thresholds.real >= 0).any(axis=1)
        for part in blocks(self.size, items.size):
            some = items.rows(part)
            total += prices[-1] * np.count_nonzero(self.delivers(some) == items.models, axis=1)
            for model, called in self.calls(some).items():
                total += prices[model] * np.count_nonzero(called, axis=1)
        return total

    def _called(self, items: ScoredItems, thresholds: Keys) -> Bools:
        """Where a cascade calls its last model, (J, n)."""
        k = self.models[0]
        key, usable = items.keys[:, k], items.usable[:, k]
        low, high = thresholds[:, 0, None], thresholds[:, 1, None]
        called = usable & (key > low) & (key <= high)
        # Without a usable f_k its key is the last one, which th reaches only where it takes everything.
        called |= ~usable & (high == complex(*EVERYTHING))
        return np.asarray(called, dtype=np.bool_)

    def _by_first_score(self, items: ScoredItems, thresholds: Keys) -> Sources:
        source = self._nominal(items, thresholds)
        for model in range(items.models):
            source[(source == model) & ~items.usable[:, model]] = model + 1
        return source

    def _nominal(self, items: ScoredItems, thresholds: Keys) -> Sources:
        """The first source whose threshold is not below the first model's key, else people."""
        source = np.zeros((len(thresholds), items.size), dtype=np.int16)
        for model in range(items.models):
            source += items.keys[:, 0] > thresholds[:, model, None]
        return source


def blocks(policies: int, items: int) -> Iterator[slice]:
    """The items, so many at a time that the memory is bounded."""
    step = max(1, CELLS // max(policies, 1))
    for start in range(0, items, step):
        yield slice(start, start + step)


def _threshold(key: complex) -> Threshold:
    return None if key == complex(*NOWHERE) else unpack(key)
