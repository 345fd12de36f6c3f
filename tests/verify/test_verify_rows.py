"""What single rows, words and counts of a delivery may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.forgeries import forged
from tests.verify.reports import found_in
from tests.verify.small import Rows, row_of, small

pytestmark = pytest.mark.costly


def test_a_small_delivery_holds(tmp_path: Path) -> None:
    found = found_in(tmp_path, small())
    assert (found.faults, found.code, found.unchecked) == ("", 0, ())


@pytest.mark.parametrize(
    ("settled_by", "source", "rows", "code"),
    [(None, "person", 40, 0), (None, "person", 39, 1), ("imported", "person", 40, 1), (None, "M0", 40, 1)],
)
def test_a_data_set_is_as_large_as_the_plan_says(
    settled_by: str | None, source: str, rows: int, code: int, tmp_path: Path
) -> None:
    def add(there: Rows) -> None:
        annotator = "Ann" if source == "person" else None
        there += [
            row_of(f"before-{number}", settled_by=settled_by, source=source, annotator=annotator)
            for number in range(rows)
        ]

    found = found_in(tmp_path, small(add, data_set_size=1240))
    assert (found.code, "the plan counts 40" in found.faults) == (code, code == 1)


def test_an_answer_of_the_first_model_is_not_left_out_where_it_has_a_score(tmp_path: Path) -> None:
    files = small()
    found = forged(files, "draw.jsonl", _without_an_answer)
    assert "no answer, and an uncertainty below 1" in found_in(tmp_path, found).faults


def _without_an_answer(rows: Rows) -> None:
    row = next(row for row in rows if row["asked"] and row["u"] < 1)
    row["answers"][0] = None
