"""Published files of small runs, for the tests that verify them and change them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np

from routing.core.bins import Bins
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import canonical_bytes, certificate_document, draw_line
from routing.core.certify import Certification, certify
from routing.core.chain import Chain, build_chains, cut_slices
from routing.core.plan import Plan
from routing.core.sampling import (
    CalibrationDraw,
    draw_calibration,
    draw_pilot,
    make_salt,
    pool_hash,
    tie_breaks,
)
from tests.core.worlds import World, make_world, plan_of

SIZE, DRAWN, ENTROPY = 1200, 300, 2**70 + 1
IDS = tuple(f"item-{k}-ä" for k in range(SIZE))
PROBABILITIES = (Decimal("0.95"), Decimal("0.85"))
"""Of items at even and at odd places of the pool, where they vary."""

Files = tuple[bytes, bytes]


def make_run(plan: Plan) -> tuple[tuple[Chain, ...], Bins | None, Calibration]:
    """Chains or slices, and the labelled calibration set of a run on a world of its own."""
    world = make_world("power", SIZE, np.random.default_rng(4))
    world = World(world.u, tie_breaks(make_salt(ENTROPY), IDS), world.answers, world.losses)
    shares = [plan.p if plan.constant_p else PROBABILITIES[k % 2] for k in range(SIZE)]
    draw = draw_calibration(pool_size=SIZE, m=plan.m, p=shares, entropy=ENTROPY)
    free = np.ones(SIZE, dtype=bool)
    if plan.target == "population":
        free[draw.positions] = False
    exclude = draw.positions if plan.target == "population" else None
    pilot = draw_pilot(pool_size=SIZE, size=plan.pilot, entropy=ENTROPY, exclude=exclude)
    chains = build_chains(plan, u=world.u, v=world.v, pilot=world.pilot(pilot), reference=free)
    slices = None if chains else cut_slices(plan, u=world.u, v=world.v, reference=free)
    rows = _rows(world, draw, shares)
    return chains, slices, Calibration.from_rows(map(_measured, rows) if plan.measured_elsewhere else rows)


def _rows(world: World, draw: CalibrationDraw, shares: list[Decimal]) -> list[CalibrationRow]:
    """All labelled but one."""
    unlabelled = int(np.flatnonzero(draw.asked)[16])
    return [
        CalibrationRow(
            item_id=IDS[position],
            position=position,
            order=order,
            asked=asked,
            p=shares[position],
            u=float(world.u[position]),
            v=int(world.v[position]),
            label=None if not asked or order == unlabelled else "0",
            answers=tuple(str(answer) for answer in world.answers[position]) if asked else (),
        )
        for order, (position, asked) in enumerate(
            zip(draw.positions.tolist(), draw.asked.tolist(), strict=True)
        )
    ]


def _measured(row: CalibrationRow) -> CalibrationRow:
    """The row with losses as a program elsewhere would measure them: two thirds where an answer is wrong."""
    return replace(row, losses=tuple(2 / 3 * (answer != row.label) for answer in row.answers if row.label))


def make_files(
    target: str = "dataset", *, certified: bool = True, shuffle: bool = False, **changes: object
) -> Files:
    """Certificate and draw of a run that certifies something, or nothing."""
    settings = {"epsilon": "0.05" if certified else "0.004", **changes}
    files, certification = files_of(plan_of(SIZE, DRAWN, target=target, **settings), shuffle=shuffle)
    assert certification.certified is certified, certification.sentence
    return files


def files_of(plan: Plan, *, shuffle: bool = False) -> tuple[Files, Certification]:
    """Certificate and draw of ``plan``, from rows in another order with ``shuffle``; and the outcome."""
    chains, slices, calibration = make_run(plan)
    if shuffle:
        calibration = Calibration.from_rows(reversed(calibration.rows))
    certification = certify(plan, chains, calibration, slices=slices)
    document = certificate_document(
        plan,
        calibration,
        certification,
        provenance={"entropy": ENTROPY, "pool_hash": pool_hash(IDS), "run": "digits/1", "ledger": ["0.05"]},
        slices=slices,
    )
    lines = "".join(draw_line(row) + "\n" for row in calibration.rows)
    return (canonical_bytes(document), lines.encode()), certification
