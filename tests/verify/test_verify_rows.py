"""What single rows, words and counts of a delivery may not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from hypac_verify.command import main
from routing.core.bounds.tails import tail
from testbed.forgeries import forged
from tests.verify.reports import Files, found_in
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


def _spot(folder: Path, files: Files, wrong: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What 200 labels of one's own show, so many of them unlike those that were delivered."""
    found_in(folder, files)
    rows = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    given = [row for row in rows if row["source"]][:200]
    sheet = folder.with_suffix(".csv")
    lines = [
        f"{row['external_id']},{'other' if place < wrong else row['label']}" for place, row in enumerate(given)
    ]
    sheet.write_text("\n".join(["external_id,your_label", *lines]))
    capsys.readouterr()
    assert main([str(folder), "--filled", str(sheet), "--json"]) == 0
    return cast("dict[str, Any]", json.loads(capsys.readouterr().out)["spot_check"])


def test_a_spot_check_of_a_partial_delivery_counts_the_labels_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[int] = []

    def wait(rows: Rows) -> None:
        for row in rows:
            if row["source"] == "person" and not row["asked"]:
                waits.append(1)
                row |= {"label": None, "source": None, "annotator": None, "reason": "it waits for a person"}

    found = _spot(tmp_path / "files", small(wait), 16, capsys)
    assert waits
    assert found["breaks"] == pytest.approx(float(1 - tail(1200 - len(waits), 60, 200, 15)), rel=1e-9)
    assert found["passes"] == pytest.approx(float(tail(1200, 61, 200, 16)), rel=1e-9)
    assert "are here alone" in found["words"]


def test_a_spot_check_says_that_it_speaks_of_the_pool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "of the pool alone" in _spot(tmp_path / "files", small(target="population"), 0, capsys)["words"]


def test_a_part_has_no_spot_check(tmp_path: Path) -> None:
    files = small()
    files["README.md"] += b"\n**A part: 5 of 1,200 items.**\n"
    found_in(tmp_path / "files", files)
    assert main([str(tmp_path / "files"), "--spot", "5"]) == 2
