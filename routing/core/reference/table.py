"""From the columns of a pool to the rows that a run with an expert is certified from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Bools, Floats, Ints
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError, CalibrationRow
from routing.core.keys import Key
from routing.core.messages import declare, gettext_noop, say
from routing.core.reference.audit import queue_order
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.roster import Roster
from routing.core.reference.sources import answers_of, people_of, to_label, unanimous
from routing.core.sampling import CalibrationDraw, tie_breaks


def annotated_rows(
    run: ExpertPlan,
    draw: CalibrationDraw,
    roster: Roster,
    *,
    items: Sequence[str],
    u: Floats,
    v: Ints,
    answers: Sequence[Sequence[str | None]],
    people: Mapping[str, str | None],
    own: ArrayLike | None = None,
) -> Calibration:
    """The rows of ``draw`` with the annotators' labels and without the expert's; columns in pool order.

    Parameters
    ----------
    items : N texts
    u, v : (N,)
        Uncertainty and tie-break of the first model.
    answers : N rows of K texts
        None for an answer that cannot be used; read for asked items only.
    people
        By item id, what the annotator whose item it is said of each asked item, None where she could not
        label it.
    own : (N, K - 1), optional
        Uncertainties of the later models, NaN where there is none: where a chain is on every score.

    Raises
    ------
    CalibrationError
        The columns are not of one length, an asked item has no entry in ``people``, or the rows do not fit
        the plan.
    """
    plain = Calibration.of_pool(run.plan, draw, items=items, u=u, v=v, answers=answers, labels=people)
    asked = [row for row in plain.rows if row.asked]
    names = dict(zip((row.item_id for row in asked), _annotators(roster, asked), strict=True))
    scores = _own_keys(run, roster, asked, own, len(items))
    return Calibration(
        tuple(
            replace(
                row,
                label=None,
                person=row.label,
                annotator=names[row.item_id],
                own=scores.get(row.item_id, ()),
            )
            if row.asked
            else row
            for row in plain.rows
        )
    )


def expert_queue(run: ExpertPlan, calibration: Calibration, roster: Roster) -> list[str]:
    """The items that the expert labels, shuffled by a hash, so that their order does not tell why each came.

    They are the asked ones on which annotator and models do not all agree, and the first n_B asked ones.
    """
    rows = [row for row in calibration.rows if row.asked]
    ids = [row.item_id for row, seen in zip(rows, expert_sees(run, rows), strict=True) if seen]
    return [ids[place] for place in queue_order(roster.salt, ids).tolist()]


def with_expert(run: ExpertPlan, calibration: Calibration, labels: Mapping[str, str | None]) -> Calibration:
    """The rows with the expert's labels of the items that she was to label; others in ``labels`` are left
    out.

    Parameters
    ----------
    labels
        By item id, a text, or None where she could not label it.

    Raises
    ------
    CalibrationError
        An item that she was to label has no entry.
    """
    asked = [row for row in calibration.rows if row.asked]
    seen = dict(zip((row.item_id for row in asked), expert_sees(run, asked).tolist(), strict=True))
    rows = []
    for row in calibration.rows:
        if seen.get(row.item_id) and row.item_id not in labels:
            why = say("row.not_seen")
            raise CalibrationError(say("row.wrong", row=row.order, item=repr(row.item_id), why=why))
        rows.append(replace(row, label=labels[row.item_id] if seen.get(row.item_id) else None))
    return Calibration(tuple(rows))


def expert_sees(run: ExpertPlan, asked: Sequence[CalibrationRow]) -> Bools:
    """Which of the asked rows (n,), in draw order, the expert labels."""
    answers, people = answers_of(asked, run.plan.sources - 1), people_of(asked)
    alike = unanimous(answers, people, run.plan.loss_function())
    return to_label(alike, run.rechecked(len(asked)))


def _annotators(roster: Roster, rows: Sequence[CalibrationRow]) -> list[str]:
    return roster.annotators([row.item_id for row in rows])


def _own_keys(
    run: ExpertPlan, roster: Roster, rows: Sequence[CalibrationRow], own: ArrayLike | None, size: int
) -> dict[str, tuple[Key | None, ...]]:
    """The later models' keys by item id; none where there are no scores."""
    if own is None:
        return {}
    scores, later = np.asarray(own, dtype=np.float64), run.plan.sources - 2
    if scores.shape != (size, later):
        raise CalibrationError(say("calibration.own", shape=str(scores.shape), wanted=str((size, later))))
    ids = [row.item_id for row in rows]
    breaks = [tie_breaks(roster.salt, ids, model=number).tolist() for number in range(2, later + 2)]
    found: dict[str, tuple[Key | None, ...]] = {}
    for index, row in enumerate(rows):
        mine = scores[row.position].tolist()
        found[row.item_id] = tuple(
            None if np.isnan(score) else Key(score, ties[index])
            for score, ties in zip(mine, breaks, strict=True)
        )
    return found


SAYS = {
    "row.not_seen": gettext_noop(
        "the expert was to label it, and it has no label of hers; give None where she could not"
    ),
    "calibration.own": gettext_noop(
        "the scores of the later models have the shape %(shape)s, expected %(wanted)s"
    ),
}
declare(SAYS)
