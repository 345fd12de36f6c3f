"""What attackers tried on what models had said, and on labels: a delivery of version 6 by its files alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypac_verify.words import one_line, printable
from testbed.forgeries import forged, put_right, read
from tests.verify.reports import Files, found_in

pytestmark = pytest.mark.costly
V6 = Path(__file__).parent.parent / "core" / "data" / "delivery-v6"


def v6() -> Files:
    return put_right({path.name: path.read_bytes() for path in V6.iterdir()})


def edited(name: str, change: Callable[[list[Any]], object]) -> Files:
    return forged(v6(), name, change)


def without_pilot() -> Files:
    """No pilot was committed to, and what policies cost on it is anything."""
    files = v6()
    del files["pilot.jsonl"]
    return put_right(files)


def first_answers_kept_back() -> Files:
    """Scores alone are committed to: the first model's answers can follow the labels."""
    asked = {row["item_id"] for row in read(v6(), "draw.jsonl") if row["asked"]}
    piloted = {row["item_id"] for row in read(v6(), "pilot.jsonl")}

    def change(rows: list[Any]) -> None:
        for row in rows:
            if row["item_id"] in asked - piloted:
                row["answers"][0] = None

    return edited("committed.jsonl", change)


def pilot_scores_unlike_u() -> Files:
    def change(rows: list[Any]) -> None:
        for row in rows:
            row["answers"][0][1] = 0.0

    return edited("pilot.jsonl", change)


def answers_of_the_draw_left_out() -> Files:
    asked = {row["item_id"] for row in read(v6(), "draw.jsonl") if row["asked"]}
    return edited("answered.jsonl", lambda rows: [row for row in rows if row["item_id"] not in asked])


def models_labels_blank() -> Files:
    drawn = {row["item_id"] for row in read(v6(), "draw.jsonl")}

    def change(rows: list[Any]) -> None:
        row = next(row for row in rows if row["source"] == "Model 2" and row["external_id"] not in drawn)
        row |= dict.fromkeys(("label", "label_name", "source", "run"))
        row["reason"] = "no source could label it"

    return edited("labels.jsonl", change)


def uncovered_labels_of_models() -> Files:
    def change(rows: list[Any]) -> None:
        like = next(row for row in rows if row["source"] == "Model 1")
        rows.append({**like, "external_id": "more", "certificate_id": None, "uncertainty": None})

    return edited("labels.jsonl", change)


def label_files_that_differ() -> Files:
    files = v6()
    rows = read(files, "labels.jsonl")
    drawn = {row["item_id"] for row in read(files, "draw.jsonl")}
    other = next(row for row in rows if row["source"] == "person" and row["external_id"] not in drawn)
    other["label"] = "emu" if other["label"] != "emu" else "cat"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        cells = {name: "" if value is None else value for name, value in row.items()}
        writer.writerow(cells | {"asked": str(row["asked"]).lower()})
    return put_right(files | {"labels.csv": text.getvalue().encode()})


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (without_pilot, "does not hold as many items as the plan"),
        (first_answers_kept_back, "no answer of the first model"),
        (pilot_scores_unlike_u, "not the first model's score"),
        (answers_of_the_draw_left_out, "lacks an answer that the draw has"),
        (models_labels_blank, "a model that has answered"),
        (uncovered_labels_of_models, "a model's label of this run"),
        (label_files_that_differ, "are not those of labels.jsonl"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_it_is_refused(made: Callable[[], Files], why: str, tmp_path: Path) -> None:
    found = found_in(tmp_path, made())
    assert found.code == 1
    assert why in found.faults


def test_nothing_of_a_file_moves_the_cursor_and_any_terminal_can_show_it() -> None:
    assert printable("\x1b[8m模型\n\u202e", "latin-1") == "\\x1b[8m\\u6a21\\u578b\n\\u202e"
    assert one_line("a\nHOLDS") == "a\\nHOLDS"
    assert printable("模型, é\n", "utf-8") == "模型, é\n"


def test_without_the_file_of_later_answers_it_is_said_what_nothing_shows(tmp_path: Path) -> None:
    files = v6()
    del files["answered.jsonl"]
    found = found_in(tmp_path, put_right(files))
    assert (found.code, found.faults) == (3, "")
    assert any("drawn items: there is no answered.jsonl" in line for line in found.unchecked)
