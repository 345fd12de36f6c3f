"""What goes to the server: rows with their types, and files; each again where that is needed."""

import io
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hypac_client.records import ndjson
from tests.client.scripted import job, ok, problem, scripted


def written(data: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ndjson(data)]


def test_a_table_keeps_its_types() -> None:
    table = pd.DataFrame(
        {
            "id": ["a", "b"],
            "count": [1, 2],
            "share": [0.1, np.nan],
            "right": [True, False],
            "whole": pd.array([7, None], dtype="Int64"),
            "when": pd.to_datetime(["2026-01-02", None]),
            "tags": [["x", "y"], None],
        },
        index=[5, 9],
    )
    first, second = written(table)
    assert first == {
        **{"id": "a", "count": 1, "share": 0.1, "right": True, "whole": 7},
        **{"when": "2026-01-02T00:00:00", "tags": ["x", "y"]},
    }
    assert type(first["count"]) is int
    assert type(first["right"]) is bool
    assert second == {
        **{"id": "b", "count": 2, "share": None, "right": False, "whole": None},
        **{"when": None, "tags": None},
    }


def test_a_long_table_is_written_whole_and_in_order() -> None:
    assert [row["n"] for row in written(pd.DataFrame({"n": range(25_001)}))] == list(range(25_001))


def test_dictionaries_of_all_kinds() -> None:
    row = {
        "text": "שלום 🙂 \u2028\n",
        "price": Decimal("0.10"),
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4),
        "vector": np.array([1.5, 2.5]),
        "small": np.float32(0.5),
        "n": np.int64(3),
        "inner": {"a": (1, 2)},
    }
    assert written(iter([row])) == [
        {
            **{"text": "שלום 🙂 \u2028\n", "price": "0.10", "day": "2026-01-02", "at": "2026-01-02T03:04:00"},
            **{"vector": [1.5, 2.5], "small": 0.5, "n": 3, "inner": {"a": [1, 2]}},
        }
    ]
    assert all(line.count(b"\n") == 1 for line in ndjson([row]))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([{"a": 1}, {"a": object()}], TypeError, "row 2: a value of type object"),
        ([{"a": float("inf")}], ValueError, "row 1: infinity"),
        ([{"a": "\ud800"}], ValueError, "row 1: .*surrogate"),
        ([["a"]], TypeError, "row 1: expected a dictionary"),
        ({"a": 1}, TypeError, "expected a DataFrame or dictionaries"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "two columns"),
    ],
)
def test_what_cannot_be_written_names_its_row(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        list(ndjson(data))


def test_rows_that_come_once_are_sent_again_after_a_lost_answer() -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield from ({"id": n} for n in range(3))

    client, script, _ = scripted(ok({"slug": "a"}), problem(503), ok(job("queued"), status=202))
    started = client.projects.get("a").import_data(
        rows(), id_column="id", text_column="id", field_columns=["x", "y"]
    )
    assert started.id == 7
    first, second = script.requests[1:]
    assert first.content == second.content == b'{"id":0}\n{"id":1}\n{"id":2}\n'
    assert first.headers["Content-Type"] == "application/x-ndjson"
    assert first.headers["Content-Length"] == "27"
    assert first.url.params.multi_items() == [
        *(("id_column", "id"), ("text_column", "id"), ("field_columns", "x"), ("field_columns", "y"))
    ]


def test_nothing_is_sent_of_rows_that_cannot_be_written() -> None:
    client, script, _ = scripted(ok({"slug": "a"}))
    with pytest.raises(TypeError, match="row 2"):
        client.projects.get("a").import_data([{"id": 1}, {"id": object()}], id_column="id")
    assert len(script.requests) == 1


def test_a_file_is_stored_and_then_imported(tmp_path: Path) -> None:
    file = tmp_path / "the items.csv"
    file.write_bytes(b"id,text\n1,a\n")
    stored = ok({"id": 31, "name": "the items.csv"}, status=201)
    client, script, _ = scripted(ok({"slug": "a"}), problem(502), stored, ok(job("queued"), status=202))
    project = client.projects.get("a")
    project.import_data(file, id_column="id", text_column="text")
    _, first, second, started = script.requests
    assert first.content == second.content == b"id,text\n1,a\n"
    assert second.url.params["name"] == "the items.csv"
    assert json.loads(started.content) == {"file": 31, "id_column": "id", "text_column": "text"}
    script.replies += [ok({"id": 31, "name": "x"}, status=201), ok(job("queued"), status=202)]
    project.import_data(file, text_column="text", keep_labels=True)
    assert json.loads(script.requests[-1].content) == {"file": 31, "text_column": "text", "keep_labels": True}
    script.replies += [ok({"id": 31, "name": "x"}, status=201), ok(job("queued"), status=202)]
    project.import_data(file, text_column="text", add_duplicates=True)
    assert json.loads(script.requests[-1].content)["add_duplicates"] is True
    script.replies += [ok(job("queued"), status=202)]
    project.import_data([{"text": "a"}], text_column="text", add_duplicates=True)
    assert script.requests[-1].url.params["add_duplicates"] == "true"


def test_predictions_are_sent_to_their_source() -> None:
    client, script, _ = scripted(
        ok({"slug": "a"}), ok({"id": 4, "name": "mine"}, status=201), ok(job("queued"), status=202)
    )
    source = client.projects.get("a").sources.add("mine", params={"model": "m", "revision": "1"})
    started = source.upload_predictions(
        pd.DataFrame({"external_id": ["1"], "label": ["yes"], "confidence": [0.9]})
    )
    assert str(script.requests[2].url).endswith("/projects/a/sources/4/predictions/")
    assert script.requests[2].content == b'{"external_id":"1","label":"yes","confidence":0.9}\n'
    assert started._path == "projects/a/jobs/7/"


def test_predictions_come_from_a_path_or_an_open_file_as_they_are(tmp_path: Path) -> None:
    line = '{"external_id":"1","label":"oui – né"}\n'
    file = tmp_path / "answers.jsonl"
    file.write_text(line, encoding="utf-8")
    made = ok({"id": 4, "name": "mine"}, status=201)
    client, script, _ = scripted(ok({"slug": "a"}), made)
    source = client.projects.get("a").sources.add("mine")

    class Pipe:
        """Cannot go back: what it gave has to be kept for another attempt."""

        left = [line.encode()]

        def read(self, size: int) -> bytes:
            return self.left.pop() if self.left else b""

    for data in (str(file), file, file.open("rb"), io.StringIO(line), Pipe()):
        script.replies += [problem(503), ok(job("queued"), status=202)]
        source.upload_predictions(data, format="openai_batch", revision="2 b")
        first, second = script.requests[-2:]
        assert first.content == second.content == line.encode()
        assert second.headers["Content-Length"] == str(len(line.encode()))
        assert dict(second.url.params) == {"format": "openai_batch", "revision": "2 b"}
