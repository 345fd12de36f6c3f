"""A whole run with an expert through the client: from its plan to its delivery, by four people's tokens."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hypac_client import ConflictError, Delivery, Project, Run
from tests.client.conftest import LiveSite
from tests.services.test_embedded import ROOT

ITEMS = 240
RIGHT, WRONG = "right", "wrong"
PLAN = {
    **{"epsilon": "0.1", "alpha": "0.2", "m": 120, "reference": "expert", "expert": "cy"},
    **{"expert_cost": "5", "roster": {"bo": "2/3", "dee": "1/3"}, "recheck_share": "0.6"},
    **{"audit_share": "0.5", "accepted_error": "0.1"},
}


def sums() -> list[dict[str, str]]:
    """Some are right; the others are off by 1 to 9, by tens, or by 100, which no model sees."""
    chance = random.Random(5)
    rows = []
    for number in range(ITEMS):
        one, other = chance.randrange(100, 500), chance.randrange(100, 500)
        off = chance.choices([0, chance.randrange(1, 10), 10 * chance.randrange(1, 10), 100], [4, 2, 2, 3])[0]
        rows.append({"id": f"sum-{number:03}", "sum": f"{one} + {other} = {one + other + off}"})
    return rows


def judged(text: str, digits: int = 4) -> str:
    """By so many of the last digits."""
    left, _, claimed = text.partition(" = ")
    return RIGHT if (sum(map(int, left.split(" + "))) - int(claimed)) % 10**digits == 0 else WRONG


def hasty(text: str) -> str:
    """As an annotator judges, who is wrong on one in forty."""
    true = judged(text)
    return true if sum(map(ord, text)) % 40 else {RIGHT: WRONG, WRONG: RIGHT}[true]


@dataclass
class Journey:
    """What the run was like on its way, and what came out."""

    folder: Path
    run: Run | None = None
    delivery: Delivery | None = None
    states: list[str] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)
    labelled: dict[str, int] = field(default_factory=dict)
    handed_over: int = 0


def set_up(live: LiveSite, project: Project, rows: list[dict[str, str]]) -> None:
    for name in ("bo", "cy", "dee"):
        project.invite(name, "annotator")
        with live.client(name) as client:
            next(one for one in client.invitations() if one["project"] == project["name"]).accept()
    project.import_data(rows, id_column="id", text_column="sum").wait(timeout=300)
    for name, digits in (("last digit", 1), ("last two digits", 2)):
        said = [(row["id"], judged(row["sum"], digits)) for row in rows]
        answers = [
            {
                "external_id": item,
                "label": label,
                "confidence": 0.99 if label == WRONG else 0.5 + 0.2 * digits,
            }
            for item, label in said
        ]
        source = project.sources.add(
            name, params={"model": name, "revision": "1"}, cost_per_label=f"0.{digits:03}"
        )
        source.upload_predictions(answers).wait(timeout=300)


@pytest.fixture(scope="module")
def journey(live: LiveSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    seen = Journey(tmp_path_factory.mktemp("expert"))

    def label(slug: str, name: str, judge: Callable[[str], str]) -> None:
        with live.client(name) as client:
            for task in client.projects.get(slug).queue():
                task.submit(judge(task.text))
                seen.labelled[name] = seen.labelled.get(name, 0) + 1

    with live.client() as client:
        project = client.projects.create("Sums and an expert", choices=[RIGHT, WRONG], human_cost="0.50")
        set_up(live, project, sums())
        seen.plan = project.plan(**PLAN)
        run = seen.run = project.start_run(**PLAN, accept_unusable=True)  # its scores take few values
        run.wait_for("calibrating", timeout=300)
        seen.states.append(run.state)
        with pytest.raises(ConflictError):
            run.ask_expert()
        for name in ("cy", "bo", "dee"):  # nothing waits for the expert yet
            label(project.slug, name, hasty)
        run.wait_for_labels(timeout=300).ask_expert().wait(timeout=300)
        seen.states.append(run.wait_for("checking", timeout=300).state)
        label(project.slug, "cy", judged)
        run.wait_for_labels(timeout=300).analyse().wait(timeout=300)
        seen.states.append(run.refresh().state)
        run.route().wait(timeout=300)
        seen.states.append(run.wait_for("labelling", timeout=300).state)
        seen.handed_over = run.hand_over("dee")
        for name in ("bo", "cy"):  # each of bo's labels may bring cy a second look, or an audit
            label(project.slug, name, hasty if name == "bo" else judged)
        seen.states.append(run.wait_for_labels(timeout=300).wait_for("complete", timeout=300).state)
        seen.delivery = run.deliver(["jsonl"], timeout=300)
        seen.delivery.download(seen.folder)
        yield seen


def test_it_goes_through_its_states_as_it_was_planned(journey: Journey) -> None:
    assert journey.plan["certifiable"]
    assert journey.states == ["calibrating", "checking", "analysed", "labelling", "complete"]
    assert journey.run is not None
    fields = ("reference", "expert_name", "expert_cost", "recheck_share", "audit_share", "accepted_error")
    assert [journey.run[name] for name in fields] == ["expert", "cy", "5.00", 0.6, 0.5, 0.1]


def test_its_roster_says_who_labelled_and_who_left(journey: Journey) -> None:
    assert journey.run is not None
    roster = {entry["user"]: entry for entry in journey.run.roster()}
    assert {name: (entry["role"], entry["share"]) for name, entry in roster.items()} == {
        **{"bo": ("annotator", "2/3"), "dee": ("annotator", "1/3"), "cy": ("expert", "1/1")}
    }
    assert [name for name, entry in roster.items() if entry["left_at"]] == ["dee"]
    assert journey.labelled["bo"] > journey.labelled["dee"] > 0
    with pytest.raises(ConflictError):
        journey.run.hand_over("bo")


def test_what_is_delivered_follows_from_its_certificate_and_counts_peoples_mistakes(journey: Journey) -> None:
    names = ("certificate.json", "draw.jsonl")
    checked = subprocess.run(
        [sys.executable, "-m", "routing.core.verify", *(journey.folder / name for name in names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "OK: the certificate follows from its draw\n")
    certificate = json.loads((journey.folder / "certificate.json").read_text())
    assert certificate["result"]["certified"]
    assert "what cy would give" in certificate["result"]["sentence"]

    rows = [json.loads(line) for line in (journey.folder / "labels.jsonl").read_text().splitlines()]
    assert len(rows) == ITEMS
    by_expert = [row for row in rows if row["source"] == "expert"]
    assert all(row["label_name"] == judged(row["sum"]) for row in by_expert)
    assert {row["external_id"] for row in by_expert} == {
        row["external_id"] for row in rows if row["expert_saw"]
    }
    assert sum(row["expert_saw"] == "no_answer" for row in rows) == journey.handed_over > 0
    assert len(by_expert) == journey.labelled["cy"]
    assert sum(row["label_name"] != judged(row["sum"]) for row in rows) <= 0.1 * ITEMS
