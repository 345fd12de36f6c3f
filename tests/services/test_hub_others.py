"""A push to a data set of the Hub leaves alone what other people put there."""

import json
from typing import Any

import pytest

from annotation.models import Job
from routing.delivery.deliver import deliver
from routing.delivery.exports import export_delivery
from routing.models import Delivery
from testbed.worlds import World, make_world
from tests.services.test_connections import done
from tests.services.test_hub import REPO, connected

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    world = make_world(60)
    world.complete(m=30)
    return world


def delivered(world: World, *formats: str) -> Delivery:
    run = world.project.runs.get()
    deliver(run=run, user=world.manager, formats=formats or ("csv",))
    world.do("deliver_run")
    return run.deliveries.order_by("-pk").first()


def pushed(world: World, *formats: str, **options: Any) -> Job:
    connection = world.project.connections.first() or connected(world.project)
    delivery = delivered(world, *formats)
    return done(export_delivery(delivery=delivery, connection=connection, user=world.manager, **options))


@pytest.mark.parametrize(
    "theirs",
    [
        {"delivery/labels.csv": b"not yours"},
        {"delivery/notes.txt": b"years of work"},
        {"delivery/manifest.json": b"{}", "delivery/labels.csv": b"not yours"},
        {
            "delivery/manifest.json": json.dumps(
                {"format": "hypac-manifest", "version": 1, "files": {"labels.csv": {}}}
            ).encode(),
            "delivery/labels.csv": b"not yours",
        },
    ],
)
def test_a_folder_that_no_delivery_of_the_project_made_is_left_alone(hub, world, theirs):
    hub.add(REPO, **theirs)
    job = pushed(world)
    assert (job.state, job.error_code) == (Job.State.FAILED, "other_object_there")
    assert hub.data_sets[REPO] == theirs


def test_only_what_the_delivery_before_brought_is_removed(hub, world):
    assert pushed(world, "csv").state == Job.State.DONE
    hub.data_sets[REPO]["delivery/notes.txt"] = b"years of work"
    job = pushed(world, "jsonl")
    assert job.state == Job.State.DONE, job.error
    there = hub.data_sets[REPO]
    assert there["delivery/notes.txt"] == b"years of work"
    assert "delivery/labels.csv" not in there
    assert "delivery/labels.jsonl" in there


def test_a_card_that_somebody_has_edited_is_left_alone_unless_it_is_to_be_replaced(hub, world):
    assert pushed(world, "csv").state == Job.State.DONE
    hub.data_sets[REPO]["README.md"] = curated = b"---\nlicense: cc-by-4.0\n---\ncurated by hand"
    job = pushed(world, "jsonl")
    assert (job.state, job.error_code) == (Job.State.FAILED, "other_object_there")
    assert "README.md" in job.error
    assert hub.data_sets[REPO]["README.md"] == curated
    assert pushed(world, "jsonl", overwrite=True).state == Job.State.DONE
    assert pushed(world, "csv").state == Job.State.DONE
