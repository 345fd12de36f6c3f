"""Content that is hard to keep, as pandas and `datasets` write it in each format: read back, it is equal."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from datasets import Dataset

from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.base import Row
from annotation.imports.formats.detect import detect
from annotation.imports.formats.registry import IMPORTERS
from testbed.factories import make_project
from tests.annotation.imports.test_import_hugging_face import saved
from tests.annotation.imports.test_importers import read
from tests.annotation.imports.test_imports import counts, import_file, result, storage, store

__all__ = ["storage"]

TEXTS = [
    "plain",
    "héllo ñ 日本語",
    "שלום עולם and العربية",
    "👩‍👩‍👧‍👦 🇺🇳 e\u0301",
    'two\nlines\r\nand "quotes", commas; tabs\t\'',
    " leading and trailing ",
    "=SUM(A1)",
    "null",
    "\u2028 \u200f \ufeff inside",
    "x" * 30_000,
]
MIXED: list[Any] = [None, 1, 2.5, True, "text", [1, "é", None], {"b": {"c": []}}, "", 2**63, -0.1]


def frame(texts: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"item {n}" for n in range(len(texts))], "text": texts})


def written(method: str, data: pd.DataFrame, **options: Any) -> bytes:
    buffer = io.BytesIO()
    getattr(data, method)(buffer, **options)
    return buffer.getvalue()


def texts_of(name: str, content: bytes) -> list[str]:
    rows = read(name, content)
    assert all(isinstance(row, Row) for row in rows), rows
    return [row.columns["text"] for row in rows if isinstance(row, Row)]


@pytest.mark.parametrize(
    ("name", "method", "options"),
    [
        ("csv", "to_csv", {"index": False}),
        ("csv", "to_csv", {"index": False, "sep": ";", "encoding": "utf-16"}),
        ("tsv", "to_csv", {"index": False, "sep": "\t"}),
        ("jsonl", "to_json", {"orient": "records", "lines": True}),
        ("jsonl", "to_json", {"orient": "records", "lines": True, "force_ascii": False}),
        ("json", "to_json", {"orient": "records", "indent": 2}),
        ("parquet", "to_parquet", {}),
    ],
)
def test_texts_come_back_to_the_character(name: str, method: str, options: dict[str, Any]) -> None:
    assert texts_of(name, written(method, frame(TEXTS), **options)) == TEXTS


def test_texts_of_a_workbook_come_back() -> None:
    """A text that begins with = is a formula to pandas."""
    texts = [text for text in TEXTS if not text.startswith("=")]
    back = texts_of("excel", written("to_excel", frame(texts), index=False))
    assert back == texts


def test_texts_of_a_data_set_come_back(tmp_path: Path) -> None:
    assert texts_of("hf_dataset", saved(Dataset.from_pandas(frame(TEXTS)), tmp_path / "d")) == TEXTS


def test_mixed_values_of_json_come_back_with_their_types() -> None:
    data = pd.DataFrame({"text": ["a"] * len(MIXED), "v": pd.Series(MIXED, dtype=object)})
    for name, lines in (("jsonl", True), ("json", False)):
        # pandas writes at most ten places of a number
        rows = read(name, written("to_json", data, orient="records", lines=lines, default_handler=str))
        values = [{**row.columns, **(row.typed or {})}["v"] for row in rows if isinstance(row, Row)]
        assert values == MIXED
        assert [isinstance(value, bool) for value in values] == [value is True for value in MIXED]


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["to_csv", "to_parquet", "to_excel", "to_json"])
def test_ids_that_are_there_twice_are_named_and_added_once(method: str) -> None:
    data = pd.DataFrame({"id": [1, 2, 1, 1], "text": ["a", "b", "a", "other"]})
    options = {"orient": "records"} if method == "to_json" else {"index": False}
    project = make_project()
    stored = store(project, written(method, data, **options), "x")
    detect(stored, IMPORTERS.values())
    job = import_file(project, stored, ColumnMapping(id_column="id", text_column="text"))
    assert counts(job) == result(added=2, already_there=1, problems=1)
    (problem,) = job.problems.all()
    assert "other content" in problem.message


@pytest.mark.django_db
def test_what_was_no_text_is_stored_as_it_was() -> None:
    project = make_project()
    numbers = '"big": 12345678901234567890, "huge": 1e400, "long": 0.12345678901234567890123'
    stored = store(project, f'{{"text": "a", {numbers}, "n": null}}\n', "x.jsonl")
    assert counts(import_file(project, stored, ColumnMapping(text_column="text"))) == result(added=1)
    item = project.items.get()
    assert item.typed == {"big": 12345678901234567890, "n": None}
    assert (item.data["huge"], item.data["long"]) == ("1e400", "0.12345678901234567890123")


@pytest.mark.django_db
def test_doubles_stay_doubles_however_large() -> None:
    numbers = [1.7e18, 1e16, -1e22, 1.7976931348623157e308, 9007199254740993.5, 1e-7, 5e-324, 2.0, 10**22]
    values = {
        "text": 'say \\"1e+22\\" \\ ü',
        "numbers": numbers,
        "in": {"1e+17": [{"x": 1e17}, "1e+17", None, True]},
        "none": None,
    } | {f"n{place}": number for place, number in enumerate(numbers)}
    project = make_project()
    stored = store(project, json.dumps(values) + "\n", "x.jsonl")
    assert counts(import_file(project, stored, ColumnMapping(text_column="text"))) == result(added=1)
    item = project.items.get()
    assert item.text == values.pop("text")
    assert repr(sorted(item.typed.items())) == repr(sorted(values.items()))  # 1e22 == 10**22


def test_what_no_database_could_store_is_a_problem_of_its_row() -> None:
    lines = [
        '{"text": "a", "o": ' + "[" * 101 + "]" * 101 + "}",
        '{"text": "a", "o": ["\\u0000"]}',
        '{"text": "a", "o": [1e400]}',
        '{"text": "a", "o": ["\\ud800"]}',
        '{"text": "a", "o": ' + "[" * 100_000 + "}",
        '{"text": "a", "o": ' + "[" * 100 + "]" * 100 + "}",
    ]
    found = read("jsonl", "\n".join(lines))
    assert [isinstance(row, Row) for row in found] == [False] * 5 + [True]
    words = ["101 deep", "NUL", "too large", "half a character", "no"]
    told = [record.message for record in found if not isinstance(record, Row)]
    assert all(
        word.replace("101 deep", "deep") in message for word, message in zip(words, told, strict=True)
    ), told
