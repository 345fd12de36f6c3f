"""Lists that come in pages, answers that come line by line, and waiting."""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hypac_client import ChecksumError, ConflictError, HypacError, JobError, WaitTimeoutError
from hypac_client.jobs import Job
from hypac_client.progress import Lines, progress_of
from hypac_client.runs import ASKED, JOB_OF_STATE, STATES, Run
from routing.models import Run as ServersRun
from tests.client.scripted import SITE, job, ok, problem, scripted

DONE = {"open": 0, "leased": 0, "total": 5}


def test_pages_are_followed_without_being_seen() -> None:
    elsewhere = "http://inside.example.net:8000/api/v1/projects/a/items/?cursor=cD0y&page_size=2"
    replies = [
        ok({"slug": "a"}),
        ok({"next": elsewhere, "previous": None, "results": [{"external_id": "1"}, {"external_id": "2"}]}),
        ok({"next": None, "previous": None, "results": [{"external_id": "3"}]}),
    ]
    client, script, _ = scripted(*replies)
    items = client.projects.get("a").items(page_size=2, external_id=None)
    assert [item["external_id"] for item in items] == ["1", "2", "3"]
    first, second = (str(request.url) for request in script.requests[1:])
    assert first == f"{SITE}/api/v1/projects/a/items/?page_size=2"
    assert second == f"{SITE}/api/v1/projects/a/items/?cursor=cD0y&page_size=2"


def test_a_page_is_asked_for_when_it_is_needed() -> None:
    page = {"next": f"{SITE}/api/v1/projects/a/items/?cursor=x", "results": [{"external_id": "1"}]}
    client, script, _ = scripted(ok({"slug": "a"}), ok(page))
    assert next(client.projects.get("a").items())["external_id"] == "1"
    assert len(script.requests) == 2


def test_lines_come_as_they_are() -> None:
    rows = [{"text": "a\u2028b\x85c\nd", "n": 1}, {"text": "", "n": None}]
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    client, script, _ = scripted(ok({"slug": "a"}), httpx.Response(200, text=content))
    assert list(client.projects.get("a").labels(stream=True, annotator="bo")) == rows
    assert str(script.requests[1].url).endswith("/labels.ndjson?annotator=bo")


def test_lines_that_break_off_are_an_error_and_not_the_end() -> None:
    client, _, _ = scripted(ok({"slug": "a"}), httpx.Response(200, text='{"n": 1}\n{"n": '))
    labels = client.projects.get("a").labels(stream=True)
    assert next(labels) == {"n": 1}
    with pytest.raises(HypacError, match="broke off"):
        next(labels)

    def cut() -> Iterator[bytes]:
        yield b'{"n": 1}\n'
        raise httpx.RemoteProtocolError("peer closed connection")

    client, _, _ = scripted(ok({"slug": "a"}), lambda _: httpx.Response(200, content=cut()))
    labels = client.projects.get("a").labels(stream=True)
    assert next(labels) == {"n": 1}
    with pytest.raises(HypacError, match="broke off: peer closed"):
        next(labels)


class Seen:
    def __init__(self) -> None:
        self.shown: list[tuple[str, int, int | None]] = []
        self.closed = False

    def show(self, stage: str, done: int, total: int | None) -> None:
        self.shown.append((stage, done, total))

    def close(self) -> None:
        self.closed = True


def test_a_job_is_waited_for_and_its_progress_shown() -> None:
    states = [
        job("queued"),
        job("running", stage="Reading", done=3, total=9),
        job("done", result={"items": 9}),
    ]
    client, _, pauses = scripted(*map(ok, states))
    seen = Seen()
    done = Job(client._transport, "projects/a/jobs/7/", job("queued")).wait(progress=seen, timeout=60)
    assert done.result == {"items": 9}
    assert seen.shown == [("", 0, None), ("Reading", 3, 9), ("", 0, None)]
    assert seen.closed
    assert len(pauses) == 2


