"""What `hypac` tells of what it made, and of a file of which something could not be used, and how it ends."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hypac_client.command import main
from tests.client.scripted import SITE, TOKEN, Script, job, ok, problem
from tests.client.test_nights import PROJECT, page, run, told

__all__ = ["told"]


def test_a_project_and_its_sources_are_made(
    told: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    script = Script([ok({"slug": "reviews", "name": "Reviews"}, 201)])
    words = ["--json", "new-project", "Reviews", "choices=good,bad", "overlap:=2"]
    assert main(words, transport=script) == 0
    assert json.loads(capsys.readouterr().out)["slug"] == "reviews"
    short = Script([ok({"slug": "reviews", "name": "Reviews", "guidelines": "x" * 999}, 201)])
    assert main(words[1:], transport=short) == 0
    assert capsys.readouterr().out == (
        f"slug=reviews  name=Reviews  page={SITE}/projects/reviews/  "
        "next=hypac import reviews FILE --id-column NAME --text-column NAME\n"
    )
    body = {"name": "Reviews", "overlap": 2, "choices": [{"name": "good"}, {"name": "bad"}]}
    assert json.loads(script.requests[0].content) == body
    monkeypatch.setattr("sys.stdin", StringIO("secret\n"))
    fields = ("backend=uploaded", 'params:={"model": "m"}', "cost_per_label=0.01", "--api-key-stdin")
    made = {"id": 4, "name": "Fast one", "backend": "uploaded", "prompt": {"text": "x" * 999}}
    made["warnings"] = ["It costs nothing."]
    status, said, requests = told("new-source", "a", "Fast", *fields, replies=[ok(made, 201)])
    assert (status, said) == (0, made)
    sent = json.loads(requests[-1].content)
    assert (sent["name"], sent["params"], sent["cost_per_label"]) == ("Fast", {"model": "m"}, "0.01")
    assert sent["api_key"] == "secret"
    # People are told what they need: which it is, where, and what comes next.
    for backend, following in (
        ("uploaded", "hypac predictions a 'Fast one' FILE"),
        ("openai_api", "hypac start a epsilon=0.05 alpha=0.1 m:=150"),
    ):
        made["backend"] = backend
        script = Script([PROJECT, ok(made, 201)])
        assert main(["new-source", "a", "Fast one", f"backend={backend}"], transport=script) == 0
        page = f"{SITE}/projects/a/sources/4/"
        told_then = f"id=4  name=Fast one  backend={backend}  page={page}  next={following}\n"
        assert capsys.readouterr() == (told_then, "It costs nothing.\n")


def test_a_look_at_a_file_says_how_it_is_imported(
    told: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new items.csv"
    file.write_text("x")
    problem = {"where": "line 3", "line": 3, "column": "", "message": "It is empty."}
    seen = {
        "format": "csv_comma",
        "format_title": "CSV table",
        "columns": [{"name": "id"}, {"name": "the text"}],
        "rows": [{"id": "a", "the text": "x" * 999}],
        "thumbnails": ["data:image/png;base64,x"],
        "problems": [problem],
        "suggestion": {"id_column": "id", "text_column": "the text", "field_columns": []},
    }
    replies = [ok({"id": 1}, 201), ok(seen)]
    assert told("preview", "a", str(file), replies=replies)[:2] == (0, seen)
    assert main(["preview", "a", str(file)], transport=Script([PROJECT, *replies])) == 0
    imported = f"hypac import a '{file}' --id-column id --text-column 'the text'"
    said = f"format=CSV table  columns=id, the text  next={imported}\n"
    assert capsys.readouterr() == (said, "line 3: It is empty.\n")


@pytest.mark.parametrize(
    "words",
    [
        ["new-source", "a", "Fast", "name=Slow"],
        ["new-source", "a", "Fast", "params:={"],
        ["start", "a", "anyway:=true"],
        ["start", "a", "m:=1", "m:=2"],
    ],
)
def test_a_field_that_is_none_is_wrong_use(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)
    assert main(words, transport=Script([PROJECT])) == 2
    assert words[-1] in capsys.readouterr().err


def test_what_a_file_lacked_is_told_and_ends_a_strict_command(
    told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("x")
    found = {"where": "line 2", "line": 2, "column": "", "message": "The project has no item “x0”."}
    result = {"added": 1, "already_there": 0, "problems": 30}
    done = job("done", result=result, problems=[found] * 25, problem_count=30)
    replies = [page({"id": 4, "name": "Ours"}), ok(job("queued"), 202), ok(done)]
    words = ["predictions", "a", "Ours", str(file), "--id-column", "review"]
    status, said, requests = told(*words, replies=replies)
    assert (status, said["problems"], said["first_problems"][0]) == (0, 30, found)
    assert dict(requests[-2].url.params)["id_column"] == "review"
    assert told(*words, "--strict", replies=replies)[0] == 1
    assert main(words, transport=Script([PROJECT, *replies])) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[-21] == "line 2: The project has no item “x0”."
    assert err[-1] == "... and 10 more of job 7"
    rows = tmp_path / "rows.json"
    rows.write_text("[{}]")
    refused = {"row": 1, "item": 5, "name": "r-5", "annotator": "ann", "reason": "No."}
    taken = ok({"stored": 0, "known": 0, "refused": [refused]})
    replies = [ok(run("labelling")), taken]
    # A command of which everything was refused has done nothing, --strict or not.
    assert main(["take-back", "a", "3", str(rows)], transport=Script([PROJECT, *replies])) == 1
    nothing = "row 1 (r-5): No.\nhypac: nothing of it could be used\n"
    assert capsys.readouterr() == ("stored=0  known=0  refused=1\n", nothing)
    known = ok({"stored": 0, "known": 1, "refused": [refused]})
    for more, ends in (((), 0), (("--strict",), 1)):
        replies = [PROJECT, ok(run("labelling")), known]
        assert main(["take-back", "a", "3", str(rows), *more], transport=Script(replies)) == ends
        assert capsys.readouterr().err == "row 1 (r-5): No.\n"


@pytest.mark.parametrize("content", ["", "[]", "\n"])
def test_a_file_without_answers_is_taken_back_by_no_command(content: str, told: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(content)
    status, said, _ = told("take-back", "a", "3", str(tmp_path / "rows.json"), replies=[ok(run("labelling"))])
    assert (status, said["detail"]) == (1, "The file has no answers: nothing was sent.")


def test_what_the_site_says_of_a_field_names_the_option(told: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text("[{}]")
    refusal = problem(409, "Not routed. Its calibration set is asked for by part=calibration.")
    for command in ("take-back", "work"):
        words = [command, "a", "3", str(tmp_path / "rows.json")]
        status, said, _ = told(*words, replies=[ok(run("calibrating")), refusal])
        assert (status, "by --part calibration." in said["detail"]) == (1, True)


@pytest.mark.parametrize("words", [["import", "a"], ["predictions", "a", "Ours"]])
def test_a_file_of_which_nothing_could_be_used_ends_no_command_well(
    words: list[str], told: Any, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("x")
    sent = {
        "import": [ok({"id": 1}, 201), ok(job("queued"), 202)],
        "predictions": [page({"id": 4, "name": "Ours"}), ok(job("queued"), 202)],
    }[words[0]]
    for there, ends in ((0, 1), (1, 0)):
        result = {"added": 0, "already_there": there, "problems": 3}
        done = ok(job("done", result=result, problems=[], problem_count=3))
        assert told(*words, str(tmp_path / "rows.csv"), replies=[*sent, done])[0] == ends
