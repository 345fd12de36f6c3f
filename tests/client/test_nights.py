"""`hypac` at night, and the client's methods for it: what they ask of the site, and how they end."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from hypac_client import NotYetError, nights
from hypac_client.command import main
from hypac_client.progress import Lines, progress_of
from tests.client.scripted import SITE, TOKEN, Script, job, ok, problem, scripted

PROJECT = ok({"slug": "a"})
BUSY = {"open": 2, "leased": 1, "disagreeing": 0, "total": 9}


def run(state: str, **more: Any) -> dict[str, Any]:
    later = {"later_items": None, "target": "dataset", "reference": "person", "certificate": None}
    found = {"number": 3, "state": state, "loss": "zero_one", "calibration": None, "labelling": None}
    return {**found, **later, **more}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The exit status, the output as JSON (of an error what it says), and the requests of a command."""
    monkeypatch.setenv("HYPAC_URL", SITE)
    monkeypatch.setenv("HYPAC_TOKEN", TOKEN)

    def go(*words: str, replies: list[Any]) -> tuple[int, Any, list[httpx.Request]]:
        script = Script([PROJECT, *replies])
        status = main(["--json", *words], transport=script)
        assert not script.replies
        out, err = capsys.readouterr()
        return status, json.loads(out or err), script.requests

    return go


def page(*rows: dict[str, Any]) -> httpx.Response:
    return ok({"results": list(rows), "next": None})


def test_a_run_is_started_where_one_is_due(told: Any) -> None:
    words = ("start", "a", "epsilon=0.05", "m:=150", "--if-new-items", "--unless-under-way")
    why = problem(409, "Run 2 is not finished: labelling.", code="no_run_due")
    status, said, requests = told(*words, replies=[why])
    assert (status, said["started"], said["why"]) == (0, False, "Run 2 is not finished: labelling.")
    body = json.loads(requests[-1].content)
    assert (body["epsilon"], body["m"], body["if_new_items"], body["unless_under_way"]) == (
        *("0.05", 150),
        *(True, True),
    )
    # Answers that are missing are refused, unless whoever starts says that they may be.
    assert (body["accept_missing"], body["unless_undelivered"]) == (False, False)
    done = job("done", kind="prepare_run")
    calibrating = ok(run("calibrating", calibration=BUSY))
    status, said, _ = told(*words, replies=[ok(run("preparing"), 201), page(done), ok(done), calibrating])
    assert (status, said["started"], said["state"], said["left"]) == (0, True, "calibrating", 3)


def test_people_who_have_to_label_first_are_an_end_of_its_own(told: Any) -> None:
    status, said, _ = told("analyse", "a", "3", replies=[ok(run("calibrating", calibration=BUSY))])
    assert (status, said["error"]) == (3, "NotYetError")
    assert "waits for people: 3 answers are missing" in said["detail"]
    one = {**BUSY, "open": 0}
    _, said, _ = told("analyse", "a", "3", replies=[ok(run("calibrating", calibration=one))])
    assert "waits for people: 1 answer is missing" in said["detail"]
    status, _, _ = told("route", "a", "3", replies=[ok(run("calibrating", calibration=BUSY))])
    assert status == 3
    status, _, _ = told("deliver", "a", "3", "out", replies=[ok(run("routing"))])
    assert status == 3
    waiting = ok(run("labelling", labelling=BUSY))
    assert told("deliver", "a", "3", "out", "--complete", replies=[waiting])[0] == 3


def test_losses_that_a_program_measures_come_before_the_analysis(told: Any) -> None:
    labelled = ok(run("calibrating", calibration={**BUSY, "open": 0, "leased": 0}, loss="measured_elsewhere"))
    status, said, _ = told("analyse", "a", "3", replies=[labelled])
    assert (status, "have the losses asked for first" in said["detail"]) == (3, True)
    losses = ok(run("losses", loss="measured_elsewhere"))
    status, said, _ = told("analyse", "a", "3", replies=[losses, ok({"items": 3, "measured": 1})])
    assert (status, "answers about 2 items" in said["detail"]) == (3, True)
    done = ok(job("done", kind="analyse_run"))
    analysed = ok(run("analysed", loss="measured_elsewhere", certificate={"certified": True, "sentence": ""}))
    replies = [losses, ok({"items": 3, "measured": 3}), ok(job("queued"), 202), done, analysed]
    status, said, requests = told("analyse", "a", "3", replies=replies)
    assert (status, said["state"], said["certified"]) == (0, "analysed", True)
    assert any(str(one.url).endswith("/runs/3/analyse/") for one in requests)


