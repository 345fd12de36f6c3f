"""What single rows, words and counts of a delivery may not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from hypac_verify.command import check, main, told
from hypac_verify.delivered_file import ADDED, rows_of
from routing.core.bounds.tails import tail
from testbed.forgeries import canonical, forged, put_right
from tests.verify.reports import Files, found_in
from tests.verify.small import Rows, row_of, small

pytestmark = pytest.mark.costly


def test_a_small_delivery_holds(tmp_path: Path) -> None:
    found = found_in(tmp_path, small())
    assert (found.faults, found.code, found.unchecked) == ("", 0, ())
    assert "labels.jsonl: 1200 items once each, all of the run's pool; labels by M0 " in found.checked


def test_each_number_of_items_says_what_it_counts(tmp_path: Path) -> None:
    """Of a second run: most items are the pool's, the promise is about those of the first run as well."""

    def add(there: Rows) -> None:
        there += [row_of(f"before-{number}") for number in range(43)]
        there += [row_of(f"imported-{number}", settled_by="imported") for number in range(5)]
        there += [row_of("blank", label=None, source=None, annotator=None, reason="why")]

    found = found_in(tmp_path, small(add, data_set_size=1240))
    assert found.code == 0
    assert (
        "labels.jsonl: 1249 items once each, 1200 of the run's pool, 40 labelled by people before the run, "
        "9 that the certificate does not cover; labels by "
    ) in found.checked
    assert (
        "40 items were labelled by people before the run. The promise is about 1240 items: 1200 of the "
        "run's pool, and 40 such, which count as right and are in no test."
    ) in found.notes
    assert "8 labels of items that the certificate does not cover" in found.notes


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
        f"{row['external_id']},{'other' if place < wrong else row['label']}"
        for place, row in enumerate(given)
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


@pytest.mark.parametrize(
    ("where", "words", "fault"),
    [
        ("# `small`", "Only 1 % are wrong, certified.\n\n", "no title"),
        ("At most", "Only 1 % are wrong, certified.\n\n", "between its title and the sentence"),
        ("- Rows:", "- Certificate: 1\n", "'- Certificate:' stands there twice"),
        ("- Without", "- Rows: 1000000\n", "'- Rows:' stands there twice"),
        ("At most", "**This delivery is partial: people have not labelled everything yet.**\n\n", ""),
    ],
)
def test_a_data_card_says_nothing_before_the_sentence_and_no_count_twice(
    where: str, words: str, fault: str, tmp_path: Path
) -> None:
    files = small()
    files["README.md"] = files["README.md"].decode().replace(where, words + where, 1).encode()
    found = found_in(tmp_path, files)
    assert fault in found.faults
    assert (found.code, "Other words of README.md" in found.notes) == (1 if fault else 0, True)


