"""Single promises of the client, kept against a real server."""

import json
from typing import Any

import httpx
import pandas as pd
import pytest

from hypac_client import (
    AuthenticationError,
    Client,
    ConflictError,
    HypacError,
    JobError,
    NotAllowedError,
    NotFoundError,
    Project,
    Retries,
)
from hypac_client.command import main
from tests.client.conftest import LiveSite


class LosesAnswers(httpx.BaseTransport):
    """Every request arrives; the first answer to a write is lost on its way back."""

    def __init__(self) -> None:
        self.real = httpx.HTTPTransport()
        self.lost: set[str] = set()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self.real.handle_request(request)
        key = request.headers.get("Idempotency-Key")
        if key and key not in self.lost:
            self.lost.add(key)
            response.read()
            response.close()
            raise httpx.ReadError("lost")
        return response


@pytest.fixture
def project(live: LiveSite, request: pytest.FixtureRequest) -> Any:
    with live.client() as client:
        made = client.projects.create(request.node.name[:60], choices=["yes", "no"])
        yield made


def test_what_is_there_is_looked_at_changed_and_removed(live: LiveSite, project: Project, tmp_path) -> None:
    with live.client() as client:
        assert client.me()["username"] == "ada"
    assert project.update(guidelines="Look twice.")["guidelines"] == "Look twice."
    assert project.refresh()["guidelines"] == "Look twice."
    table = tmp_path / "reviews.csv"
    table.write_text("sep=;\nid;text\na;good\n")
    seen = project.preview(table)
    assert (seen["format"], seen["rows"]) == ("csv_semicolon", [{"id": "a", "text": "good"}])
    assert not list(project.items())
    source = project.sources.add("ours", params={"model": "ours", "revision": "1"}, cost_per_label="0.002")
    changed = next(iter(project.sources)).update(name="theirs")
    assert (changed.name, changed["params"]) == ("theirs", source.refresh()["params"])
    assert float(changed["cost_per_label"]) == 0.002
    changed.remove()
    assert not list(project.sources)
    hook = project.webhooks.add("https://hooks.example.org/x", ["run.analysed"])
    assert hook.secret.startswith("whsec_")
    assert hook.rotate() != hook.update(active=False).secret
    assert [one["active"] for one in project.webhooks] == [False]
    assert list(hook.deliveries()) == []
    hook.remove()
    assert not list(project.webhooks)
    project.delete()
    with pytest.raises(NotFoundError):
        project.refresh()


