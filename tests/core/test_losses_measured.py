"""Losses that a program elsewhere measures: they come with the rows, and nothing here computes them."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from routing.core.answer_losses import losses_of_answers
from routing.core.calibration import observed_losses
from routing.core.calibration_rows import CalibrationError, CalibrationRow
from routing.core.certificate import draw_line
from routing.core.commitment import blank_line
from routing.core.documents import DocumentError, parse_row
from routing.core.losses import LossError, make_loss
from routing.core.plan import Plan, PlanError, validate
from routing.core.reference.overlap import differing
from routing.core.reference.plan import ExpertPlan, validate_expert_plan
from routing.core.verify import verify
from tests.core.certificates import make_files

GRADED = make_loss("measured_elsewhere", {"measure": "distance.py 2"})
BINARY = make_loss("measured_elsewhere", {"measure": "distance.py 2", "binary": True})
ROW = CalibrationRow(
    item_id="a",
    position=3,
    order=0,
    asked=True,
    p=Decimal(1),
    u=0.25,
    v=7,
    label="x",
    answers=("y", None, "z"),
    losses=(0.25, None, 1.0),
)


def test_nothing_here_compares_two_texts() -> None:
    with pytest.raises(LossError, match=r"measured by the team's own program \(distance.py 2\)"):
        GRADED("x", "x")


@pytest.mark.parametrize(
    "params",
    [{}, {"measure": ""}, {"measure": " "}, {"measure": 7}, {"measure": "a\nb"}, {"measure": 201 * "x"}],
)
def test_what_measures_is_said_in_a_line(params: dict[str, object]) -> None:
    with pytest.raises(LossError, match="which program measures the losses"):
        make_loss("measured_elsewhere", params)


def test_losses_come_from_the_rows_and_pass_on_where_there_is_no_answer() -> None:
    assert losses_of_answers([ROW], GRADED, 3).tolist() == [[0.25, 0.0, 1.0]]
    losses = observed_losses(_calibration(ROW), loss=GRADED, sources=4)
    assert losses.upper.tolist() == [[0.25, 1.0, 1.0]]
    nobody = replace(ROW, label=None, losses=())
    losses = observed_losses(_calibration(nobody), loss=GRADED, sources=4)
    assert (losses.upper.tolist(), losses.lower.tolist()) == ([[1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0]])


def _calibration(row: CalibrationRow):  # type: ignore[no-untyped-def]
    from routing.core.calibration import Calibration

    return Calibration((row,))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (replace(ROW, losses=()), "model 1 was not measured"),
        (replace(ROW, losses=(0.25, None, None)), "model 3 was not measured"),
        (replace(ROW, losses=(0.25, 0.0, 1.0)), "model 2, and there is no answer"),
        (replace(ROW, label=None), "model 1, and there is no answer or no label"),
        (replace(ROW, losses=(0.25, 1.0)), "2 measured losses for 3 models"),
        (replace(ROW, losses=(1.25, None, 1.0)), "1.25, outside its range"),
        (replace(ROW, losses=(float("nan"), None, 1.0)), "nan, outside its range"),
    ],
)
def test_a_row_without_what_it_needs_is_named(row: CalibrationRow, words: str) -> None:
    with pytest.raises(CalibrationError, match="item 'a'") as caught:
        losses_of_answers([row], GRADED, 3)
    assert words in str(caught.value)


def test_a_program_that_says_0_and_1_gives_nothing_else() -> None:
    assert losses_of_answers([replace(ROW, losses=(1.0, None, 0.0))], BINARY, 3).tolist() == [[1, 0, 0]]
    with pytest.raises(CalibrationError, match="says that it is 0 or 1 only"):
        losses_of_answers([ROW], BINARY, 3)


def test_a_line_of_the_draw_holds_them_and_the_commitment_before_the_labels_does_not() -> None:
    line = draw_line(ROW)
    assert json.loads(line)["losses"] == [0.25, None, 1]
    assert parse_row(line, 1) == ROW
    assert b"losses" not in blank_line(ROW)
    assert "losses" not in draw_line(replace(ROW, losses=()))


@pytest.mark.parametrize("losses", ["[]", "7", '["0.5"]', "[true]", "[NaN]"])
def test_a_line_with_something_else_is_refused(losses: str) -> None:
    line = draw_line(ROW).replace("[0.25,null,1]", losses)
    with pytest.raises(DocumentError):
        parse_row(line, 1)


def test_a_certificate_does_not_hold_with_another_loss_than_was_measured() -> None:
    certificate, draw = make_files(
        loss="measured_elsewhere", loss_params={"measure": "distance.py 2"}, target="pool"
    )
    assert verify(certificate, draw) == []
    lines = draw.decode().splitlines(keepends=True)
    place = next(k for k, line in enumerate(lines) if '"losses":[0,0]' in line)
    lines[place] = lines[place].replace('"losses":[0,0]', '"losses":[1,0]')
    found = verify(certificate, "".join(lines).encode())
    assert any("observed" in line for line in found)
    other = certificate.replace(
        b'"loss":"measured_elsewhere","loss_params":{"measure":"distance.py 2"}', b'"loss":"zero_one"'
    )
    with pytest.raises(
        DocumentError, match="a line has measured losses, and those of 'zero_one' are computed"
    ):
        verify(other, draw)


PLAN = Plan(
    epsilon=Decimal("0.1"),
    alpha=Decimal("0.05"),
    target="dataset",
    m=300,
    p=Decimal(1),
    pool_size=1000,
    costs=(Decimal(1), Decimal(2), Decimal(8)),
    loss="measured_elsewhere",
    loss_params={"measure": "distance.py 2", "binary": True},
)


def test_no_exact_count_is_taken_of_losses_between_0_and_1() -> None:
    validate(PLAN)
    graded = replace(PLAN, loss_params={"measure": "distance.py 2"})
    assert (PLAN.bound_rule().name, graded.bound_rule().name) == ("hypergeometric", "betting_upper")
    with pytest.raises(PlanError, match="needs a loss of 0 or 1"):
        validate(replace(graded, bound="hypergeometric"))


def test_an_expert_cannot_be_the_reference_as_nobody_measures_people() -> None:
    with pytest.raises(PlanError, match="no loss that is measured elsewhere comes for these") as caught:
        validate_expert_plan(ExpertPlan(PLAN, expert="Eve", expert_cost=Decimal(20)))
    assert caught.value.field == "loss"


def test_two_people_differ_where_they_do_not_say_the_same_text() -> None:
    assert np.array_equal(differing([("a", "a"), ("a", "A"), ("a", "b")], BINARY), [False, True, True])
