"""The rows of a calibration set, and what they must be to fit their plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from routing.core.keys import V_MAX, Key
from routing.core.messages import CoreError, Message, declare, gettext_noop, say
from routing.core.plan import Plan


class CalibrationError(CoreError):
    """A calibration set that does not fit its plan or itself; the message names the row."""


@dataclass(frozen=True)
class CalibrationRow:
    """One item of the draw.

    Attributes
    ----------
    order : int
        0 .. m - 1 in the order of the draw.
    position : int
        Place in the frozen pool, 0 .. N - 1.
    asked : bool
        Z: whether people were asked.
    p : Decimal
        The probability with which they were.
    u, v
        Uncertainty in [0, 1] and tie-break in [0, 2**53).
    label : str or None
        Label of record as canonical text; None where nobody was asked or nobody could label the item.
    answers : S - 1 texts
        What each model answered, None where it has no usable answer.  Read for asked items only.
    own : S - 2 pairs of uncertainty and tie-break, or nothing
        Those of the later models, None where there is no score.  Read for asked items, by `every_score`.
    called : S - 1 truths, or nothing
        Whether each model was asked about the item; all were where this is empty.
    annotator, person
        Whose item it is, and her label, None where she gave none: of asked items where an expert is the
        reference, whose ``label`` is then that of the expert, None where she was not to label the item or
        could not.
    later : positions from 1
        Models that answered about the item only after the run's second commitment.
    losses : S - 1 numbers, or nothing
        Of a loss that is measured elsewhere what came for each model's answer, None where there is no usable
        answer or no label.
    """

    item_id: str
    position: int
    order: int
    asked: bool
    p: Decimal
    u: float
    v: int
    label: str | None
    answers: tuple[str | None, ...]
    own: tuple[Key | None, ...] = ()
    called: tuple[bool, ...] = ()
    annotator: str = ""
    person: str | None = None
    later: tuple[int, ...] = ()
    losses: tuple[float | None, ...] = ()


def check_rows(rows: Sequence[CalibrationRow], plan: Plan) -> None:
    """Raise `CalibrationError` where the rows, in draw order, do not fit ``plan``."""
    if len(rows) != plan.m:
        raise CalibrationError(say("row.count", m=plan.m, rows=len(rows)))
    positions: set[int] = set()
    ids: set[str] = set()
    for index, row in enumerate(rows):
        if why := _wrong(row, index, plan) or _twice(row, positions, ids):
            raise CalibrationError(say("row.wrong", row=index, item=repr(row.item_id), why=why))
        positions.add(row.position)
        ids.add(row.item_id)


def _twice(row: CalibrationRow, positions: set[int], ids: set[str]) -> Message | None:
    if row.position in positions:
        return say("row.position", position=row.position)
    return say("row.twice") if row.item_id in ids else None


def _wrong(row: CalibrationRow, index: int, plan: Plan) -> Message | None:
    if row.order != index:
        return say("row.order", order=row.order, row=index)
    if not 0 <= row.position < plan.pool_size:
        return say("row.position", position=row.position)
    if plan.p_min is None and row.p != plan.p:
        return say("row.p", p=str(row.p), planned=str(plan.p))
    if plan.p_min is not None and not plan.p_min <= row.p <= 1:
        return say("row.p_range", p=str(row.p), least=str(plan.p_min))
    if not 0.0 <= row.u <= 1.0:
        return say("row.u", u=str(row.u))
    if not 0 <= row.v <= V_MAX:
        return say("row.v", v=row.v)
    if row.asked and len(row.answers) != plan.sources - 1:
        return say("row.answers", answers=len(row.answers), models=plan.sources - 1)
    if not row.asked and row.label is not None:
        return say("row.not_asked")
    if not row.asked and row.losses:
        return say("row.losses_not_asked")
    return None


SAYS = {
    "row.count": gettext_noop("the plan draws m = %(m)s items, but there are %(rows)s rows"),
    "row.wrong": gettext_noop("row %(row)s (item %(item)s): %(why)s"),
    "row.order": gettext_noop("its place in the draw is %(order)s, not %(row)s"),
    "row.position": gettext_noop("pool position %(position)s is outside the pool or drawn twice"),
    "row.twice": gettext_noop("the item is drawn twice"),
    "row.p": gettext_noop("people were asked with p = %(p)s, the plan says %(planned)s"),
    "row.p_range": gettext_noop("people were asked with p = %(p)s, outside the plan's %(least)s .. 1"),
    "row.u": gettext_noop("uncertainty %(u)s is outside [0, 1]"),
    "row.v": gettext_noop("tie-break %(v)s is outside [0, 2**53)"),
    "row.answers": gettext_noop("%(answers)s answers for %(models)s models (None: unusable)"),
    "row.losses_not_asked": gettext_noop("it has measured losses although the draw did not ask for a label"),
    "row.not_asked": gettext_noop("it has a label although the draw did not ask for one"),
}
declare(SAYS)
