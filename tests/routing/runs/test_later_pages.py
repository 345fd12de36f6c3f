"""Taking in later items from the page of a run, by programs and by scripts."""

import json

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import Job
from routing.runs.budget import set_budget
from routing.runs.later import report
from routing.runs.later.take_in import take_in
from routing.runs.spending import paid_by
from testbed.factories import add_member
from testbed.worlds import make_world
from tests.routing.runs.test_later_items import a_run
from tests.routing.runs.test_script_commands import ended, run as command

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_programs_take_in_and_are_told(client) -> None:
    world, run = a_run()
    world.arrive(20)
    client.force_login(world.manager)
    address = reverse("api_run", args=[world.project.slug, run.number])
    told = client.get(address).json()
    assert (told["later_size"], told["later_audit_share"]) == (0, 0)
    assert told["later_items"] == {"waiting": 20, "objection": "", "taken_in": [], "audit": None}
    answer = client.post(f"{address}take-in/", {}, content_type="application/json")
    assert answer.status_code == 202
    assert jobs.run(answer.json()["id"])
    told = client.get(address).json()
    (intake,) = told["later_items"]["taken_in"]
    assert (told["later_size"], intake["items"], intake["by"]) == (20, 20, world.manager.username)
    assert told["later_items"]["waiting"] == 0
    again = client.post(f"{address}take-in/", {}, content_type="application/json")
    assert (again.status_code, "nothing to take in" in again.json()["detail"]) == (409, True)
    for role in ("viewer", "reviewer", "annotator"):
        client.force_login(add_member(world.project, role))
        refused = client.post(f"{address}take-in/", {}, content_type="application/json")
        assert refused.status_code == 403


def test_the_page_offers_it_to_who_may_start_runs(client_of) -> None:
    world, run = a_run()
    world.arrive(20)
    address = reverse("run", args=[world.project.slug, run.number])
    page = client_of(world.manager).get(address).content.decode()
    assert "20 new items can be taken in." in page
    assert "Take in new items" in page
    assert (
        "Take in new items"
        not in client_of(add_member(world.project, "viewer")).get(address).content.decode()
    )
    answer = client_of(world.manager).post(f"{address}take-in/", follow=True).content.decode()
    assert "The new items are being taken in." in answer
    assert f'hx-get="{address}?state=complete.take_in"' in answer  # it follows the job
    world.do("take_in")
    page = client_of(world.manager).get(address).content.decode()
    assert "20 items that came after the pool was frozen" in page
    assert "There is no new item." in page
    told = client_of(world.manager).get(
        address, {"state": "complete.take_in"}, headers={"HX-Request": "true"}
    )
    assert told.headers["HX-Refresh"] == "true"


def test_what_waits_is_counted_up_to_a_bound(client_of, monkeypatch) -> None:
    monkeypatch.setattr(report, "COUNTED", 5)
    world, run = a_run()
    world.arrive(20)
    client, address = client_of(world.manager), reverse("run", args=[world.project.slug, run.number])
    assert "5 or more new items can be taken in." in client.get(address).content.decode()
    told = client.get(reverse("api_run", args=[world.project.slug, run.number])).json()
    assert told["later_items"]["waiting"] == 5
    assert "Take in new items" in client.get(address).content.decode()
    take_in(run=run, user=world.manager)
    world.do("take_in")
    assert run.intakes.get().items == 20
    assert "There is no new item." in client.get(address).content.decode()


def test_a_budget_that_is_used_up_stops_it_and_another_one_lets_it_go_on(client_of) -> None:
    world, run = a_run()
    world.arrive(40)
    spent = sum(row.amount for row in paid_by(run) if row.source)
    set_budget(run=run, user=world.manager, budget=spent + 10)
    take_in(run=run, user=world.manager)
    job = Job.objects.get(kind="take_in")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    address = reverse("run", args=[world.project.slug, run.number])
    page = client_of(world.manager).get(address).content.decode()
    assert "Stopped at the budget" in page
    assert 'name="budget"' in page
    set_budget(run=run, user=world.manager, budget=None)
    world.do("take_in")
    run.refresh_from_db()
    assert run.later_size == 40


def test_scripts_take_in() -> None:
    world, _run = a_run()
    slug, user = world.project.slug, world.manager.username
    world.arrive(30)
    told = json.loads(command("take_in", slug, "newest", "--here", "--json", user=user))
    assert (told["taken_in"], told["later_size"], told["job"]["kind"]) == (30, 30, "take_in")
    again = json.loads(command("take_in", slug, "newest", "--here", "--json", user=user))
    assert (again["taken_in"], again["later_size"]) == (0, 30)
    other = make_world(100)
    other.complete(m=40)
    code, reason = ended("take_in", other.project.slug, 1, "--here", user=other.manager.username)
    assert (code, "its own items alone" in reason) == (1, True)
