"""What goes to the server: rows with their types, and files; each again where that is needed."""

import io
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from hypac_client.command import main
from hypac_client.records import ndjson
from tests.client.scripted import SITE, TOKEN, Script, job, ok, problem, scripted


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


def test_work_goes_to_another_program_and_its_answers_come_back() -> None:
    given = httpx.Response(200, content=b'{"item":1,"text":"a"}\n{"item":2,"text":"b"}\n')
    taken = {"stored": 1, "known": 0, "refused": [{"row": 2, "reason": "no"}]}
    client, script, _ = scripted(ok({"slug": "a"}), ok({"number": 3, "state": "labelling"}), given, ok(taken))
    run = client.projects.get("a").run(3)
    assert [row["item"] for row in run.work("label-studio", image_seconds=60)] == [1, 2]
    assert str(script.requests[-1].url).endswith(
        "/projects/a/runs/3/work.ndjson?shape=label-studio&part=routed&image_seconds=60"
    )
    rows = [{"item": 1, "value": "x", "annotator": "u"}]
    assert run.take_back(rows, people={"u": "ann"}) == taken
    assert str(script.requests[-1].url).endswith("/projects/a/runs/3/work/")
    body = {"rows": rows, "people": {"u": "ann"}, "part": "routed"}
    assert json.loads(script.requests[-1].content) == body


def test_boxes_go_to_cvat_and_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    found = [ok({"slug": "a"}), ok({"number": 3, "state": "labelling"})]
    waiting = ok({"part": "calibration", "waiting": 2, "blind": True, "conditions": []})
    script = Script([*found, waiting, httpx.Response(200, content=b"PK")])
    file = tmp_path / "images.zip"
    sent = ["--json", "work", "a", "3", str(file), "--part", "calibration", "--shape", "cvat"]
    assert main(sent, transport=script) == 0
    assert (json.loads(capsys.readouterr().out)["items"], file.read_bytes()) == (2, b"PK")
    assert str(script.requests[-1].url).endswith("/projects/a/runs/3/work/cvat/?part=calibration")
    (tmp_path / "annotations.xml").write_text("<annotations/>")
    taken = {"stored": 1, "known": 0, "refused": []}
    script = Script([*found, ok(taken)])
    sent = ["--json", "take-back", "a", "3", str(tmp_path / "annotations.xml"), "--annotator", "ann"]
    assert main([*sent, "--empty", "nothing"], transport=script) == 0
    assert json.loads(capsys.readouterr().out) == taken
    asked = script.requests[-1]
    assert dict(asked.url.params) == {"part": "routed", "annotator": "ann", "empty": "nothing"}
    assert (asked.content, asked.headers["Content-Type"]) == (b"<annotations/>", "application/xml")


def test_the_command_carries_work_away_and_sends_all_answers_back_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    found = [ok({"slug": "a"}), ok({"number": 3, "state": "labelling"})]
    file = str(tmp_path / "work.ndjson")
    waiting = ok({"part": "calibration", "waiting": 1, "blind": True, "conditions": ["Nobody may see it."]})
    script = Script([*found, waiting, httpx.Response(200, content=b'{"item":1,"text":"\xc3\xa4"}\n')])
    assert main(["--json", "work", "a", "3", file, "--part", "calibration"], transport=script) == 0
    told = {"file": file, "items": 1, "conditions": ["Nobody may see it."]}
    assert json.loads(capsys.readouterr().out) == told
    assert all(request.url.params["part"] == "calibration" for request in script.requests[-2:])
    rows = [{"item": number, "value": "x", "annotator": "u"} for number in range(1_001)]
    (tmp_path / "answers.json").write_text(json.dumps(rows))
    first = {"stored": 999, "known": 1, "refused": []}
    last = {"stored": 0, "known": 0, "refused": [{"row": 1, "reason": "no"}]}
    script = Script([*found, ok(first), ok(last)])
    sent = ["--json", "take-back", "a", "3", str(tmp_path / "answers.json"), "--people", '{"u": "ann"}']
    assert main(sent, transport=script) == 0
    assert json.loads(capsys.readouterr().out) == {**first, "refused": [{"row": 1_001, "reason": "no"}]}
    assert main(sent, transport=Script([*found, problem(409, code="no_routed_items")])) == 1
    assert json.loads(capsys.readouterr().err)["code"] == "no_routed_items"
    # Where nothing may be given out now, what an earlier night wrote stays.
    written, refused = Path(file).read_text(), problem(409, code="no_routed_items")
    assert main(["work", "a", "3", file], transport=Script([*found, waiting, refused])) == 1
    assert Path(file).read_text() == written != ""


