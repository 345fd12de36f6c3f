"""What one decision delivers and what it costs, item by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.experiment.split import Split
from routing.core.experiment.table import Table

SLACK = 1e-6
"""Sums of losses that differ from epsilon N by less are equal to it: epsilon N as a float may be off by some
1e-12, and sums of 0-1 losses are whole numbers."""


@dataclass(frozen=True)
class Measured:
    """One repeat.

    Attributes
    ----------
    error : float
        Of the delivered data set (target "dataset": what people labelled for the calibration is right, or
        theirs where an expert is), else of the pool, as if nobody had labelled it; after a shift, of the
        deployed items.
    test_error : float
        Of the items outside the calibration set: the paper's annotation error.
    violated : bool
        error > epsilon.
    routing_saving, net_saving : float
        The paper's cost saving, over the items not asked for calibration, and 1 - everything really paid / N
        c_h.
    human_labels : int
        Labels that people gave, those behind the decision included, each item once.
    """

    error: float
    test_error: float
    violated: bool
    routing_saving: float
    net_saving: float
    human_labels: int


class Decides(Protocol):
    """What a method decides: `Decision`, or what does as it does."""

    @property
    def models(self) -> tuple[int, ...]: ...

    @property
    def pilot(self) -> bool: ...

    @property
    def labelled(self) -> Ints | None: ...

    @property
    def asked_calls(self) -> Bools | None: ...

    @property
    def looked_at(self) -> frozenset[int]: ...

    def route(self, u: Floats, v: Ints, usable: Bools) -> tuple[Ints, Bools]: ...


@dataclass(frozen=True)
class Terms:
    """What a decision is measured against; the pilot is paid only where the decision used one."""

    target: str
    epsilon: float
    pilot_size: int


@dataclass(frozen=True)
class Deployment:
    """Items that are routed after the calibration, not among those that it drew from; ``v`` is (n, K)."""

    table: Table
    v: Ints


def measure(split: Split, decision: Decides, terms: Terms) -> Measured:
    """The pool of ``split`` under ``decision``."""
    table = split.table.only(decision.models)
    nominal, ran = decision.route(split.table.u, split.ties, split.table.usable)
    rows = np.arange(table.size)
    loss = table.true_loss[rows, nominal]
    asked = split.asked_items if decision.labelled is None else decision.labelled
    total = float(loss.sum())
    if terms.target == "dataset":
        total += float((table.true_loss[asked, -1] - loss[asked]).sum())
    mask = np.zeros(table.size, dtype=np.bool_)
    mask[asked] = True
    outside = split.outside if decision.labelled is None else ~mask
    needed = _tried(table, nominal, ran)
    _calibrated(needed, asked, decision)
    if decision.pilot:
        needed[split.pilot_items(terms.target, terms.pilot_size), :-1] = True
    people = table.costs[:, -1]
    spent = _paid(table, needed)
    routed = table.path_cost[rows, nominal]
    return Measured(
        error=total / table.size,
        test_error=float(loss[outside].mean()) if outside.any() else 0.0,
        violated=total > terms.epsilon * table.size + SLACK,
        routing_saving=_saving(routed[~mask], people[~mask]),
        net_saving=1 - spent / float(people.sum()),
        human_labels=int(needed[:, -1].sum()),
    )


def measure_deployment(split: Split, decision: Decides, deployment: Deployment, terms: Terms) -> Measured:
    """Other items under the same ``decision``; the calibration set and the pilot of ``split`` are paid, too.

    Nobody labelled a deployed item for the calibration, so its error and its test error are one number.
    """
    table, own = deployment.table.only(decision.models), split.table.only(decision.models)
    nominal, ran = decision.route(deployment.table.u, deployment.v, deployment.table.usable)
    rows = np.arange(table.size)
    total = float(table.final_loss[rows, nominal].sum())
    needed = _tried(table, nominal, ran)
    before = np.zeros((own.size, own.models + 1), dtype=np.bool_)
    asked = split.asked_items if decision.labelled is None else decision.labelled
    scored = split.drawn if decision.labelled is None else slice(None)
    for place, model in enumerate(decision.models):
        before[scored, place] = model in decision.looked_at
    _calibrated(before, asked, decision)
    if decision.pilot:
        before[split.pilot_items(terms.target, terms.pilot_size), :-1] = True
    people = table.costs[:, -1]
    spent = _paid(table, needed) + _paid(own, before)
    return Measured(
        error=total / table.size,
        test_error=total / table.size,
        violated=total > terms.epsilon * table.size + SLACK,
        routing_saving=_saving(table.path_cost[rows, nominal], people),
        net_saving=1 - spent / float(people.sum()),
        human_labels=int(needed[:, -1].sum() + before[:, -1].sum()),
    )


def _calibrated(needed: Bools, asked: Ints, decision: Decides) -> None:
    """Mark in ``needed`` (N, K + 1) what was asked of people and models about the items ``asked``."""
    needed[asked, -1] = True
    needed[asked, :-1] |= True if decision.asked_calls is None else decision.asked_calls


def _tried(table: Table, nominal: Ints, ran: Bools) -> Bools:
    """Sources (n, K + 1) that are paid for an item: those that ran for their score, and those from the
    nominal one to the one that finally labels.
    """
    final = table.final[np.arange(table.size), nominal]
    needed = np.empty((table.size, table.models + 1), dtype=np.bool_, order="F")
    for source in range(table.models + 1):
        needed[:, source] = (nominal <= source) & (final >= source)
    needed[:, :-1] |= ran
    return needed


def _paid(table: Table, needed: Bools) -> float:
    """Cost of all labels that are marked (n, K + 1)."""
    return float(sum(table.costs[needed[:, source], source].sum() for source in range(table.models + 1)))


def _saving(paid: Floats, people: Floats) -> float:
    """1 - the cost of whoever labels / the cost of people; 0 where no item is left."""
    return 1 - float(paid.sum()) / float(people.sum()) if len(people) else 0.0