def test_the_command_tells_results_and_errors_as_json(
    live: LiveSite, project: Project, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("HYPAC_URL", live.url)
    monkeypatch.setenv("HYPAC_TOKEN", live.tokens["ada"])
    lines = tmp_path / "plain.txt"
    lines.write_text("one\ntwo\n")
    slug = project.slug
    assert main(["--json", "import", slug, str(lines)]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 2
    assert main(["--json", "preview", slug, str(lines)]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "lines"
    assert main(["projects"]) == 0
    assert f"slug={slug}" in capsys.readouterr().out
    assert main(["--json", "import", slug, str(lines), "--text-column", "words"]) == 1
    out, err = capsys.readouterr()
    told = json.loads(err)
    assert (out, told["error"], told["status"], told["field"]) == ("", "InvalidError", 400, "text_column")
    assert main(["--json", "request", "get", "projects/nowhere/"]) == 1
    assert json.loads(capsys.readouterr().err)["status"] == 404
    assert main(["predictions", slug, "ours", str(lines)]) == 1
    assert "no source 'ours'" in capsys.readouterr().err
    assert main(["--json", "import", slug, str(tmp_path / "none.csv")]) == 1
    assert json.loads(capsys.readouterr().err)["error"] == "FileNotFoundError"
    monkeypatch.setenv("HYPAC_TOKEN", "")
    assert main(["me"]) == 2


def test_what_is_sent_twice_is_done_once(live: LiveSite) -> None:
    lossy = LosesAnswers()
    with Client(live.url, live.tokens["ada"], transport=lossy, retries=Retries(first_pause=0.01)) as client:
        project = client.projects.create("Sent twice", choices=["yes", "no"])
        rows = ({"id": f"i{n}", "text": f"text {n}"} for n in range(50))
        project.import_data(rows, id_column="id", text_column="text").wait(timeout=300)
        project.invite("cy", "annotator")
    assert len(lossy.lost) == 3
    with live.client() as client:
        assert [one.slug for one in client.projects if one["name"] == "Sent twice"] == ["sent-twice"]
        project = client.projects.get("sent-twice")
        assert len(list(project.items())) == 50
        assert len(list(project.jobs(kind="import"))) == 1


def test_types_of_a_table_arrive(project: Project) -> None:
    table = pd.DataFrame(
        {
            "id": ["a", "b"],
            "text": ["שלום\u2028🙂", "line\nline"],
            "stars": pd.array([5, None], dtype="Int64"),
            "share": [0.25, 1.0],
            "seen": [True, False],
            "tags": [["x", "y"], []],
        }
    )
    project.import_data(table, id_column="id", text_column="text").wait(timeout=300)
    first, second = project.items(columns=True)
    assert first["text"] == "שלום\u2028🙂"
    assert second["text"] == "line\nline"
    assert {name: first["data"][name] for name in ("stars", "share", "seen", "tags")} == {
        **{"stars": 5, "share": 0.25, "seen": True, "tags": ["x", "y"]},
    }
    assert second["data"]["stars"] is None
    assert type(second["data"]["share"]) is float


def test_labels_are_given_skipped_taken_back_and_corrected(live: LiveSite, project: Project) -> None:
    queue = project.queue()
    assert queue.claim() is None
    assert queue.undo() is None
    rows = [{"id": f"i{n}", "text": str(n)} for n in range(12)]
    project.import_data(rows, id_column="id", text_column="text").wait(timeout=300)
    answers = [{"external_id": f"i{n}", "label": "yes", "confidence": n / 12} for n in range(12)]
    params = {"model": "mine", "revision": "1"}
    project.sources.add("mine", params=params, cost_per_label="1").upload_predictions(answers).wait(
        timeout=300
    )
    plan = {"epsilon": "0.3", "alpha": "0.3", "m": 12, "p": "1"}
    run = project.start_run(**plan, anyway=True).wait_for("calibrating", timeout=300)

    tasks = iter(queue)
    first = next(tasks)
    first.submit("yes", comment="sure")
    second = next(tasks)
    second.skip("unclear")
    tasks.close()  # type: ignore[attr-defined]
    back = queue.undo()
    assert back is not None
    assert back.data["work_item"] == second.data["work_item"]
    back.submit("no")
    last = queue.undo()
    assert last is not None
    assert last.correcting is not None
    assert last.submit("yes")["value"] == "yes"
    with pytest.raises(ConflictError):
        run.analyse()
    for task in queue:
        task.submit("yes")
    run.wait_for_labels(timeout=300)
    run.analyse().wait(timeout=300)
    assert run.refresh().state == "analysed"
    assert run.sentence
    with pytest.raises(ConflictError):
        run.analyse()


def test_refusals_say_what_is_wrong(live: LiveSite, project: Project) -> None:
    with pytest.raises(HypacError) as caught:
        project.plan(epsilon="7", alpha="0.1", m=10, p="1")
    assert caught.value.status == 400
    with pytest.raises(HypacError, match="boundd") as caught:
        project.plan(epsilon="0.1", alpha="0.1", m=10, p="1", boundd="x")
    assert caught.value.field == "boundd"
    with pytest.raises(HypacError, match="colour"):
        next(project.items(colour="red"))
    with pytest.raises(NotFoundError):
        project.run(99)
    with pytest.raises((HypacError, JobError), match="nowhere"):
        project.import_data([{"id": "1", "text": "a"}], id_column="nowhere", text_column="text").wait(
            timeout=300
        )


def test_who_may_not_is_told_so(live: LiveSite, project: Project) -> None:
    invited = project.invite("cy", "annotator")
    assert (invited["username"], invited["state"]) == ("cy", "open")
    with live.client("cy") as annotator:
        with pytest.raises(NotFoundError):
            annotator.projects.get(project.slug)
        mine = next(one for one in annotator.invitations() if one["project"] == project["name"])
        assert (mine["role"], mine["invited_by"], mine.accept()) == ("annotator", "ada", project.slug)
        with pytest.raises(ConflictError):
            mine.decline()
    with Client(live.url, "0" * 64) as nobody, pytest.raises(AuthenticationError) as caught:
        list(nobody.projects)
    assert "0" * 64 not in str(caught.value)
    with live.client("bo") as stranger, pytest.raises(NotFoundError):
        stranger.projects.get(project.slug)
    with live.client("cy") as annotator, pytest.raises(NotAllowedError):
        list(annotator.projects.get(project.slug).items())


def test_other_spellings_are_read_and_a_source_is_looked_at(project: Project) -> None:
    project.import_data(
        [{"id": f"i{n}", "text": str(n)} for n in range(20)], id_column="id", text_column="text"
    ).wait(timeout=300)
    source = project.sources.add("mine", params={"model": "mine"}, cost_per_label="1")
    answers = [{"external_id": f"i{n}", "label": "JA", "confidence": 0.5} for n in range(20)]
    assert source.mend(capitals=True, labels={"ja": "yes"})["labels"] == {"ja": "yes"}
    source.upload_predictions(answers).wait(timeout=300)
    health = source.health()
    assert health["usability"]["usable"] == 20
    assert {one["label"]: one["count"] for one in health["classes"]} == {"yes": 20, "no": 0}