def test_losses_are_asked_for_once_all_labels_are_there(told: Any) -> None:
    words, losses = ("ask-losses", "a", "3"), {"loss": "measured_elsewhere"}
    status, said, _ = told(*words, replies=[ok(run("calibrating", calibration=BUSY, **losses))])
    assert (status, "3 answers are missing" in said["detail"]) == (3, True)
    labelled = run("calibrating", calibration={**BUSY, "open": 0, "leased": 0, "disagreeing": 0}, **losses)
    asked = ok(run("losses", **losses))
    status, said, requests = told(*words, replies=[ok(labelled), asked, asked])
    assert (status, said["state"]) == (0, "losses")
    assert str(requests[2].url).endswith("/runs/3/ask-losses/")
    assert told(*words, replies=[asked])[:1] == (0,)  # once is enough
    refused = problem(409, code="losses_computed_here")
    status, said, _ = told(*words, replies=[ok(run("calibrating", calibration=BUSY)), refused])
    assert (status, said["code"]) == (1, "losses_computed_here")


def test_the_newest_run_goes_on_where_its_work_failed_in_an_earlier_night(told: Any) -> None:
    failed, done = job("failed", kind="analyse_run", error="x"), job("done", kind="analyse_run")
    analysed = run("analysed", certificate={"certified": True, "sentence": "At most 5 %."})
    runs = page(run("cancelled"), run("analysing"))
    replies = [
        runs,
        ok(run("analysing")),
        page(failed),
        ok(job("queued")),
        ok(done),
        ok(analysed),
        ok(analysed),
    ]
    status, said, requests = told("analyse", "a", "newest", replies=replies)
    assert (status, said["state"], said["certified"]) == (0, "analysed", True)
    assert any(str(one.url).endswith("/jobs/7/retry/") for one in requests)


def test_a_run_whose_losses_are_measured_is_analysed_once_they_are_here(told: Any) -> None:
    words, losses = ("analyse", "a", "3"), {"loss": "measured_elsewhere"}
    done = {"open": 0, "leased": 0, "disagreeing": 0, "total": 9}
    status, said, _ = told(*words, replies=[ok(run("calibrating", calibration=done, **losses))])
    assert (status, "have the losses asked for first" in said["detail"]) == (3, True)
    waiting = [ok(run("losses", **losses)), ok({"items": 300, "measured": 299})]
    status, said, _ = told(*words, replies=waiting)
    assert (status, "waits for the losses of answers about 1 item" in said["detail"]) == (3, True)
    analysed = ok(run("analysed", certificate={"certified": True, "sentence": "At most 5 %."}))
    here = [ok(run("losses", **losses)), ok({"items": 3, "measured": 3})]
    replies = [*here, ok(job("queued"), 202), ok(job("done")), analysed]
    status, said, requests = told(*words, replies=replies)
    assert (status, said["state"]) == (0, "analysed")
    assert str(requests[3].url).endswith("/runs/3/analyse/")


