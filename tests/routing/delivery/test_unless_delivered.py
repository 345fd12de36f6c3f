"""Nights in which nothing has changed: no delivery is made again, and nothing of an earlier one is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from routing.delivery.queries import deliveries_of, delivery_reports
from routing.models import Delivery, Run
from routing.runs.due import undelivered_run
from testbed.worlds import World
from tests.routing.runs.test_script_commands import run as run_command

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def night(world: World, *more: object) -> dict[str, Any]:
    words = ("deliver", world.project.slug, 1, "--partial", "--unless-delivered", "--here", "--json")
    told: dict[str, Any] = json.loads(run_command(*words, *more, user=world.manager.username))
    return told


def test_what_is_the_same_is_not_delivered_again(routed: tuple[World, Run]) -> None:
    world, _run = routed
    first = night(world)
    again = night(world)
    assert (first["made"], again["made"]) == (True, False)
    assert again["delivery"] == first["delivery"] == {"id": Delivery.objects.get().pk, "number": 1}
    assert night(world, "--formats", "jsonl")["made"]  # other files
    assert night(world, "--filter", "by=person")["made"]  # other rows
    assert not night(world, "--formats", "jsonl")["made"]
    world.label(limit=1)
    assert night(world)["made"]
    assert night(world, "--since", "newest")["made"] is False
    assert Delivery.objects.count() == 4
    # What is told of the deliveries is what came of those that were made.
    reports = delivery_reports(world.project, deliveries_of(world.project))
    assert all(report.partial for report in reports)


def test_a_complete_run_has_a_delivery_of_its_own(routed: tuple[World, Run]) -> None:
    world, run = routed
    world.label(limit=1)
    night(world)
    world.give_up_all()  # no label is new
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert night(world, "--since", "newest")["made"]
    assert undelivered_run(project=Project.objects.get(pk=world.project.pk)) is None


def test_files_are_written_where_the_folder_lacks_them(routed: tuple[World, Run], tmp_path: Path) -> None:
    world, _run = routed
    night(world)
    to = ("--to", tmp_path / "out")
    assert len(night(world, *to)["files"]) > 1
    assert night(world, *to)["files"] == []
    (tmp_path / "out" / "labels.csv").unlink()  # taken away
    told = night(world, *to)
    assert (told["made"], told["files"]) == (False, [])
    world.label(limit=1)
    part = (*to, "--since", "newest", "--formats", "jsonl")
    assert night(world, *part)["made"]
    idle = night(world, *part)
    assert (idle["made"], idle["files"]) == (False, [])
    assert len((tmp_path / "out" / "labels.jsonl").read_text().splitlines()) == 1


def test_what_an_earlier_delivery_left_is_removed_and_nothing_else(
    routed: tuple[World, Run], tmp_path: Path
) -> None:
    world, _run = routed
    (tmp_path / "notes.txt").write_text("ours")
    night(world, "--formats", "csv,jsonl,huggingface,xlsx", "--to", tmp_path)
    (tmp_path / "labels.csv").write_text("changed by somebody")
    before = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"labels.jsonl", "labels.xlsx"} <= before
    night(world, "--formats", "json", "--to", tmp_path)
    after = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())["files"]
    assert after == {*manifest, "manifest.json", ".hypac.json", "notes.txt", "labels.csv"}
    assert (tmp_path / "labels.csv").read_text() == "changed by somebody"


def test_a_manifest_that_names_files_outside_of_the_folder_removes_nothing(
    routed: tuple[World, Run], tmp_path: Path
) -> None:
    world, _run = routed
    folder, other = tmp_path / "out", tmp_path / "theirs"
    folder.mkdir()
    other.write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (folder / "manifest.json").write_text(json.dumps({"files": {"../theirs": {"bytes": 0, "sha256": empty}}}))
    night(world, "--to", folder)
    assert other.exists()


def test_programs_are_told_whether_a_delivery_was_made(client: Client, routed: tuple[World, Run]) -> None:
    world, _run = routed
    client.force_login(world.manager)
    address = reverse("api_deliver", args=[world.project.slug, 1])
    made = []
    for _night in range(2):
        answer = client.post(address, {"unless_delivered": True}, content_type="application/json")
        assert answer.status_code == 202
        made.append(world.do("deliver_run").result)
    assert [result["made"] for result in made] == [True, False]
    assert made[0]["delivery"] == made[1]["delivery"] == Delivery.objects.get().pk