def test_a_job_that_fails_says_why_and_where() -> None:
    problems = [{"where": "line 3", "message": "no id"}]
    client, _, _ = scripted(ok(job("failed", error="The file is cut off.", problems=problems)))
    with pytest.raises(JobError, match="failed: The file is cut off") as caught:
        Job(client._transport, "projects/a/jobs/7/", job("queued")).wait()
    assert caught.value.problems == problems


def test_of_many_problems_a_job_says_how_many_there_are_and_gives_all() -> None:
    shown = [{"where": f"line {n}", "message": "no id"} for n in range(100)]
    failed = job("failed", problems=shown, problem_count=20_000)
    rest = ok({"next": None, "previous": None, "results": [{"where": "line 100", "message": "no id"}]})
    following = "http://s/api/v1/projects/a/jobs/7/problems/?cursor=cD0y"
    client, script, _ = scripted(ok(failed), ok({"next": following, "results": shown}), rest)
    found = Job(client._transport, "projects/a/jobs/7/", job("queued"))
    with pytest.raises(JobError) as caught:
        found.wait()
    assert (len(found.problems), found.problem_count, caught.value.problem_count) == (100, 20_000, 20_000)
    assert [entry["where"] for entry in found.all_problems()] == [f"line {n}" for n in range(101)]
    assert str(script.requests[1].url) == f"{SITE}/api/v1/projects/a/jobs/7/problems/"


def test_waiting_ends_when_it_should() -> None:
    client, _, _ = scripted(*[ok(job("running"))] * 50)
    with pytest.raises(WaitTimeoutError, match="not done after 0 seconds") as caught:
        Job(client._transport, "projects/a/jobs/7/", job("running")).wait(timeout=0)
    assert isinstance(caught.value, TimeoutError)


def test_a_run_is_waited_for_until_it_is_there_or_beyond() -> None:
    replies = [
        ok({"number": 1, "state": "preparing"}),
        ok({"next": None, "results": [job("running", kind="prepare_run", stage="fast", done=1, total=2)]}),
        ok({"number": 1, "state": "analysed"}),
    ]
    client, script, _ = scripted(*replies)
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "preparing"})
    assert run.wait_for("calibrating").state == "analysed"
    assert str(script.requests[1].url).endswith("/projects/a/jobs/?kind=prepare_run")
    with pytest.raises(ValueError, match="never 'finished'"):
        run.wait_for("finished")


def test_a_run_takes_in_what_came_later() -> None:
    taken = job("done", kind="take_in", result={"taken_in": 3, "people": 1})
    refused = problem(409, "There is nothing to take in.")
    client, script, _ = scripted(ok(job("queued", kind="take_in"), 202), ok(taken), refused)
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "complete"})
    assert run.take_in().wait().result == {"taken_in": 3, "people": 1}
    assert str(script.requests[0].url).endswith("/projects/a/runs/1/take-in/")
    with pytest.raises(ConflictError, match="nothing to take in"):
        run.take_in()


def test_a_run_whose_work_failed_is_not_waited_for() -> None:
    failed = job("failed", kind="prepare_run", error="The model is gone.")
    client, _, _ = scripted(ok({"number": 1, "state": "preparing"}), ok({"next": None, "results": [failed]}))
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "preparing"})
    with pytest.raises(JobError, match="The model is gone"):
        run.wait_for("calibrating")
    client, _, _ = scripted(ok({"number": 1, "state": "cancelled"}))
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "preparing"})
    with pytest.raises(JobError, match="cancelled"):
        run.wait_for("calibrating")


def test_people_are_waited_for() -> None:
    def seen(state: str, waiting: int) -> httpx.Response:
        part = {"open": waiting, "leased": 0, "total": 5}
        return ok({"number": 1, "state": state, "calibration": part, "labelling": None})

    undecided = {"open": 0, "leased": 0, "disagreeing": 1, "total": 5}
    differ = ok({"number": 1, "state": "calibrating", "calibration": undecided, "labelling": None})
    client, script, _ = scripted(seen("preparing", 0), seen("calibrating", 2), differ, seen("calibrating", 0))
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "preparing"})
    assert run.wait_for_labels().state == "calibrating"
    assert len(script.requests) == 4