def test_a_run_that_left_nothing_for_people_is_no_failure_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    note = "Routing left nothing for people in run 3."
    waiting = {"part": "routed", "waiting": 0, "blind": False, "conditions": [], "note": note}
    found = [ok({"slug": "a"}), ok({"number": 3, "state": "complete"}), ok(waiting)]
    file = tmp_path / "work.ndjson"
    script = Script([*found, httpx.Response(200, content=b"")])
    assert main(["work", "a", "3", str(file)], transport=script) == 0
    assert note in capsys.readouterr().out
    assert file.read_text() == ""


def test_what_was_too_much_at_once_is_sent_again_in_smaller_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    rows = [{"item": number, "value": "x", "annotator": "u"} for number in range(50)]
    (tmp_path / "answers.json").write_text(json.dumps(rows))
    no, much = {"reason": "no", "again": False}, {"reason": "too much", "again": True}
    first = [{"row": number, **(no if number == 50 else much)} for number in range(22, 51)]
    answers = [
        {"stored": 20, "known": 1, "refused": first},
        {"stored": 19, "known": 0, "refused": [{"row": 2, **much}]},
        {"stored": 7, "known": 0, "refused": [{"row": 1, **no}]},
    ]
    script = Script([ok({"slug": "a"}), ok({"number": 3, "state": "calibrating"}), *map(ok, answers)])
    sent = ["--json", "take-back", "a", "3", str(tmp_path / "answers.json")]
    assert main(sent, transport=script) == 0
    parts = [[row["item"] for row in json.loads(request.content)["rows"]] for request in script.requests[-3:]]
    assert parts == [list(range(50)), list(range(21, 41)), list(range(41, 49))]
    refused = [{"row": 23, **much}, {"row": 42, **no}, {"row": 50, **no}]
    assert json.loads(capsys.readouterr().out) == {"stored": 46, "known": 1, "refused": refused}


def test_losses_are_asked_for_measured_and_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    found = [ok({"slug": "a"}), ok({"number": 3, "state": "calibrating"})]
    client, script, _ = scripted(*found, ok({"number": 3}), ok({"number": 3, "state": "losses"}))
    assert client.projects.get("a").run(3).ask_losses().state == "losses"
    assert [str(request.url).partition("/runs/3/")[2] for request in script.requests[-2:]] == [
        "ask-losses/",
        "",
    ]
    asked = {"models": ["fast", "slow"], "items": 1, "measured": 0, "conditions": ["Nobody may see it."]}
    line = b'{"item":1,"label":"x","answer1":"y","answer2":null,"measured":"ab"}\n'
    file = tmp_path / "losses.jsonl"
    script = Script([*found, ok(asked), httpx.Response(200, content=line)])
    assert main(["--json", "losses", "a", "3", str(file)], transport=script) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["items"], told["missing"], told["models"]) == (1, 1, ["fast", "slow"])
    assert json.loads(file.read_text()) == json.loads(line)
    table = tmp_path / "losses.csv"
    table.write_text("item,measured,loss1,loss2\n1,ab,0.25,\n")
    taken = {"stored": 1, "known": 0, "refused": []}
    script = Script([*found, ok(taken), ok({**asked, "measured": 1})])
    assert main(["--json", "give-losses", "a", "3", str(table)], transport=script) == 0
    assert json.loads(capsys.readouterr().out) == {**taken, "missing": 0}
    rows = [{"item": "1", "measured": "ab", "loss1": "0.25", "loss2": ""}]
    assert json.loads(script.requests[-2].content) == {"rows": rows}


@pytest.mark.parametrize("broken", ["{broken", '{"item": 1, "loss1": NaN}'])
def test_a_line_that_is_no_json_is_named_and_nothing_is_sent(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    file = tmp_path / "losses.jsonl"
    file.write_text('{"item": 2, "loss1": 0}\n\n' + broken + "\n")
    script = Script([ok({"slug": "a"}), ok({"number": 3, "state": "losses"})])
    assert main(["give-losses", "a", "3", str(file)], transport=script) == 2
    assert f"{file}, line 3: it is no JSON" in capsys.readouterr().err
    assert all(request.method == "GET" for request in script.requests)
