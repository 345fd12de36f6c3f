"""docs/certificate.csv has every field of a certificate and of its draw, and no others."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.core.certificates import make_files
from tests.core.expert_runs import ExpertRun
from tests.core.test_every_score_certificate import DEAR, make_run

TABLE = Path(__file__).resolve().parents[2] / "docs" / "certificate.csv"
# Of these the table tells as one field.
WHOLE = ("plan", "limits", "prefixes", "people", "roster", "scores", "commitments", "ledger", "provenance")
# They stand in certificates of other runs than those that are made here.
ELSEWHERE = {
    "plan.alpha_spent", "plan.p_min", "chains[].policies[].weighted", "reference.experts", "commitments",
    "ledger", "later", "losses",
}  # fmt: skip


def told(file: str) -> set[str]:
    rows = csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())
    return {name for row in rows if row["file"] == file for name in row["fields"].split(", ")}


def fields(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict) and name.rpartition(".")[2] not in WHOLE:
        for key, inner in value.items():
            yield from fields(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from fields(inner, f"{name}[]")
    else:
        yield name


def test_the_table_has_every_field_of_a_certificate_and_of_its_draw() -> None:
    expert = ExpertRun("1", size=50, drawn=45, epsilon="0.3", scored=True)
    made = [make_files(), make_files(rule="split_fixed_sequence"), make_run(costs=DEAR).files(), expert.files]
    certificate = {name for files in made for name in fields(json.loads(files[0]))}
    draw = {name for files in made for line in files[1].splitlines() for name in json.loads(line)}
    assert certificate - told("certificate.json") == set()
    assert told("certificate.json") - certificate - ELSEWHERE <= {"plan.costs", "plan.p"}
    assert draw - told("draw.jsonl") == set()
    assert told("draw.jsonl") - draw <= ELSEWHERE