def test_a_file_that_is_no_table_of_losses_is_refused_in_words(told: Any, tmp_path: Path) -> None:
    lines = tmp_path / "losses.jsonl"
    lines.write_text('{"item": 1}\n7\n')
    status, said, _ = told("give-losses", "a", "3", str(lines), replies=[ok(run("losses"))])
    assert (status, said["detail"]) == (2, "row 2 is no object")
    table = tmp_path / "losses.csv"
    table.write_text(f"item,measured,loss1,text\n1,m,0,{'x' * 200_000}\n")
    replies = [
        ok(run("losses")),
        ok({"stored": 1, "known": 0, "refused": []}),
        ok({"items": 1, "measured": 1}),
    ]
    assert told("give-losses", "a", "3", str(table), replies=replies)[0] == 0


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("losses.csv", "item;measured;loss1\n1;m;0,5\n", "separated by commas (decimals are written with a"),
        ("losses.csv", "<!DOCTYPE html>\n<html></html>\n", "it is '<!DOCTYPE html>'"),
        ("losses.csv", "<!DOCTYPE html>", "it is '<!DOCTYPE html>'"),
        ("losses.csv", "", "empty"),
        ("losses.csv", "item,measured,loss1\n", "no row in it"),
        ("losses.jsonl", "", "no row in it"),
        ("losses.json", "[]", "no row in it"),
        ("losses.json", "<html></html>", "Expecting value"),
        ("losses.jsonl", '{"item": 1, "measured": "m"}\n{"id": 1}\n', "row 2 needs item and measured"),
    ],
)
def test_a_file_without_losses_never_ends_as_if_all_were_well(
    told: Any, tmp_path: Path, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    status, said, _ = told("give-losses", "a", "3", str(tmp_path / name), replies=[ok(run("losses"))])
    assert (status, words in said["detail"]) == (2, True), said


def test_a_table_of_losses_is_known_by_its_ending_in_capitals_too(told: Any, tmp_path: Path) -> None:
    table = tmp_path / "LOSSES.CSV"
    table.write_text("item,measured,loss1\n1,m,0.5\n")
    replies = [
        ok(run("losses")),
        ok({"stored": 1, "known": 0, "refused": []}),
        ok({"items": 1, "measured": 1}),
    ]
    assert told("give-losses", "a", "3", str(table), replies=replies)[0] == 0


def test_later_items_are_taken_in_where_there_are_any(told: Any) -> None:
    later = {"waiting": 0, "objection": "", "taken_in": [], "audit": None}
    idle = ok(run("complete", target="population", later_items=later))
    status, said, _ = told("take-in", "a", "3", replies=[idle, page()])
    assert (status, said["taken_in"]) == (0, 0)
    due = ok(run("complete", target="population", later_items={**later, "waiting": 4}))
    done = ok(job("done", result={"taken_in": 4, "people": 1}))
    replies = [due, page(job("done")), ok(job("queued"), 202), done, ok(run("labelling", labelling=BUSY))]
    status, said, requests = told("take-in", "a", "3", replies=replies)
    assert (status, said["taken_in"], said["left"]) == (0, 4, 3)
    assert json.loads(requests[3].content) == {"accept_missing": False}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def delivery(number: int, **contents: bytes) -> tuple[dict[str, Any], list[httpx.Response]]:
    """What the site says of one with these files, and the answers that give them, the manifest last."""
    files = {name.replace("__", "."): content for name, content in contents.items()}
    named = {name: {"bytes": len(one), "sha256": sha256(one)} for name, one in files.items()}
    files["manifest.json"] = json.dumps({"files": named}).encode()
    facts = [
        {"name": name, "size": len(one), "sha256": sha256(one), "media_type": "x"}
        for name, one in files.items()
    ]
    data = {"id": 10 + number, "number": number, "run": 3, "filters": {}, "files": facts[::-1]}
    ordered = [files[one["name"]] for one in facts[:-1][::-1]] + [files["manifest.json"]]
    return data, [httpx.Response(200, content=one) for one in ordered]


def test_an_idle_night_writes_nothing_and_a_new_delivery_leaves_no_older_file(
    told: Any, tmp_path: Path
) -> None:
    folder, complete = tmp_path / "out", ok(run("complete"))
    words = ("deliver", "a", "3", str(folder), "--unless-delivered")
    first, contents = delivery(1, labels__csv=b"a", labels__jsonl=b"b", README__md=b"c")
    made = ok(job("done", result={"delivery": 11, "made": True}))
    status, said, requests = told(
        *words, replies=[complete, ok(job("queued"), 202), made, ok(first), *contents]
    )
    assert (status, said["made"], said["delivery"], said["number"]) == (0, True, 11, 1)
    assert json.loads(requests[2].content)["unless_delivered"] is True
    assert len(said["files"]) == 4
    same = ok(job("done", result={"delivery": 11, "made": False}))
    idle = [complete, ok(job("queued"), 202), same, ok(first)]
    assert told(*words, replies=idle)[1]["files"] == []
    (folder / "labels.jsonl").write_bytes(b"changed by somebody")
    (folder / "notes.txt").write_bytes(b"ours")
    # What is new is told against what the folder holds: its record says which delivery that is.
    second, contents = delivery(3, labels__parquet=b"d")
    made = ok(job("done", result={"delivery": 13, "made": True}))
    replies = [complete, ok(first), ok(job("queued"), 202), made, ok(second), *contents]
    status, said, requests = told(*words, "--since", "newest", replies=replies)
    assert requests[2].url.path.endswith("/deliveries/11/")
    assert json.loads(requests[3].content)["since"] == 11
    left = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(left) == {".hypac.json", "labels.parquet", "manifest.json", "labels.jsonl", "notes.txt"}
    assert left["labels.jsonl"] == b"changed by somebody"


def test_what_a_folder_holds_is_looked_for_where_its_record_is_of_no_use(tmp_path: Path) -> None:
    first, contents = delivery(1, labels__csv=b"a")
    (tmp_path / "manifest.json").write_bytes(contents[-1].content)
    other, _ = delivery(2, labels__csv=b"elsewhere")
    held = run("complete")

    def base(*replies: httpx.Response, record: Any) -> Any:
        (tmp_path / ".hypac.json").write_text(json.dumps(record))
        client, script, _ = scripted(PROJECT, ok(held), *replies)
        project = client.projects.get("a")
        found = nights.base_of(project, project.run(3), "newest", tmp_path)
        assert not script.replies
        return found and found.id

    listed = page(other, first)
    assert base(ok(first), record={"project": "a", "delivery": 11}) == 11
    assert base(ok(other), listed, record={"project": "a", "delivery": 12}) == 11  # ids given again
    assert base(problem(404), record={"project": "a", "delivery": 11}) is None
    for record in ({}, [], {"project": "b", "delivery": 11}, {"project": "a", "delivery": True}):
        assert base(listed, record=record) == 11


def test_fields_of_a_thing_are_looked_for_by_name() -> None:
    client, _, _ = scripted(PROJECT, ok(run("complete")))
    found = client.projects.get("a").run(3)
    assert ("state" in found, "no such" in found) == (True, False)
    assert dict(found) == found.data
    assert list(found) == list(found.data)


def test_problems_of_a_job_in_a_list_are_asked_for() -> None:
    found = {"where": "line 2", "line": 2, "column": "", "message": "No."}
    client, script, _ = scripted(
        PROJECT, page(job("done", problem_count=1)), ok(job("done", problems=[found], problem_count=1))
    )
    [one] = client.projects.get("a").jobs()
    assert (one.problem_count, len(script.requests)) == (1, 2)
    assert one.problems == [found]


def test_a_configuration_is_had_with_the_token_and_items_are_erased_where_it_is_meant(
    told: Any, tmp_path: Path
) -> None:
    file = tmp_path / "config.xml"
    status, _, requests = told(
        "label-config", "a", str(file), replies=[httpx.Response(200, content=b"<View/>")]
    )
    assert (status, file.read_text(), requests[-1].headers["Authorization"]) == (
        *(0, "<View/>"),
        f"Token {TOKEN}",
    )
    erased = {"items": 2, "already": 0, "deliveries": 1, "sent": 0}
    status, said, requests = told("erase-items", "a", "x", "y", "--yes", replies=[ok(erased)])
    assert (status, said) == (0, erased)
    assert json.loads(requests[-1].content) == {"external_ids": ["x", "y"]}


def test_a_run_of_the_night_has_a_number_or_is_the_newest() -> None:
    client, _, _ = scripted(PROJECT)
    with pytest.raises(ValueError, match="number or newest"):
        nights.run_of(client.projects.get("a"), "last")
    assert issubclass(NotYetError, Exception)


def test_a_log_has_lines_and_no_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not sys.stderr.isatty()
    monkeypatch.setitem(sys.modules, "tqdm", None)
    shown = progress_of("import", True)
    assert isinstance(shown, Lines)
    for done in (0, 1, 300):
        shown.show("", done, 300)
    shown.close()
    # However fast it was, its end is told.
    assert capsys.readouterr().err == "import: 0 of 300\nimport: 300 of 300\n"
