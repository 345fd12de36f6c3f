"""A table of per-item outputs: the pool of an experiment, with everything known about every item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.core.arrays import Bools, Floats, Ints
from routing.core.route import first_usable_source


class TableError(ValueError):
    """A table that cannot be used; the message names row and column where one is to blame."""


@dataclass(frozen=True)
class RecordedLoss:
    """Stands for losses that a table gives as numbers, with their bound B; it compares nothing itself."""

    bound: float = 1.0
    name: str = "recorded"
    binary: bool = False

    def __call__(self, label: str, prediction: str) -> float:
        raise NotImplementedError(
            "the losses of this table are recorded numbers; there is nothing to compare"
        )


@dataclass(frozen=True)
class People:
    """One annotator's label of each item, where people may err and an expert is right.

    Attributes
    ----------
    loss : (N,)
        Of the annotator's label, against the expert's.
    models : (N, K)
        Of the models' answers, against the expert's; a table's own ``loss`` is against the annotator's.
    expert_cost : (N,)
        Of a label by the expert.
    """

    loss: Floats
    models: Floats
    expert_cost: Floats

    def only(self, models: Sequence[int]) -> People:
        """The same with some of the models."""
        return replace(self, models=self.models[:, list(models)])


@dataclass(frozen=True)
class Table:
    """N items, K models and people.

    Attributes
    ----------
    name : str
        Of the file.
    numbers : K whole numbers
        Of the models, as in the names of the columns.
    loss : (N, K)
        Loss of each model's answer, in [0, loss_bound].
    usable : (N, K)
        Whether the answer can be used; one that cannot passes the item to the next source.
    u : (N, K)
        Each model's own uncertainty in [0, 1]; NaN throughout the column of a later model that has none.
    costs : (N, K + 1)
        Cost of a label from each source, people last.
    answers : (N, K) of objects, or None
        Canonical answers, None where unusable; None as a whole where the table gives losses only.
    loss_name, loss_params, loss_bound, binary
        The loss for a plan, its bound B, and whether it is 0 or 1 only.
    p : (N,) or None
        The probability that people are asked about an item if it is drawn, where the table gives one.
    people : People or None
        Where people may err: ``loss`` is then against what an annotator says, and errors are counted against
        the expert.
    """

    name: str
    numbers: tuple[int, ...]
    loss: Floats
    usable: Bools
    u: Floats
    costs: Floats
    answers: NDArray[np.object_] | None = None
    loss_name: str = "zero_one"
    loss_params: Mapping[str, Any] = field(default_factory=dict)
    loss_bound: float = 1.0
    binary: bool = True
    p: Floats | None = None
    people: People | None = None
    _views: dict[tuple[int, ...], Table] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def size(self) -> int:
        """N."""
        return len(self.costs)

    @property
    def models(self) -> int:
        """K."""
        return len(self.numbers)

    @cached_property
    def scored(self) -> tuple[bool, ...]:
        """Whether each model has a score of its own."""
        return tuple(not np.isnan(self.u[:, k]).any() for k in range(self.models))

    @cached_property
    def costs_vary(self) -> bool:
        """Whether the answers of a model cost different amounts."""
        return bool((self.costs != self.costs[:1]).any())

    @cached_property
    def final(self) -> Ints:
        """Source (N, K + 1) that finally labels where the nominal one is k; K stands for people."""
        everyone = np.empty((self.size, self.models + 1), dtype=np.int64)
        for source in range(self.models + 1):
            everyone[:, source] = first_usable_source(np.full(self.size, source), self.usable)
        return everyone

    @cached_property
    def final_loss(self) -> Floats:
        """Loss (N, K + 1) of whoever finally labels; 0 for people."""
        with_people = np.column_stack([self.loss, np.zeros(self.size)])
        return np.asarray(np.take_along_axis(with_people, self.final, axis=1), dtype=np.float64)

    @cached_property
    def true_loss(self) -> Floats:
        """Loss (N, K + 1) of whoever finally labels, against whoever is right: an expert, or people."""
        if self.people is None:
            return self.final_loss
        losses = np.column_stack([self.people.models, self.people.loss])
        return np.asarray(np.take_along_axis(losses, self.final, axis=1), dtype=np.float64)

    @cached_property
    def path_cost(self) -> Floats:
        """Cost (N, K + 1) from the nominal source to the one that finally labels, all attempts included."""
        paid = np.zeros((self.size, self.models + 1))
        for nominal in range(self.models + 1):
            for source in range(nominal, self.models + 1):
                paid[:, nominal] += np.where(self.final[:, nominal] >= source, self.costs[:, source], 0.0)
        return paid

    def only(self, models: Sequence[int]) -> Table:
        """The same items with some of the models (places 0 .. K - 1, in order) and people."""
        chosen = tuple(models)
        if chosen == tuple(range(self.models)):
            return self
        if chosen not in self._views:
            keep = list(chosen)
            self._views[chosen] = Table(
                name=self.name,
                numbers=tuple(self.numbers[k] for k in keep),
                loss=self.loss[:, keep],
                usable=self.usable[:, keep],
                u=self.u[:, keep],
                costs=self.costs[:, [*keep, self.models]],
                answers=None if self.answers is None else self.answers[:, keep],
                loss_name=self.loss_name,
                loss_params=self.loss_params,
                loss_bound=self.loss_bound,
                binary=self.binary,
                p=self.p,
                people=None if self.people is None else self.people.only(keep),
            )
        return self._views[chosen]

    def rows(self, items: Ints) -> Table:
        """The table of the given rows, in this order, repeated where they repeat."""
        return Table(
            name=self.name,
            numbers=self.numbers,
            loss=self.loss[items],
            usable=self.usable[items],
            u=self.u[items],
            costs=self.costs[items],
            loss_name=self.loss_name,
            loss_params=self.loss_params,
            loss_bound=self.loss_bound,
            binary=self.binary,
        )
