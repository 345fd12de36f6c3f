"""What docs/asvs.csv calls met is shown by a test, a file or a setting that is there, and each line of
docs/threats.csv by tests.
"""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROWS = list(csv.DictReader((ROOT / "docs" / "asvs.csv").read_text().splitlines()))
STATES = {"met", "not met", "not applicable", "not examined"}


def is_there(shown_by: str) -> bool:
    kind, _, name = shown_by.partition(" ")
    if kind == "setting":
        text = (ROOT / "hypac_site" / "settings.py").read_text()
        return re.search(rf"^\s*[\w= ]*\b{name}\b[\w= ]* = |^{name}\b.*:", text, re.MULTILINE) is not None
    path, *names = shown_by.split("::")
    found = (ROOT / path).read_text() if (ROOT / path).is_file() else None
    return found is not None and all(re.search(rf"\b(def|class) {one}\b", found) for one in names)


def test_what_is_met_is_shown_by_something() -> None:
    assert [
        row["requirement"] for row in ROWS if row["state"] == "met" and not is_there(row["shown by"])
    ] == []
    assert [row for row in ROWS if row["state"] != "met" and (row["shown by"] or not row["how or why"])] == []
    assert not is_there("setting NO_SUCH_THING")
    assert not is_there("tests/test_security_table.py::test_of_nothing")


def test_each_requirement_of_levels_one_and_two_stands_there_once() -> None:
    numbers = [tuple(map(int, row["requirement"].split("."))) for row in ROWS]
    assert numbers == sorted(set(numbers))
    assert [sum(row["level"] == level for row in ROWS) for level in "12"] == [70, 183]
    assert {row["state"] for row in ROWS} == STATES


def test_what_stands_against_each_threat_is_shown_by_tests_that_are_there() -> None:
    threats = list(csv.DictReader((ROOT / "docs" / "threats.csv").read_text().splitlines()))
    assert len(threats) >= 25
    assert [row for row in threats if not all(row.values())] == []
    shown = [name for row in threats for name in row["shown by"].split()]
    assert [name for name in shown if "::" in name and not is_there(name)] == []
    assert [name for name in shown if "::" not in name and not any(ROOT.glob(name))] == []
