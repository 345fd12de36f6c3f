"""failures.csv names each failure of a model, what becomes of it and the tests; docs/backends.md sums up."""

import csv
import re
from pathlib import Path

ROOT = next(folder for folder in Path(__file__).parents if (folder / "manage.py").exists())
TABLE = Path(__file__).with_name("failures.csv")
PAGE = ROOT / "docs" / "backends.md"


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_says_what_becomes_of_each_kind_of_failure() -> None:
    told = PAGE.read_text(encoding="utf-8").split("## Models that fail")[1].split("\n## ")[0]
    kinds = re.findall(r"^\| (?:\w+ )*`(\w+)`", told, re.MULTILINE)
    assert kinds == list(dict.fromkeys(row["of"] for row in rows()))
    assert [row["failure"] for row in rows() if not row["what becomes of it"]] == []


def test_each_test_that_the_table_names_exists() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    named = [name for row in rows() for name in (row["scripted"] + " " + row["real"]).split()]
    missing = [
        name for name in named if f"def {name.split('::')[1]}(" not in texts.get(name.split("::")[0], "")
    ]
    assert missing == []


def test_each_failure_has_a_test_with_a_scripted_server_and_a_word_about_a_real_one() -> None:
    batches = {row["failure"] for row in rows() if row["of"] == "batch"}
    assert [row["failure"] for row in rows() if not row["scripted"]] == []
    assert {row["failure"] for row in rows() if not row["real"] and not row["note"]} == batches
