"""The client against a real server with a real worker: a project from its data to its certificate."""

import contextlib
import csv
import hashlib
import importlib.util
import io
import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from hypac_client import ChecksumError, Client, Delivery, NotAllowedError, Project
from tests.client.conftest import LiveSite
from tests.services.test_embedded import ROOT

EPSILON = 0.05


@dataclass
class Delivered:
    """What the example of the client's folder left behind."""

    example: ModuleType
    delivery: Delivery
    folder: Path
    said: str


@pytest.fixture(scope="session")
def delivered(live: LiveSite, tmp_path_factory: pytest.TempPathFactory) -> Delivered:
    file = ROOT / "clients/python/examples/whole_project.py"
    spec = importlib.util.spec_from_file_location("whole_project", file)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    folder = tmp_path_factory.mktemp("sums")
    annotators = {name: live.tokens[name] for name in ("bo", "cy")}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        delivery = example.whole_project(live.url, live.tokens["ada"], annotators, folder)
    return Delivered(example, delivery, folder, said.getvalue())


def kept(project: Project, delivered: Delivered) -> Delivery:
    """That delivery, as the server has it: other tests make further ones."""
    return next(one for one in project.deliveries() if one.id == delivered.delivery.id)


def test_from_a_csv_to_a_certified_delivery(live: LiveSite, delivered: Delivered) -> None:
    example = delivered.example
    assert "certified: At most 5 % of the labels" in delivered.said
    assert not [token for token in live.tokens.values() if token in delivered.said]

    # The files are the ones that the server names, and the certificate follows from its draw.
    folder = delivered.folder / "delivery"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        ".hypac.json",  # whose files they are
        "labels.csv",
        "labels.jsonl",
        "certificate.json",
        "draw.jsonl",
        "committed.jsonl",
        "answered.jsonl",
        "pilot.jsonl",
        "README.md",
        "manifest.json",
    }
    certificate = (folder / "certificate.json").read_bytes()
    checked = subprocess.run(
        [sys.executable, "-m", "routing.core.verify", folder / "certificate.json", folder / "draw.jsonl"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "OK: the certificate follows from its draw\n")

    # Each item is there once, in the order of the file, with the label that its source gave.
    rows = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    with (delivered.folder / "sums.csv").open(newline="") as file:
        items = list(csv.DictReader(file))
    assert [(row["external_id"], row["sum"]) for row in rows] == [(item["id"], item["sum"]) for item in items]
    digits = {"last digit": 1, "last two digits": 2, "person": 4}
    names = {row["label"]: row["label_name"] for row in rows}
    assert [row["label_name"] for row in rows] == [
        example.judged(row["sum"], digits[row["source"]]) for row in rows
    ]
    assert {row["source"] for row in rows} <= set(digits)
    assert {row["certificate_id"] for row in rows} == {hashlib.sha256(certificate).hexdigest()}
    assert names == {"right": "right", "wrong": "wrong"}

    # Twice what is certified is out of reach of bad luck.
    wrong = sum(row["label_name"] != example.judged(row["sum"], 4) for row in rows)
    assert wrong / len(rows) < 2 * EPSILON
    people = sum(row["source"] == "person" for row in rows)
    assert 100 < people < len(rows), "the asked items at least, and not all"

    # What the delivery says, lists and lines say too.
    with live.client() as client:
        project = client.projects.get("sums")
        assert [row["external_id"] for row in project.items(page_size=150)] == [item["id"] for item in items]
        assert list(project.items(stream=True)) == list(project.items(page_size=1000))
        by_people = {row["external_id"] for row in rows if row["source"] == "person"}
        assert {label["external_id"] for label in project.labels(stream=True)} == by_people
        assert len(list(project.labels(page_size=7))) == len(by_people)
        assert project.run(1).certified
        assert project.run(1).certificate_file() == certificate
        assert project.run(1).draw_file() == (folder / "draw.jsonl").read_bytes()
        table = kept(project, delivered).to_dataframe()
        assert table["label"].tolist() == [row["label"] for row in rows]
        answers = project.predictions(stream=True)
        assert len({row["external_id"] for row in itertools.islice(answers, 600)}) == 600


def test_a_certificate_that_the_server_does_not_name_is_refused(live: LiveSite, delivered: Delivered) -> None:
    with live.client() as client:
        delivery = kept(client.projects.get("sums"), delivered)
        assert delivery["certificate"] == hashlib.sha256(delivery.read("certificate.json")).hexdigest()
        assert delivery.certificate == json.loads(delivery.read("certificate.json"))
        delivery.data["certificate"] = "0" * 64
        with pytest.raises(ChecksumError, match="not the certificate 000"):
            delivery.certificate  # noqa: B018 - asks for it


def test_a_download_goes_on_behind_what_is_there(
    live: LiveSite, delivered: Delivered, tmp_path: Path
) -> None:
    with live.client() as client:
        delivery = kept(client.projects.get("sums"), delivered)
        whole = delivery.read("labels.jsonl")
        part = f"labels.jsonl.{hashlib.sha256(whole).hexdigest()[:16]}.part"
        (tmp_path / part).write_bytes(whole[:1000])
        asked = []
        client._transport._http.event_hooks = {"response": [asked.append]}
        delivery.download(tmp_path)
    assert (tmp_path / "labels.jsonl").read_bytes() == whole
    sizes = {response.url.path.rpartition("/")[2]: response.headers["Content-Length"] for response in asked}
    assert sizes["labels.jsonl"] == str(len(whole) - 1000)


def test_annotators_see_no_answer_of_a_model(live: LiveSite, delivered: Delivered) -> None:
    with Client(live.url, live.tokens["bo"]) as annotator:
        project = annotator.projects.get("sums")
        for look in (project.predictions, project.items, project.deliveries):
            with pytest.raises(NotAllowedError):
                next(look())
        labels = list(project.labels())
        assert {label["annotator"] for label in labels} == {"bo"}
        assert project.label(labels[0]["id"]) == labels[0]


def test_an_item_is_read_by_its_id(live: LiveSite, delivered: Delivered) -> None:
    with live.client() as client:
        project = client.projects.get("sums")
        first = next(project.items(columns=True))
        assert project.item(first["id"], columns=True) == first


def test_a_delivery_of_what_is_new_and_one_that_is_filtered(live: LiveSite, delivered: Delivered) -> None:
    with live.client() as client:
        project = client.projects.get("sums")
        run = project.run(1)
        base = kept(project, delivered)
        whole = base.to_dataframe()
        for since in (base, base.id):
            part = run.deliver(["jsonl"], since=since, timeout=300)
            assert (part["rows"], part["items"], part["since"]) == (0, len(whole), base.id)
            assert part.to_dataframe().empty
        by_people = run.deliver(["csv", "jsonl"], filters={"by": "person"}, timeout=300)
        assert by_people["part"].startswith(f"A part: {by_people['rows']:,} of {len(whole):,} items.")
        expected = whole.loc[whole["source"] == "person", "external_id"].tolist()
        assert by_people.to_dataframe()["external_id"].tolist() == expected
        assert by_people.certificate == base.certificate