def test_the_expert_is_waited_for_too() -> None:
    def seen(state: str, people: int, expert: int) -> httpx.Response:
        parts = {"labelling": {"open": people, "leased": 0, "total": 5}, "calibration": DONE}
        return ok({"number": 1, "state": state, "expert": {"open": expert, "leased": 0, "total": 3}, **parts})

    client, script, _ = scripted(seen("checking", 0, 1), seen("checking", 0, 0))
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "checking"})
    assert run.wait_for("checking").state == "checking"
    assert run.wait_for_labels().state == "checking"
    assert not script.replies
    replies = [seen("labelling", 1, 0), seen("labelling", 0, 1), seen("labelling", 0, 0)]
    client, script, _ = scripted(*replies)
    run = Run(client._transport, "projects/a/", {"number": 1, "state": "labelling"})
    run.wait_for_labels()
    assert not script.replies


def test_the_client_knows_every_state_of_a_run_in_its_order() -> None:
    states = [state.value for state in ServersRun.State]
    assert list(STATES) == [state for state in states if state != ServersRun.State.CANCELLED]
    assert {*ASKED, *JOB_OF_STATE} <= set(STATES)


def test_without_tqdm_progress_is_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    shown = progress_of("import", True)
    assert isinstance(shown, Lines)
    shown.show("Reading", 1200, 5000)
    shown.show("Reading", 1250, 5000)  # within the two seconds
    shown.show("Reading", 1300, 5000)
    shown.close()
    assert capsys.readouterr().err == "import: Reading: 1,200 of 5,000\nimport: Reading: 1,300 of 5,000\n"


def test_with_tqdm_progress_is_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    shown = progress_of("import", True)
    shown.show("Reading", 3, 9)
    shown.close()
    assert "import: Reading" in capsys.readouterr().err


def test_a_source_without_a_next_page_is_a_list_too() -> None:
    client, _, _ = scripted(ok({"slug": "a"}), ok({"results": [{"id": 1, "name": "fast"}]}))
    project = client.projects.get("a")
    assert [source.name for source in project.sources] == ["fast"]


PIXEL = b"\x89PNG and what follows"
DIGEST = hashlib.sha256(PIXEL).hexdigest()


def test_an_image_comes_from_the_project_whatever_host_the_item_names(tmp_path: Path) -> None:
    client, script, _ = scripted(
        ok({"slug": "a"}), httpx.Response(200, content=PIXEL), httpx.Response(200, content=PIXEL)
    )
    project = client.projects.get("a")
    item = {"id": 1, "image": f"https://elsewhere.example/api/v1/projects/b/images/{DIGEST}/"}
    assert project.image(item) == PIXEL
    assert str(script.requests[-1].url) == f"{SITE}/api/v1/projects/a/images/{DIGEST}/"
    assert project.save_image(item, tmp_path / "new" / "1.png").read_bytes() == PIXEL


def test_the_image_of_a_task_is_that_of_its_item() -> None:
    item = {"id": 1, "text": "", "image": f"/api/v1/projects/a/images/{DIGEST}/"}
    claimed = {"task": {"work_item": 3, "token": "t", "item": item}}
    client, script, _ = scripted(ok({"slug": "a"}), ok(claimed), httpx.Response(200, content=PIXEL))
    task = client.projects.get("a").queue().claim()
    assert task.image() == PIXEL
    assert str(script.requests[-1].url) == f"{SITE}/api/v1/projects/a/images/{DIGEST}/"


def test_a_wrong_image_and_none_are_told() -> None:
    client, _, _ = scripted(ok({"slug": "a"}), httpx.Response(200, content=b"cut off"))
    project = client.projects.get("a")
    with pytest.raises(ChecksumError):
        project.image({"id": 1, "image": f"/api/v1/projects/a/images/{DIGEST}/"})
    with pytest.raises(HypacError, match="no image"):
        project.image({"id": 1, "image": None})
