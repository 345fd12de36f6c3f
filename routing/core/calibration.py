"""The labelled calibration set: what a certificate is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from routing.core.answer_losses import losses_of_answers
from routing.core.arrays import Bools, Floats, Ints, Keys
from routing.core.bounds import Evidence
from routing.core.calibration_rows import CalibrationError, CalibrationRow, check_rows
from routing.core.keys import count_at_or_below, pack
from routing.core.losses import Loss
from routing.core.messages import declare, gettext_noop, say
from routing.core.plan import Plan
from routing.core.sampling import CalibrationDraw


@dataclass(frozen=True)
class Calibration:
    """The m rows of a draw, in draw order."""

    rows: tuple[CalibrationRow, ...]

    @classmethod
    def from_rows(cls, rows: Iterable[CalibrationRow]) -> Calibration:
        """The rows sorted into draw order."""
        return cls(tuple(sorted(rows, key=lambda row: row.order)))

    @classmethod
    def of_pool(
        cls,
        plan: Plan,
        draw: CalibrationDraw,
        *,
        items: Sequence[str],
        u: Floats,
        v: Ints,
        answers: Sequence[Sequence[str | None]],
        labels: Mapping[str, str | None],
        p: Sequence[Decimal] | None = None,
    ) -> Calibration:
        """The rows of ``draw`` from the columns of its pool, all in pool order.

        Parameters
        ----------
        items : N texts
        u, v : (N,)
            Uncertainty and tie-break.
        answers : N rows of S - 1 texts
            None for an answer that cannot be used; read for asked items only.
        labels
            By item id, of every asked item; None where nobody could label it.
        p : N decimals, optional
            Each item's own probability of being asked about, where the plan's varies.

        Raises
        ------
        CalibrationError
            The columns are not of one length, an asked item has no label, or the rows do not fit the plan.
        """
        lengths = {"items": len(items), "u": len(u), "v": len(v), "answers": len(answers)}
        if {*lengths.values(), plan.pool_size} != {plan.pool_size}:
            raise CalibrationError(say("calibration.lengths", pool=plan.pool_size, **lengths))
        rows = []
        for order, (place, asked) in enumerate(
            zip(draw.positions.tolist(), draw.asked.tolist(), strict=True)
        ):
            item = items[place]
            if asked and item not in labels:
                why = say("calibration.no_label")
                raise CalibrationError(say("row.wrong", row=order, item=repr(item), why=why))
            rows.append(
                CalibrationRow(
                    item_id=item,
                    position=place,
                    order=order,
                    asked=asked,
                    p=plan.p if p is None else p[place],
                    u=float(u[place]),
                    v=int(v[place]),
                    label=labels[item] if asked else None,
                    answers=tuple(answers[place]) if asked else (),
                )
            )
        calibration = cls(tuple(rows))
        calibration.check(plan)
        return calibration

    @cached_property
    def u(self) -> Floats:
        """Uncertainties (m,)."""
        return np.array([row.u for row in self.rows], dtype=np.float64)

    @cached_property
    def v(self) -> Ints:
        """Tie-breaks (m,)."""
        return np.array([row.v for row in self.rows], dtype=np.int64)

    @cached_property
    def asked(self) -> Bools:
        """Whether people were asked (m,)."""
        return np.array([row.asked for row in self.rows], dtype=np.bool_)

    @property
    def unanswered(self) -> int:
        """Asked items that nobody could label."""
        return sum(row.asked and row.label is None for row in self.rows)

    def check(self, plan: Plan) -> None:
        """Raise `CalibrationError` where the rows do not fit ``plan``."""
        check_rows(self.rows, plan)


@dataclass(frozen=True)
class ObservedLosses:
    """Losses of the n asked items, sorted by key, for each nominal source.

    Attributes
    ----------
    keys : (n,)
        Sorted keys of the asked items.
    upper, lower : (n, S - 1)
        Loss of the source that finally labels where the nominal one is k, with B and 0 where nobody could
        label.
    drawn : int
        m.
    order : (n,)
        Place of each row in the draw, 0 .. m - 1.
    weights : (n,) or None
        1 / p_i of each row; read only where the plan's p varies.
    """

    keys: Keys
    upper: Floats
    lower: Floats
    drawn: int
    order: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    weights: Floats | None = None

    @property
    def asked(self) -> int:
        return len(self.keys)

    @cached_property
    def _sums(self) -> tuple[Floats, Floats, Floats]:
        return cumulative(self.upper), cumulative(self.upper**2), cumulative(self.lower)

    @cached_property
    def _weighted(self) -> Floats:
        """Z l / p_i of the asked rows, (n, S - 1)."""
        if self.weights is None:
            raise ValueError(
                "the probabilities of asking vary, so every observed loss needs its weight 1 / p_i"
            )
        return self.upper * self.weights[:, None]

    @cached_property
    def _weighted_sums(self) -> tuple[Floats, Floats]:
        return cumulative(self._weighted), cumulative(self._weighted**2)

    def totals(self, thresholds: Keys) -> tuple[Floats, Floats, Floats]:
        """K+, the sum of squares behind it, and K- of policies with ``thresholds`` (J, S - 1); each (J,)."""
        counts = count_at_or_below(self.keys, thresholds)
        upper, squares, lower = (along(sums, counts) for sums in self._sums)
        return upper, squares, lower

    def losses_in_order(self, thresholds: Keys) -> Floats:
        """Losses (J, n) of policies with ``thresholds`` (J, S - 1) on the asked rows, in draw order."""
        losses = self._by_row(self.upper, thresholds)
        return losses if not len(self.order) else losses[:, np.argsort(self.order, kind="stable")]

    def weighted_in_order(self, thresholds: Keys) -> Floats:
        """Z l / p_i (J, m) of such policies on all drawn rows, in draw order; 0 where nobody was asked."""
        losses = np.zeros((len(thresholds), self.drawn))
        losses[:, self.order] = self._by_row(self._weighted, thresholds)
        return losses

    def _by_row(self, values: Floats, thresholds: Keys) -> Floats:
        """``values`` (n, S - 1) of the nominal source of each row, 0 for people; (J, n) in key order."""
        counts = count_at_or_below(self.keys, thresholds)
        place = np.arange(len(self.keys))
        nominal = np.zeros((len(counts), len(place)), dtype=np.int64)
        for source in range(counts.shape[1]):
            nominal += place >= counts[:, source, None]
        with_people = np.column_stack([values, np.zeros(len(place))])
        return np.asarray(with_people[place, nominal], dtype=np.float64)

    def split(self, size: int) -> tuple[ObservedLosses, ObservedLosses]:
        """The first ``size`` asked rows in draw order, and the rest; each in key order."""
        first = np.zeros(self.asked, dtype=np.bool_)
        first[np.argsort(self.order, kind="stable")[:size]] = True
        return self._take(first), self._take(~first)

    def _take(self, rows: Bools) -> ObservedLosses:
        """The rows marked in ``rows`` (n,) as a sample of their own, all of it asked."""
        return ObservedLosses(
            self.keys[rows],
            self.upper[rows],
            self.lower[rows],
            int(np.count_nonzero(rows)),
            np.argsort(np.argsort(self.order[rows], kind="stable"), kind="stable"),
        )

    def evidence(self, plan: Plan, total: Floats, squares: Floats | None = None) -> Evidence:
        """Evidence from observed losses ``total`` (J,) alone, for a constant p; squares default to 0-1."""
        return evidence_of_sums(
            plan, total, total if squares is None else squares, asked=self.asked, drawn=self.drawn
        )

    def evidence_of(self, plan: Plan, thresholds: Keys) -> Evidence:
        """All that is observed about the policies with ``thresholds`` (J, S - 1)."""
        total, squares, _ = self.totals(thresholds)
        evidence = self.evidence(plan, total, squares)
        if plan.p_min is None:
            return replace(
                evidence,
                rows=lambda start, stop: self.losses_in_order(thresholds[start:stop]),
                places=np.sort(self.order),
            )
        counts = count_at_or_below(self.keys, thresholds)
        weighted, weighted_squares = (along(sums, counts) for sums in self._weighted_sums)
        return replace(
            evidence,
            weighted=weighted,
            weighted_squares=weighted_squares,
            p_min=Fraction(plan.p_min),
            rows=lambda start, stop: self.weighted_in_order(thresholds[start:stop]),
        )


def evidence_of_sums(plan: Plan, total: Floats, squares: Floats, *, asked: int, drawn: int) -> Evidence:
    """Evidence from the observed losses and their squares alone, each (J,); complete for a constant p."""
    loss = plan.loss_function()
    return Evidence(
        total=total,
        squares=squares,
        asked=asked,
        drawn=drawn,
        p=plan.exact_p,
        pool_size=plan.pool_size,
        loss_bound=loss.bound,
        binary=loss.binary,
    )


def cumulative(values: Floats) -> Floats:
    """Running sums from zero along the rows: (n, k) -> (n + 1, k)."""
    return np.vstack([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])


def along(sums: Floats, counts: Ints) -> Floats:
    """Total of each policy whose source k takes the sorted items counts[:, k - 1] .. counts[:, k]; (J,)."""
    total = np.zeros(len(counts))
    start = np.zeros(len(counts), dtype=np.int64)
    for source in range(sums.shape[1]):
        total += sums[counts[:, source], source] - sums[start, source]
        start = counts[:, source]
    return total


def observed_losses(calibration: Calibration, *, loss: Loss, sources: int) -> ObservedLosses:
    """Losses of the asked rows.

    A model without a usable answer passes the item on, at last to people, whose loss is 0; so its loss is
    that of whoever finally labels.

    Raises
    ------
    CalibrationError
        A loss cannot be computed, or lies outside its range.
    LossUnavailableError
        What computes it failed.
    """
    rows = [row for row in calibration.rows if row.asked]
    values = losses_of_answers(rows, loss, sources - 1)
    upper = np.zeros((len(rows), sources - 1))
    lower = np.zeros_like(upper)
    for index, row in enumerate(rows):
        above = below = 0.0
        for source in range(sources - 2, -1, -1):
            if row.answers[source] is not None:
                above = loss.bound if row.label is None else values[index, source]
                below = 0.0 if row.label is None else above
            upper[index, source], lower[index, source] = above, below
    return sorted_losses(
        [row.u for row in rows],
        [row.v for row in rows],
        upper,
        lower,
        drawn=len(calibration.rows),
        order=[row.order for row in rows],
        weights=np.array([1 / float(row.p) for row in rows]),
    )


def sorted_losses(
    u: Floats | list[float],
    v: Ints | list[int],
    upper: Floats,
    lower: Floats,
    *,
    drawn: int,
    order: Ints | list[int] | None = None,
    weights: Floats | None = None,
) -> ObservedLosses:
    """Losses (n, S - 1) of asked items, brought into the order of their keys.

    ``order`` (n,) is each row's place in the draw; without it the rows come in draw order.
    """
    keys = pack(u, v)
    by_key = np.argsort(keys, kind="stable")
    places = np.arange(len(keys)) if order is None else np.asarray(order)
    return ObservedLosses(
        keys[by_key],
        upper[by_key],
        lower[by_key],
        drawn,
        places.astype(np.int64)[by_key],
        None if weights is None else weights[by_key],
    )


SAYS = {
    "calibration.lengths": gettext_noop(
        "the pool has %(pool)s items, but there are %(items)s ids, %(u)s uncertainties, %(v)s tie-breaks and "
        "%(answers)s rows of answers"
    ),
    "calibration.no_label": gettext_noop(
        "people were asked about it, and it has no label; give None where nobody could label it"
    ),
}
declare(SAYS)
