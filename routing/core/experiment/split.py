"""One random draw of an experiment, and what all methods share about it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.calibration import ObservedLosses, sorted_losses
from routing.core.experiment.table import Table
from routing.core.keys import V_MAX
from routing.core.pilot import PilotData

T = TypeVar("T")


class Split:
    """A simple random sample of m items, who is asked, the tie-breaks and the order for pilots.

    Attributes
    ----------
    table : Table
    drawn : (m,)
        Pool positions in draw order.
    asked : (m,)
        Z: whether people were asked.
    v : (N,)
        Tie-breaks of the pool.
    p : float or (m,)
        Probability of asking, of each drawn item where it varies.
    """

    def __init__(self, table: Table, *, m: int, p: float, seed: np.random.SeedSequence) -> None:
        draw, ties, pilot, later, every = (np.random.default_rng(child) for child in seed.spawn(5))
        self.table = table
        self.drawn: Ints = draw.permutation(table.size)[:m].astype(np.int64)
        self.p: float | Floats = p if table.p is None else table.p[self.drawn]
        self.asked: Bools = draw.random(m) < self.p
        self.v: Ints = ties.integers(0, V_MAX, table.size, endpoint=True)
        self._ties = ties
        self._pilots: Ints = pilot.permutation(table.size).astype(np.int64)
        self.later = later
        """The stream for deployments after this calibration."""
        self._every = every
        self._kept: dict[Hashable, object] = {}

    @cached_property
    def ties(self) -> Ints:
        """Tie-breaks (N, K) of each model's scores; those of the first are `v`."""
        later = (self.table.size, self.table.models - 1)
        return np.column_stack([self.v, self._ties.integers(0, V_MAX, later, endpoint=True)])

    @cached_property
    def asked_items(self) -> Ints:
        """Pool positions (n,) of the asked items, in draw order."""
        return self.drawn[self.asked]

    @cached_property
    def shuffled(self) -> Ints:
        """All pool positions (N,) in random order, for methods that choose by themselves what is labelled."""
        return self._every.permutation(self.table.size).astype(np.int64)

    @cached_property
    def outside(self) -> Bools:
        """Which items (N,) are not in the calibration set."""
        mask = np.ones(self.table.size, dtype=np.bool_)
        mask[self.drawn] = False
        return mask

    def pilot_items(self, target: str, size: int) -> Ints:
        """Pool positions of the pilot; under "population" it holds no item of the calibration set."""
        pool = self._pilots[self.outside[self._pilots]] if target == "population" else self._pilots
        return pool[:size]

    def pilot(self, target: str, size: int) -> PilotData | None:
        """What the models say about the pilot; None where there is none or the table holds no answers."""
        table = self.table
        if not size or table.answers is None:
            return None
        items = self.pilot_items(target, size)
        costs = table.costs[items, :-1] if table.costs_vary else None
        return PilotData(table.u[items, 0], self.v[items], table.answers[items], table.u[items], costs)

    @cached_property
    def losses(self) -> ObservedLosses:
        """Observed losses of the asked items, of whoever finally labels."""
        items = self.asked_items
        observed = self.table.final_loss[items, :-1]
        weights = None if isinstance(self.p, float) else 1.0 / self.p[self.asked]
        return sorted_losses(
            self.table.u[items, 0],
            self.v[items],
            observed,
            observed,
            drawn=len(self.drawn),
            order=np.flatnonzero(self.asked),
            weights=weights,
        )

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """``make()``, remembered under ``key``: several rules and epsilons ask for the same."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast("T", self._kept[key])
