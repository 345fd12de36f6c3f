"""What a run committed to, on its page, by API and command; and the text that its draw waits for."""

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from routing.models import Draw, Run
from routing.runs import commitments
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from testbed.factories import add_member
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
TEXT = "heads, said the stranger"


@pytest.fixture
def world() -> World:
    return make_world(120)


def waiting(world: World, kind: str = "nonce") -> Run:
    run = world.start(m=40, draw_from=kind)
    world.do("prepare_run")
    return run


def page(client, world: World, run: Run, name: str = "run") -> str:
    return client.get(reverse(name, args=[world.project.slug, run.number])).content.decode()


def test_the_page_shows_the_hash_takes_the_text_and_then_shows_both(client_of, world) -> None:
    run = waiting(world)
    client = client_of(world.manager)
    first = run.commitments.get().sha256
    body = page(client, world, run)
    assert "The draw waits" in body
    assert first in body
    address = reverse("run_draw_value", args=[world.project.slug, run.number])
    refused = client.post(address, {"value": "short"}, follow=True).content.decode()
    assert "8 to 200 characters" in refused
    overview = client.get(reverse("overview", args=[world.project.slug])).content.decode()
    assert "waits for what its draw is to come from" in overview
    client.post(address, {"value": TEXT})
    world.do("prepare_run")
    assert "The draw waits" not in page(client, world, run)
    body = page(client, world, run, "run_evidence")
    assert all(one.sha256 in body for one in run.commitments.all())
    assert TEXT in body
    again = client.post(address, {"value": TEXT + "s"}, follow=True).content.decode()
    assert "does not wait" in again


def test_who_may_only_look_sees_hashes_and_no_form(client_of, world) -> None:
    run = waiting(world)
    viewer = client_of(add_member(world.project, role="viewer"))
    body = page(viewer, world, run)
    assert run.commitments.get().sha256 in body
    assert "draw-value" not in body
    assert "commitment-1.json" not in body


def test_cancelling_is_said_to_spend_alpha_once_the_draw_can_be_known(client_of, world) -> None:
    spent, unspent = "its share of alpha stays in the ledger", "nothing of alpha is spent"
    run = world.start(m=60, draw_from="nonce")
    body = page(client_of(world.manager), world, run)
    assert unspent in body
    assert spent not in body
    world.do("prepare_run")
    body = page(client_of(world.manager), world, run)
    assert spent in body
    assert unspent not in body


def test_a_beacon_that_cannot_be_asked_is_named_with_its_address(client_of, world, monkeypatch) -> None:
    monkeypatch.setattr(commitments, "PATIENCE", 0)
    run = waiting(world, "drand")
    named = json.loads(run.commitments.get().document)["draw_from"]
    body = page(client_of(world.manager), world, run)
    assert f"/{named['chain']}/public/{named['round']}" in body
    assert "Ask again" in body


def test_programs_find_hashes_documents_and_the_ledger_and_give_the_text(client_of, world) -> None:
    client = client_of(world.manager)
    base = f"/api/v1/projects/{world.project.slug}/"
    refused = client.post(
        f"{base}runs/",
        {"epsilon": "0.1", "alpha": "0.1", "m": 40, "draw_from": "dice"},
        content_type="application/json",
    )
    assert (refused.status_code, "draw_from" in refused.json()["errors"]) == (400, True)
    made = client.post(
        f"{base}runs/",
        {"epsilon": "0.1", "alpha": "0.1", "m": 40, "draw_from": "nonce"},
        content_type="application/json",
    )
    assert (made.status_code, made.json()["draw_from"]) == (201, "nonce")
    world.do("prepare_run")
    found = client.get(f"{base}runs/1/").json()
    assert found["draw_waits"]
    assert [one["number"] for one in found["commitments"]] == [1]
    assert client.get(f"{base}ledger/").json() == {"entries": []}
    assert client.get(f"{base}runs/1/commitments/2.json").status_code == 404
    refused = client.get(f"{base}runs/1/commitments/1.json")
    assert (refused.status_code, refused.json()["code"]) == (409, "commitment_hidden")
    answer = client.post(f"{base}runs/1/draw/", {"value": TEXT}, content_type="application/json")
    assert answer.status_code == 202
    world.do("prepare_run")
    found = client.get(f"{base}runs/1/").json()
    assert not found["draw_waits"]
    assert len(found["commitments"]) == 2
    (entry,) = client.get(f"{base}ledger/").json()["entries"]
    assert (entry["run"], entry["commitment"]) == (1, found["commitments"][0]["sha256"])
    world.finish()
    analyse(run=world.project.runs.get(), user=world.manager)
    world.do("analyse_run")
    document = client.get(f"{base}runs/1/commitments/1.json")
    assert json.loads(document.content)["draw_from"] == {"kind": "nonce"}


def test_what_tells_the_draw_is_hidden_while_it_is_labelled(client_of, world) -> None:
    """Whoever manages a run may label in it, and from the first document could draw as it did."""
    run = world.calibrating(m=40)
    client = client_of(world.manager)
    link = "commitment-1.json"
    assert link not in page(client, world, run, "run_evidence")
    address = reverse("run_commitment", args=[world.project.slug, run.number, 1])
    assert b"once the run is analysed" in client.get(address, follow=True).content
    world.finish()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    assert link in page(client, world, run, "run_evidence")
    assert json.loads(client.get(address).content)["entropy"]


def test_the_command_draws(world) -> None:
    run = waiting(world)
    out = StringIO()
    arguments = ["draw", world.project.slug, "1", TEXT, "--user", world.manager.username, "--here", "--json"]
    call_command(*arguments, stdout=out)
    said = json.loads(out.getvalue())
    assert said["commitments"] == list(run.commitments.values_list("sha256", flat=True))
    assert Draw.objects.get().randomness == {"kind": "nonce", "value": TEXT}


def test_a_plan_says_where_its_draw_comes_from(client_of, world) -> None:
    run = waiting(world)
    assert "A text that somebody else chooses" in page(client_of(world.manager), world, run, "run_plan")
    plan = client_of(world.manager).get(reverse("plan", args=[world.project.slug])).content.decode()
    assert 'name="draw_from" value="drand"' in plan


def test_a_plan_says_which_level_earlier_draws_leave(client_of, world) -> None:
    client = client_of(world.manager)
    plan = reverse("plan_outlook", args=[world.project.slug]) + "?epsilon=10&alpha=10&m=40"
    assert "have spent" not in client.get(plan).content.decode()
    cancel_run(run=world.calibrating(m=40), user=world.manager)
    page = client.get(plan).content.decode()
    assert "have spent 0.1 of alpha" in page
    assert "the certificate says 80 %" in page
    whole = client.get(reverse("plan", args=[world.project.slug])).content.decode()
    assert re.search(r"have spent 10\s% of alpha. Add that", whole)
