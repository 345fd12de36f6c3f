"""What a program does with a run: analyse, route, cancel, and what it is answered."""

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from routing.models import Run
from testbed.factories import add_member
from testbed.worlds import make_world

pytestmark = pytest.mark.django_db


def post(client, world, name, number=1, body=None, user=None):
    client.force_login(user or world.manager)
    address = reverse(name, kwargs={"slug": world.project.slug, "number": number})
    return client.post(address, body or {}, content_type="application/json")


def test_a_run_is_analysed_and_routed_by_jobs_whose_address_comes_back(client) -> None:
    world = make_world(100)
    world.calibrated(m=40)
    for name, state in (("api_run_analyse", Run.State.ANALYSED), ("api_run_route", Run.State.LABELLING)):
        response = post(client, world, name)
        assert response.status_code == 202
        job = response.json()
        assert job["state"] == "queued"
        assert response.headers["Location"].endswith(f"/jobs/{job['id']}/")
        assert jobs.run(job["id"])
        assert world.project.runs.get().state == state


def test_what_cannot_be_done_now_is_a_conflict_and_does_nothing(client) -> None:
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    for name, words in (
        ("api_run_analyse", "still to be labelled"),
        ("api_run_route", "before it is analysed"),
    ):
        response = post(client, world, name)
        assert response.status_code == 409
        assert words in response.json()["detail"]
    assert post(client, world, "api_run_analyse", number=9).status_code == 404
    assert post(client, world, "api_run_analyse", body={"now": True}).status_code == 400
    assert world.project.runs.get().state == Run.State.CALIBRATING


def test_cancelling_answers_with_the_run_as_it_is_then(client) -> None:
    world = make_world(100)
    world.start(m=40)
    response = post(client, world, "api_run_cancel")
    assert response.status_code == 200
    assert response.json()["state"] == "cancelled"
    assert post(client, world, "api_run_cancel").status_code == 409


def test_only_those_who_may_change_runs_can(client) -> None:
    world = make_world(100)
    world.start(m=40)
    for role in ("viewer", "reviewer", "annotator"):
        user = add_member(world.project, role)
        for name in ("api_run_analyse", "api_run_route", "api_run_cancel", "api_deliver"):
            assert post(client, world, name, user=user).status_code == 403
    assert world.project.runs.get().state == Run.State.PREPARING


def test_runs_are_listed_newest_first_and_by_state(client) -> None:
    world = make_world(100)
    world.start(m=40)
    post(client, world, "api_run_cancel")
    world.start(m=40)
    address = reverse("api_runs", kwargs={"slug": world.project.slug})
    assert [run["number"] for run in client.get(address).json()["results"]] == [2, 1]
    found = client.get(f"{address}?state=cancelled").json()["results"]
    assert [run["number"] for run in found] == [1]
    assert client.get(f"{address}?state=gone").status_code == 400
    assert client.get(f"{address}?stat=cancelled").status_code == 400
