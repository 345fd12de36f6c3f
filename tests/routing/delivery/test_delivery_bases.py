"""What a delivery of what is new may build on, and what it tells then."""

import json
import re
from typing import Any

import pytest

from annotation.common.files import open_file
from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.undo import start_undo
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Job, Project
from routing.delivery.deliver import deliver
from routing.delivery.formats import FORMATS
from routing.delivery.parts import bases_of, newest_base
from routing.models import Run
from routing.runs.due import undelivered_run
from testbed.worlds import World, make_world
from tests.annotation.imports.test_imported_labels import choice
from tests.annotation.imports.test_imports import store
from tests.routing.delivery.test_delivery_parts import add_items, lines_of, made, new_in

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


@pytest.fixture
def routed() -> tuple[World, Run]:
    world = make_world(100)
    return world, world.routed(m=40)


def labelled(number: int, text: str, label: str) -> dict[str, Any]:
    return {"id": number, "data": {"text": text}, "annotations": [choice(label)]}


def imported(project: Project, *tasks: dict[str, Any]) -> Job:
    job = start_import(
        project=project,
        user=project.created_by,
        stored_file=store(project, json.dumps(tasks), "tasks.json"),
        mapping=ColumnMapping(text_column="text"),
        keep_labels=True,
    )
    assert jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_items_in_the_places_of_those_of_an_import_that_was_taken_back_are_new(routed) -> None:
    world, run = routed
    wrong = imported(world.project, labelled(9001, "a", "cat"), labelled(9002, "b", "dog"))
    base = made(world, run)
    before = lines_of(base)
    assert jobs.run(start_undo(job=wrong, user=world.manager).pk)
    imported(world.project, labelled(9101, "c", "cat"), labelled(9102, "d", "dog"))
    part, after = lines_of(made(world, run, since=base)), lines_of(made(world, run))
    assert {"9101", "9102"} == part.keys()
    assert part == new_in(after, before)


def test_a_run_for_a_population_builds_on_its_own_deliveries_alone(routed, client) -> None:
    world, first = routed
    world.finish()
    base = made(world, first)
    add_items(world, 60)
    second = world.complete(m=30, target="population")
    assert newest_base(second) is None
    with pytest.raises(InputError, match="would be told as gone") as caught:
        deliver(run=second, user=world.manager, since=base)
    assert caught.value.where == "since"
    own = made(world, second)
    assert list(bases_of(second)) == [own]
    assert made(world, second, since=own).rows == 0
    # The other way round the first run has its place for all of its labels.
    assert list(bases_of(first))[-1] == base
    client.force_login(world.manager)
    page = client.get(f"/projects/{world.project.slug}/deliveries/").content.decode()
    bases = re.findall(r">(Delivery \d of run \d), ", page)
    assert bases == ["Delivery 2 of run 2", "Delivery 1 of run 2"]


def test_a_run_of_which_filters_found_a_part_is_not_delivered_by_that(routed) -> None:
    world, run = routed
    world.finish()
    made(world, run, filters={"label": "cat"})
    assert undelivered_run(project=world.project) == run
    made(world, run)
    assert undelivered_run(project=world.project) is None


def test_files_without_rows_have_the_types_of_their_formats(routed, client) -> None:
    world, run = routed
    every = list(FORMATS)
    whole, empty = made(world, run, formats=every), made(world, run, filters={"q": "nowhere"}, formats=every)
    types = {entry.name: entry.media_type for entry in whole.files.select_related("file")}
    assert {entry.name: entry.media_type for entry in empty.files.select_related("file")} == types
    client.force_login(world.manager)
    for name in ("labels.jsonl", "labels.manifest"):
        assert empty.files.get(name=name).file == empty.given  # the same bytes: none
        for address in (f"deliveries/{empty.pk}/{name}", f"deliveries/{empty.pk}/files/{name}"):
            root = "/api/v1" if "files" in address else ""
            answer = client.get(f"{root}/projects/{world.project.slug}/{address}")
            assert (answer.status_code, answer.headers["Content-Type"]) == (200, types[name])
    answer = client.get(f"/api/v1/projects/{world.project.slug}/deliveries/{empty.pk}/").json()
    assert {file["name"]: file["media_type"] for file in answer["files"]} == types


@pytest.mark.parametrize("also_new", [False, True])
def test_how_many_items_are_gone_since_is_told(routed, also_new) -> None:
    world, run = routed
    wrong = imported(world.project, labelled(9001, "a", "cat"), labelled(9002, "b", "dog"))
    base = made(world, run)

    def told() -> tuple[int, bool]:
        delivery = made(world, run, since=base)
        result = Job.objects.filter(kind="deliver_run").latest("pk").result
        readme = delivery.files.get(name="README.md").file
        with open_file(readme) as file:
            return result["gone"], b"and of which nothing stands here: 2." in file.read()

    assert told() == (0, False)
    assert jobs.run(start_undo(job=wrong, user=world.manager).pk)
    if also_new:
        add_items(world, 3)
    assert told() == (2, True)
    made(world, run)
    assert "gone" not in Job.objects.filter(kind="deliver_run").latest("pk").result
