"""Whether the rows of a draw are those that its run's numbers give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import COMMITTED, document_hash
from routing.core.commitment import drawn_entropy, read_commitments
from routing.core.plan import Plan
from routing.core.sampling import draw_calibration, make_salt, tie_breaks

MISSING_NAMED = 10**5
"""Of more rows that a draw lacks it is only said how many there are."""


def drawn_from(document: Mapping[str, Any], entropy: int) -> int:
    """The number that the calibration set of a certificate was drawn from, where ``entropy`` is its run's."""
    if document["version"] < COMMITTED:
        return entropy
    first, second = read_commitments(document)
    return drawn_entropy(entropy, document_hash(first), second["randomness"])


def draw_differences(
    plan: Plan, rows: Sequence[CalibrationRow], entropy: int, drawn_by: int
) -> Iterator[str]:
    """Where the rows are not those that ``drawn_by`` draws, or ties not split by ``entropy``."""
    shares: Sequence[Decimal] | Decimal = plan.p
    if not plan.constant_p:
        shares = [Decimal(1)] * plan.pool_size
        for row in rows:
            if 0 <= row.position < plan.pool_size:
                shares[row.position] = row.p
    draw = draw_calibration(pool_size=plan.pool_size, m=plan.m, p=shares, entropy=drawn_by)
    salt = make_salt(entropy)
    breaks = tie_breaks(salt, [row.item_id for row in rows])
    by_order = {row.order: (row, int(v)) for row, v in zip(rows, breaks, strict=True)}
    if len(rows) != plan.m:
        yield f"draw: it has {len(rows)} rows, the plan draws {plan.m}"
    if len(by_order) != len(rows):
        yield "draw: two rows claim the same place in the order of the draw"
    for order in sorted(set(by_order) - set(range(plan.m))):
        yield f"draw: a row claims place {order}, outside the {plan.m} of the draw"
    missing = plan.m - len(by_order)
    for order in range(plan.m) if missing <= MISSING_NAMED else sorted(by_order.keys() & range(plan.m)):
        position, asked = int(draw.positions[order]), bool(draw.asked[order])
        if order not in by_order:
            yield f"draw: the row at place {order} (pool position {position}) is missing"
            continue
        row, v = by_order[order]
        where = f"draw, place {order}, item {row.item_id!r}"
        if row.position != position:
            yield f"{where}: pool position {row.position}, but the entropy draws {position}"
        if row.asked != asked:
            yield f"{where}: asked is {row.asked}, but the entropy gives {asked}"
        if row.v != v:
            yield f"{where}: tie-break {row.v}, but salt and item id give {v}"
        for model, key in enumerate(row.own, start=2):
            if key is not None and key.v != (of_it := int(tie_breaks(salt, [row.item_id], model=model)[0])):
                yield f"{where}: tie-break {key.v} of model {model}, but salt and item id give {of_it}"
