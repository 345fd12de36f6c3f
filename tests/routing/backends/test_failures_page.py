"""docs/failures.md names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HERE = "tests/routing/backends"
SERVICES = "tests/services"
REAL = f"{SERVICES}/test_real_servers.py"


def test_each_test_that_the_table_of_failures_names_exists():
    missing, named, here = [], 0, ""
    for line in (ROOT / "docs" / "failures.md").read_text().splitlines():
        if told := re.search(rf"\[`({HERE}/\w+\.py)`\]", line):
            here = told[1]  # the file that a section means unless it names another
        cells = line.split("|")
        if len(cells) != 6:
            continue
        for cell, usual, folder in ((cells[3], here, HERE), (cells[4], REAL, SERVICES)):
            for file, test in re.findall(r"`(?:([\w/]+\.py)::)?(test_\w+)`", cell):
                named += 1
                path = ROOT / (file if "/" in file else f"{folder}/{file}" if file else usual)
                if not path.is_file() or f"def {test}(" not in path.read_text():
                    missing.append(f"{path.relative_to(ROOT)}::{test}")
    assert missing == []
    assert named > 40


def test_each_failure_has_a_test_with_a_scripted_server():
    rows = [line.split("|") for line in (ROOT / "docs" / "failures.md").read_text().splitlines()]
    failures = [
        cells for cells in rows if len(cells) == 6 and not re.fullmatch(r"[- ]*|.*failure ", cells[1])
    ]
    assert [cells[1] for cells in failures if "`test_" not in cells[3] and "::test_" not in cells[3]] == []
