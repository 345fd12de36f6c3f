"""`deliver --to FOLDER --since newest`: what is new is told against what the folder holds."""

import errno
import json
import os
from pathlib import Path

import pytest

from routing.delivery import folder as delivery_folder
from routing.models import Delivery
from testbed.worlds import World, make_world
from tests.routing.delivery.test_delivery_parts import Lines, lines_of, made, told
from tests.routing.runs.test_script_commands import ended, run as run_command

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
RECORD = delivery_folder.NAME


def words(world: World, folder: Path, *more: object) -> tuple[object, ...]:
    return (
        "deliver",
        world.project.slug,
        1,
        "--partial",
        "--formats",
        "jsonl",
        "--here",
        "--to",
        folder,
        *more,
    )


def into(world: World, folder: Path, *more: object) -> Lines:
    """What stands in the folder after it."""
    run_command(*words(world, folder, *(more or ("--since", "newest"))), user=world.manager.username)
    lines = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    return {line["external_id"]: line for line in lines}


def newest() -> Delivery:
    return Delivery.objects.order_by("-pk")[0]


def test_each_folder_is_told_what_is_new_in_it(routed, tmp_path) -> None:
    world, run = routed
    first, other = tmp_path / "first", tmp_path / "other"
    assert len(into(world, first)) == 100
    world.label(limit=3)
    made(world, run, since=newest())  # gone elsewhere: nothing of it is in the folder
    assert len(into(world, first)) == 3
    assert len(into(world, first)) == 0
    assert len(into(world, other)) == 100
    world.label(limit=2)
    (first / "labels.jsonl").unlink()  # as whoever takes the files away
    assert len(into(world, first)) == 2
    assert json.loads((first / RECORD).read_text())["delivery"] == newest().pk


def test_what_could_not_be_written_is_told_in_the_next_night(routed, tmp_path, monkeypatch) -> None:
    world, run = routed
    held = into(world, tmp_path)
    world.label(limit=5)
    write, left = delivery_folder._write, 2

    def full(stored: object, path: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(stored, path)

    monkeypatch.setattr(delivery_folder, "_write", full)
    code, reason = ended(*words(world, tmp_path, "--since", "newest"), user=world.manager.username)
    lost = newest()
    assert (code, lost.rows) == (1, 5)
    assert f"(id {lost.pk}) was made" in reason
    assert "No space left on device" in reason
    assert f"/api/v1/projects/{world.project.slug}/deliveries/{lost.pk}.zip" in reason
    assert f"/projects/{world.project.slug}/deliveries/ " in reason
    monkeypatch.undo()
    world.label(limit=1)
    news = into(world, tmp_path)
    assert len(news) == 6
    assert {name: told(line) for name, line in {**held, **news}.items()} == {
        name: told(line) for name, line in lines_of(made(world, run)).items()
    }


def test_the_addresses_of_files_that_were_not_written_are_right(
    routed, tmp_path, monkeypatch, client
) -> None:
    world, _run = routed

    def full(stored: object, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(delivery_folder, "_write", full)
    _code, reason = ended(*words(world, tmp_path), user=world.manager.username)
    client.force_login(world.manager)
    addresses = [word.rstrip(".") for word in reason.split() if word.startswith(("/projects/", "/api/"))]
    assert [client.get(address).status_code for address in addresses] == [200, 200]


@pytest.mark.parametrize("more", [("--filter", "by=person"), ("--since", "{base}")], ids=["filter", "since"])
def test_after_a_part_that_does_not_go_on_from_what_is_there_all_is_told(routed, tmp_path, more) -> None:
    world, run = routed
    base = made(world, run)
    into(world, tmp_path)
    world.label(limit=2)
    into(world, tmp_path, *(word.format(base=base.pk) for word in more))
    assert not (tmp_path / RECORD).exists()
    assert len(into(world, tmp_path)) == 100
    assert len(into(world, tmp_path)) == 0


def test_a_record_that_says_nothing_or_something_else_asks_for_all(routed, tmp_path) -> None:
    world, _run = routed
    into(world, tmp_path)
    right = (tmp_path / RECORD).read_text()
    for text in ("", "[]", "{}", "{", right.replace(newest().given.sha256, "0" * 64), '{"delivery": 1}'):
        (tmp_path / RECORD).write_text(text)
        assert len(into(world, tmp_path)) == 100
        assert len(into(world, tmp_path)) == 0


def test_a_folder_of_another_project_is_refused_before_anything_is_made(routed, tmp_path) -> None:
    world, _run = routed
    into(world, tmp_path)
    other = make_world(60)
    other.routed(m=30)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for more in ((), ("--since", "newest")):
        code, reason = ended(*words(other, tmp_path, *more), user=other.manager.username)
        assert (code, f"holds a delivery of the project “{world.project.slug}”" in reason) == (1, True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert not Delivery.objects.filter(run__project=other.project).exists()
