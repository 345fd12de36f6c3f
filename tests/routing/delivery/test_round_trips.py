"""What a delivery holds is what was imported: read by the tools that people use, and imported again."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest

from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.rows import text_hash
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Item, Job
from routing.delivery.deliver import deliver
from testbed.factories import make_project
from testbed.worlds import World, files_of, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

TEXTS = [
    "plain",
    "  spaces around  ",
    'quotes " and "" and \', a comma',
    "line\nbreak",
    "windows\r\nbreak and a tab\t.",
    "مرحبا بالعالم שלום",
    "👩‍👩‍👧‍👦 🦤 e\u0301 \u00e9",
    "\u2028line separator\u2029 \ufeff \u200f \ud7ff \U0010ffff",
    "long " * 20_000,
    "null",
    "NaN",
    "007",
    "1e5",
    "true",
    '{"a": 1}',
    "[1]",
    "\\n \\ \\\\",
    "<b>&amp;</b>",
    "=1+1",
    "@cmd",
    "-5",
    "'quoted",
]
TYPED: list[dict[str, Any]] = [
    {"number": 1, "share": 0.1 + 0.2, "flag": True, "tags": ["a", "ü"], "odd": 5, "nothing": None},
    {"number": None, "share": -1e-300, "flag": False, "tags": [], "odd": {"a": [1, None]}, "limit": 0.5},
    {"number": 2**53, "share": 3, "flag": None, "tags": None, "odd": [1, "x"], "limit": "NaN"},
    {"limit": "-Infinity", "limits": ["Infinity", None, 1.5]},
]
OWN = ["text", "note", "id", "number", "share", "flag", "tags", "odd", "nothing", "limit", "limits"]
FORMATS = ["csv", "tsv", "jsonl", "json", "parquet", "huggingface", "doccano"]


def made() -> tuple[World, list[dict[str, Any]]]:
    """A project of hard texts and what each item was imported with."""
    world = make_world(60)
    items = list(world.project.items.order_by("position"))
    expected = []
    for index, item in enumerate(items):
        item.text = TEXTS[index % len(TEXTS)]
        # Ids of people's own may be there twice; a note may be empty; `odd` may be a text, too.
        values = {"text": item.text, "note": ["", " ", "x"][index % 3], "id": str(index // 2)}
        values |= {"odd": "a text"} | TYPED[index % 4]
        item.content_hash = text_hash(item.text)
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        others = {name: value for name, value in values.items() if name not in texts}
        item.data |= texts | {name: _as_text(value) for name, value in others.items()}
        item.typed = others or None
        expected.append(values)
    Item.objects.bulk_update(items, ["text", "content_hash", "data", "typed"])
    project = world.project
    project.columns = [*project.columns, *(name for name in OWN if name not in project.columns)]
    project.save(update_fields=["columns"])
    return world, expected


def _as_text(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


@pytest.fixture
def delivered() -> tuple[dict[str, bytes], list[dict[str, Any]]]:
    world, expected = made()
    run = world.complete(m=30)
    deliver(run=run, user=world.manager, formats=FORMATS)
    world.do("deliver_run")
    return files_of(run.deliveries.get()), expected


def on_disk(files: dict[str, bytes], folder: Path) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_pandas_and_datasets_read_what_was_imported(delivered, tmp_path):
    files, expected = delivered
    folder = on_disk(files, tmp_path)
    for name, separator in (("labels.csv", ","), ("labels.tsv", "\t")):
        table = pd.read_csv(folder / name, sep=separator, dtype=str, keep_default_na=False)
        for row, values in zip(table.to_dict("records"), expected, strict=True):
            found = [row[column] for column in OWN]
            wanted = [_cell(values.get(column)) for column in OWN]
            assert found == wanted
    table = pd.read_parquet(folder / "labels.parquet", dtype_backend="pyarrow")
    assert str(table.dtypes["number"]) == "int64[pyarrow]"
    assert str(table.dtypes["limit"]) == "double[pyarrow]"
    for row, values in zip(table.to_dict("records"), expected, strict=True):
        same_as_columns(row, values)
    for row, values in zip(datasets.load_from_disk(folder / "dataset"), expected, strict=True):
        same_as_columns(row, values)
    for name, lines in (("labels.jsonl", True), ("labels.json", False)):
        table = pd.read_json(folder / name, lines=lines, dtype=False, precise_float=True)
        for column in ("text", "note", "id"):
            assert list(table[column]) == [values[column] for values in expected]
    parsed = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    for row, values in zip(parsed, expected, strict=True):
        assert {column: row[column] for column in OWN if column in row} == values


def _as_cell(value: Any) -> str:
    return value if isinstance(value, str) else _as_text(value)


def _cell(value: Any) -> str:
    cell = _as_cell(value)
    return f"'{cell}" if cell[:1] in ("=", "@") or cell in ("-1e-300", "-Infinity") else cell


def same_as_columns(row: dict[str, Any], values: dict[str, Any]) -> None:
    """As columns of one type hold it: what is not there is null, and `odd` is text."""
    for column in OWN:
        value, found = values.get(column), row[column]
        if column == "odd" and value is not None and not isinstance(value, str):
            assert json.loads(found) == value
        elif value is None:
            assert found is None or pd.isna(found)
        else:
            found = list(found) if isinstance(value, list) else found
            if column in ("limit", "limits"):
                found, value = _written(found), _written(value)
            assert found == value


def _written(value: Any) -> Any:
    """Of numbers and of the words for what JSON has no numbers for."""
    if isinstance(value, list):
        return [_written(entry) for entry in value]
    return "nan" if value is None or pd.isna(value) else repr(float(value))


def test_what_was_delivered_is_imported_again_as_it_was(delivered):
    files, expected = delivered
    for name in ("labels.csv", "labels.tsv", "labels.jsonl", "labels.json", "labels.parquet"):
        for item, values in zip(imported_items(name, files[name]), expected, strict=True):
            found = item.data | (item.typed or {})
            if name in ("labels.csv", "labels.tsv"):
                assert item.typed is None
                assert [found[column] for column in OWN] == [_as_cell(values.get(column)) for column in OWN]
                continue
            assert item.text == values["text"]
            if name == "labels.parquet":
                same_as_columns(found, values)
            else:
                assert {column: found[column] for column in OWN if column in found} == values


def test_a_delivered_data_set_folder_is_imported_again(delivered):
    files, expected = delivered
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            if name.startswith("dataset/"):
                archive.writestr(name, content)
    for item, values in zip(imported_items("dataset.zip", out.getvalue()), expected, strict=True):
        assert item.text == values["text"]
        same_as_columns(item.data | (item.typed or {}), values)


def imported_items(name: str, content: bytes) -> list[Item]:
    project = make_project()
    stored = store_file(
        project=project, content=io.BytesIO(content), original_name=name, media_type="text/plain"
    )
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=stored,
        mapping=ColumnMapping(id_column="external_id", text_column="text"),
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    assert (job.result["added"], job.result["problems"]) == (60, 0)
    items = list(project.items.order_by("position"))
    assert [item.external_id for item in items] == [f"t{index}" for index in range(60)]
    return items