def test_that_a_run_was_marked_invalid_may_have_been_taken_out(tmp_path: Path) -> None:
    files = small()
    found_in(tmp_path, files)
    report, checked, _ = check([tmp_path])
    assert "was not marked invalid" in told(report, checked)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"label": "another"}, "the model's answer that the draw has"),
        ({"source": "person", "annotator": "Ann"}, "nobody could label it"),
        ({"source": "M0"}, "the thresholds send it to another source"),
        ({}, ""),
    ],
)
def test_an_asked_item_that_nobody_could_label_goes_where_its_score_sends_it(
    changed: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    def change(rows: Rows) -> None:
        row = next(row for row in rows if row["asked"] and row["source"] == "M1")
        row |= changed

    found = found_in(tmp_path, small(change))
    assert (fault in found.faults, found.code) == (True, 1 if fault else 0)


@pytest.mark.parametrize("run", [None, 7])
def test_labels_by_people_of_another_run_are_counted_and_told(run: int | None, tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        for row in [row for row in rows if row["source"] == "person" and not row["asked"]][:3]:
            row["run"] = run

    found = found_in(tmp_path, small(change))
    assert (found.faults, found.code) == ("", 3)
    assert "the route of 3 items, whose labels are by people of another run" in found.unchecked[0]


def test_a_label_that_came_with_its_item_has_no_certificate(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        next(row for row in rows if row["source"] == "person")["settled_by"] = "imported"

    assert "came with it, and the certificate covers it" in found_in(tmp_path, small(change)).faults


def _later(number: int, like: dict[str, Any], taken_in: int | None = 1, **values: Any) -> dict[str, Any]:
    """A row of an item that came after the draw, as that of an item that was not drawn."""
    return like | {"external_id": f"later-{number}", "taken_in": taken_in, "audited": False, **values}


def _with_later(rows: Rows, **values: Any) -> None:
    """Five items that were taken in later, each of the first model by its score, changed by ``values``."""
    like = min((row for row in rows if row["source"] == "M0"), key=lambda row: row["uncertainty"])
    like = like | {"asked": False, "p_i": None}
    for row in rows:
        row["taken_in"] = row["audited"] = None
    rows[7:7] = [_later(number, like, **values) for number in range(5)]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({}, ""),
        ({"source": "person", "annotator": "Ann", "audited": True}, ""),
        ({"source": "person", "annotator": "Ann"}, "the thresholds send it to another source"),
        ({"audited": True}, "an audit asked people about it"),
        ({"source": "M1"}, "the thresholds send it to another source"),
        ({"asked": True}, "and stands in it"),
        ({"taken_in": None}, "not at its place in the pool"),
    ],
)
def test_items_that_were_taken_in_later_are_not_in_the_draw(
    values: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    found = found_in(tmp_path, small(lambda rows: _with_later(rows, **values), target="population"))
    assert (fault in found.faults, found.code) == (True, 1 if fault else 0), found
    assert ("5 items were taken in after the draw" in found.notes) == ("taken_in" not in values)
    assert ("5 of these are labelled by people" in found.notes) == (found.code == 0 and "audited" in values)


def test_items_that_were_taken_in_later_may_be_covered_by_no_certificate(tmp_path: Path) -> None:
    files = small(lambda rows: _with_later(rows, certificate_id=None), target="population")
    assert found_in(tmp_path, files).faults == ""


def test_only_a_run_for_new_items_takes_some_in(tmp_path: Path) -> None:
    assert "not about new items" in found_in(tmp_path, small(_with_later)).faults


@pytest.mark.parametrize("more", [(), ("taken_in",), ("taken_in", "audited")])
def test_a_table_with_the_columns_of_later_items(more: tuple[str, ...], tmp_path: Path) -> None:
    path, columns = tmp_path / "labels.csv", ["text", *ADDED, *more]
    row = {"external_id": "a", "label": "x", "source": "M0", "asked": "false", "taken_in": "3"}
    path.write_text(",".join(columns) + "\n" + ",".join(row.get(name, "") for name in columns) + "\n")
    assert [one.taken_in for one in rows_of(path, "labels.csv")] == [3 if more else None]


def test_what_was_shown_with_a_label_is_told_of_labels_that_people_gave(tmp_path: Path) -> None:
    def tell(rows: Rows, *, asked: str = "none", routed: str = "taken", model: str | None = None) -> None:
        for row in rows:
            person = asked if row["asked"] else routed
            row["suggestion"] = person if row["source"] == "person" else model

    def found(number: int, *, shown: bool = True, **values: str) -> str:
        files = small(lambda rows: tell(rows, **values))
        document = json.loads(files["certificate.json"])
        document["provenance"]["suggestions_shown"] = shown
        files["certificate.json"] = canonical(document)
        return found_in(tmp_path / str(number), put_right(files)).faults

    assert found(1) == ""
    assert found(2, routed="other") == found(3, routed="none") == ""
    assert "'suggestion' says something else" in found(4, routed="given")
    assert "'suggestion' says something else" in found(5, model="none")
    assert "'suggestion' says something else" in found(6, shown=False)
    assert "people label the draw without a suggestion" in found(7, asked="taken")
