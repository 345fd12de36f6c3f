"""A nightly script of `hypac` alone, against a real server with a real worker: new items from a folder, two
models, a draw, labels from another program, a certificate, a delivery, and a night in which nothing has come.
"""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from hypac_client.command import main
from tests.client.conftest import LiveSite

ITEMS = 120


@pytest.fixture
def hypac(live: LiveSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("HYPAC_URL", live.url)
    monkeypatch.setenv("HYPAC_TOKEN", live.tokens["ada"])

    def go(*words: object, status: int = 0) -> Any:
        """What the command tells, as JSON."""
        ended = main(["--json", *map(str, words)])
        out, err = capsys.readouterr()
        assert ended == status, err
        return json.loads(out or err)

    return go


def write(folder: Path, names: range) -> dict[str, str]:
    """A night's files; what is true of each item."""
    chance = random.Random(names.start)
    truth = {f"r-{n}": chance.choice(["good", "bad"]) for n in names}
    with (folder / "items.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["review", "text"])
        rows.writerows([name, f"It was {word}: {name}"] for name, word in truth.items())
    for model, error in (("fast", 0.3), ("slow", 0.1)):
        lines = []
        for name, word in truth.items():
            u = chance.random()
            wrong = chance.random() < error * u
            label = word if not wrong else "good" if word == "bad" else "bad"
            lines.append(json.dumps({"review": name, "label": label, "confidence": round(1 - u / 2, 4)}))
        (folder / f"{model}.jsonl").write_text("\n".join(lines) + "\n")
    return truth


def send(hypac: Any, slug: str, folder: Path) -> None:
    hypac("import", slug, folder / "items.csv", "--id-column", "review", "--text-column", "text", "--strict")
    for model in ("fast", "slow"):
        hypac("predictions", slug, model, folder / f"{model}.jsonl", "--id-column", "review", "--strict")


def labelled_elsewhere(hypac: Any, slug: str, file: Path, truth: dict[str, str], *more: str) -> int:
    """Have everything labelled in another program that waits there; how much that was."""
    count = int(hypac("work", slug, "newest", file, *more)["items"])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    answers = [{"item": one["item"], "value": truth[one["name"]], "annotator": "bo"} for one in rows]
    if answers:
        file.write_text(json.dumps(answers))
        assert hypac("take-back", slug, "newest", file, "--strict", *more)["stored"] == count
    return count


def test_nights_from_a_folder_to_a_delivery(live: LiveSite, hypac: Any, tmp_path: Path) -> None:
    with live.client() as client:
        project = client.projects.create("Nights", choices=["good", "bad"])
        for model, cost in (("fast", "0.001"), ("slow", "0.01")):
            project.sources.add(model, params={"model": model, "revision": "1"}, cost_per_label=cost)
        slug = project.slug
    hypac("invite", slug, "bo", "annotator")
    with live.client("bo") as bo:
        [invitation] = [one for one in bo.invitations() if one["project"] == "Nights"]
        invitation.accept()
    truth = write(tmp_path, range(ITEMS))
    send(hypac, slug, tmp_path)
    start = ("start", slug, "epsilon=0.1", "alpha=0.1", "m:=60", "p=0.9", "--anyway", "--accept-unusable")
    due = ("--if-new-items", "--unless-under-way", "--unless-undelivered")
    assert hypac(*start, *due)["state"] == "calibrating"
    assert "<Choices" in hypac("label-config", slug)
    assert hypac("analyse", slug, "newest", status=3)["error"] == "NotYetError"
    file, out = tmp_path / "work.ndjson", tmp_path / "out"
    assert labelled_elsewhere(hypac, slug, file, truth, "--part", "calibration") > 40
    hypac("analyse", slug, "newest")
    routed = hypac("route", slug, "newest")
    if routed["left"]:
        assert hypac("deliver", slug, "newest", out, "--complete", status=3)["error"] == "NotYetError"
        labelled_elsewhere(hypac, slug, file, truth)
    deliver = ("deliver", slug, "newest", out, "--complete", "--unless-delivered")
    made = hypac(*deliver)
    assert (made["made"], made["number"]) == (True, 1)
    # A night in which nothing has come: each step is done already.
    send(hypac, slug, tmp_path)
    assert hypac(*start, *due)["started"] is False
    assert hypac("analyse", slug, "newest")["state"] == "complete"
    assert hypac("route", slug, "newest")["left"] == 0
    idle = hypac(*deliver)
    assert (idle["made"], idle["delivery"], idle["files"]) == (False, made["delivery"], [])
    # One in which answers of a model are late.
    (tmp_path / "second").mkdir()
    write(tmp_path / "second", range(ITEMS, 2 * ITEMS))
    items = ("--id-column", "review", "--text-column", "text")
    hypac("import", slug, tmp_path / "second/items.csv", *items)
    late = hypac(*start, *due, status=1)
    assert (late["field"], f"for {ITEMS} items" in late["detail"]) == ("accept_missing", True)
