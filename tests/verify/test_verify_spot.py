"""Whoever doubts a delivery labels a few of its items: they are drawn, and what was found is tested."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from annotation.common import spreadsheets
from hypac_verify.command import main
from hypac_verify.delivered_file import Delivered, as_text, from_text
from hypac_verify.spot import Spot, _labels_in, _write, of_models
from routing.core.bounds.tails import tail
from testbed.delivered import by_person
from tests.conftest import Stored
from tests.verify.reports import Files

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture(scope="module")
def files(stored: Stored) -> Files:
    return stored(by_person)


@pytest.fixture
def folder(files: Files, tmp_path: Path) -> Path:
    (tmp_path / "delivery").mkdir()
    for name, data in files.items():
        (tmp_path / "delivery" / f"animals-run-1-delivery-1-{name}").write_bytes(data)
    return tmp_path / "delivery"


@pytest.mark.parametrize("wrong", [0, 5, 40])
def test_from_the_draw_to_what_it_means(
    wrong: int, folder: Path, tmp_path: Path, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "mine.csv"
    assert main([str(folder), "--spot", "40", "--to", str(sheet)]) == 0
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40 == len({row["external_id"] for row in rows})
    assert "label" not in rows[0]
    assert (rows[0]["text"][:4], rows[0]["your_label"]) == ("text", "")
    lines = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    labels = {line["external_id"]: line["label"] for line in lines}
    for place, row in enumerate(rows):
        row["your_label"] = "other" if place < wrong else labels[row["external_id"]]
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    capsys.readouterr()
    assert main([str(folder), "--filled", str(sheet), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["spot_check"]
    assert (found["items"], found["errors"]) == (40, wrong)
    assert found["passes"] == pytest.approx(float(tail(300, 31, 40, wrong)), rel=1e-9)
    words = {0: "speaks for", 5: "says little", 40: "speaks against"}[wrong]
    assert words in found["words"]


def test_no_answer_of_a_model_stands_beside_the_empty_cell(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "mine.csv"
    assert main([str(folder), "--spot", "40", "--to", str(sheet)]) == 0
    header = next(csv.reader(sheet.open(newline="")))
    assert header == ["external_id", "text", "your_label"]


def test_columns_of_labels_are_left_out_also_where_no_card_names_them(tmp_path: Path) -> None:
    rest = ("person", "ann", None, 0.5, None, False, 1, "c", None, None)
    rows = [
        Delivered({"text": "a", "model": "dog", "none": "", "kind": "dog"}, "1", "cat", *rest),
        Delivered({"text": "b", "model": "", "none": "", "kind": "pet"}, "2", "dog", *rest),
    ]
    _write(rows, tmp_path / "mine.csv", of_models("no such line"))
    assert next(csv.reader((tmp_path / "mine.csv").open())) == [
        "external_id", "text", "none", "kind", "your_label",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("card", "named"),
    [
        ('Imported columns with model output: `["a", "\\u0060b\\n"]`', {"a", "`b\n"}),
        ("x\nImported columns with model output: `[1, null]`\n", set()),
        ("Imported columns with model output: `[}]`", set()),
        ('> Imported columns with model output: `["a"]`', set()),
        (None, set()),
    ],
)
def test_the_card_names_columns_with_model_output(card: str | None, named: set[str]) -> None:
    assert of_models(card) == named


def test_another_draw_is_another_sample(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = []
    for _ in range(2):
        assert main([str(folder), "--spot", "30", "--json"]) == 0
        drawn.append(set(json.loads(capsys.readouterr().out)["spot"]))
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "external_id,your_label\n",
        "external_id,your_label\nt1,\n",
        "external_id,your_label\nt1,cat\nt1,cat\n",
        "external_id,your_label\nnothing,cat\n",
        "a\n\xff",
    ],
)
def test_a_sheet_that_is_none_is_named(text: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(text, encoding="latin-1")
    assert main([str(folder), "--filled", str(tmp_path / "mine.csv")]) == 2


def test_no_more_than_there_are(folder: Path, tmp_path: Path) -> None:
    for count in ("0", "-3", "301"):
        assert main([str(folder), "--spot", count]) == 2
    (tmp_path / "there.csv").write_text("")
    assert main([str(folder), "--spot", "3", "--to", str(tmp_path / "there.csv")]) == 2


def test_a_sample_that_can_show_nothing_is_called_too_small(folder: Path, capsys) -> None:
    enough = next(k for k in range(1, 300) if tail(300, 31, k, 0) <= Fraction(1, 20))
    for count in (enough - 1, enough):
        assert main([str(folder), "--spot", str(count)]) == 0
        out = capsys.readouterr().out
        assert (f"Fewer than {enough} cannot speak for the promise" in out) == (count < enough)


def test_a_sheet_holds_no_formula_and_is_read_back_as_it_was(tmp_path: Path) -> None:
    link, own = '=HYPERLINK("http://example.org")', {"external_id": "another", "your_label": "mine"}
    row = Delivered(
        {**own, "=a": link, "text": "x" * 200_000},
        *("@item", "cat", "person", "ann", None, 0.5, None, False, 1, "c", None, None),
    )
    sheet = tmp_path / "mine.csv"
    _write([row], sheet)
    csv.field_size_limit(2**17)  # as in a process of its own
    text = sheet.read_text()
    assert text.startswith(
        "external_id,external_id,your_label,'=a,text,your_label\n'@item,another,mine,\"'=HYPER"
    )
    sheet.write_text(text.rstrip("\n") + "cat\n")
    assert _labels_in(sheet) == {"@item": "cat"}


@pytest.mark.parametrize(
    "cell", ["=1", " =1", "'=1", "''-2", "-2", "-2.5", "-x", "\t", "\ra", "＝1", "\\a", "a"]
)
def test_a_cell_is_written_as_deliveries_write_it(cell: str) -> None:
    assert (as_text(cell), from_text(as_text(cell))) == (spreadsheets.escape_formula(cell), cell)


def test_what_a_spot_check_says() -> None:
    assert "with probability at most 0.01" in Spot(10, 0, 0.01, 1.0).words
    assert "More items say more" in Spot(10, 1, 0.3, 0.6).words
