"""Before the analysis no page tells anybody what a model said, nor which items were drawn, nor for what."""

import io
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.common.files import store_file
from annotation.labelling import queue
from annotation.models import Membership
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from testbed.factories import add_member, make_items
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
ROLES = Membership.Role.values
# Recorded answers that stand nowhere else, so that they can be looked for.
SECRET = ("emu", "0.90", "confidence1", "model1", "uncertain", "threshold", "Model 1", "Model 2")


@pytest.fixture
def world() -> World:
    world = make_world(60)
    run = world.start(m=40)
    assert run.number == 1
    world.do("prepare_run")
    return world


def client_as(world: World, role: str) -> Client:
    client = Client()
    client.force_login(add_member(world.project, role))
    return client


def part(html: str, start: str) -> str:
    return html[html.index(start) :]


@pytest.mark.parametrize("role", ["owner", "manager", "reviewer", "annotator"])
def test_the_annotate_page_says_nothing_but_the_item(world: World, role: str) -> None:
    client = client_as(world, role)
    page = client.get(reverse("annotate", args=[world.project.slug])).content.decode()
    body = part(page, '<main id="main"')
    for word in (*SECRET[1:], "calibrat", "routed", "predict", "score", "suggest"):
        assert word.lower() not in body.lower(), word
    # Every label is offered alike: no choice is marked.
    assert "aria-pressed" not in part(body, '<fieldset class="choices')


def test_calibration_and_routed_items_look_the_same() -> None:
    def skeleton(world: World) -> str:
        client = Client()
        client.force_login(add_member(world.project, "annotator"))  # who has not labelled yet
        page = client.get(reverse("annotate", args=[world.project.slug])).content.decode()
        page = re.sub(
            r'value="[^"]*"|project-\d+|Project \d+|text \d+|annotator\d+|hypac-answer-[\d-]+', "", page
        )
        return re.sub(r"\d+", "", page)

    before = make_world(60)
    before.start(m=40)
    before.do("prepare_run")
    after = make_world(60)
    after.routed(m=40)
    assert 'data-state="item"' in skeleton(before)
    assert skeleton(before) == skeleton(after)


def test_what_is_held_ahead_says_nothing_but_the_item_either() -> None:
    def cards(world: World) -> list[dict[str, Any]]:
        client = client_as(world, "annotator")
        path = reverse("annotate_ahead", args=[world.project.slug])
        return client.post(path, {"holding": ""}).json()["ahead"]

    before = make_world(60)
    before.start(m=40)
    before.do("prepare_run")
    after = make_world(60)
    after.routed(m=40)
    shapes = []
    for world in (before, after):
        held = cards(world)
        assert len(held) == 3
        body = json.dumps(held).lower()
        for word in (*SECRET, "calibrat", "routed", "predict", "score", "suggest", "priority", "batch"):
            assert word.lower() not in body, word
        assert all(card["given"] is None and card["note"] == "" for card in held)
        shapes.append([(sorted(card), re.sub(r"\d+", "", card["html"])) for card in held])
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("role", ["owner", "manager", "reviewer", "viewer"])
def test_items_say_nothing_of_models_before_the_analysis(world: World, role: str) -> None:
    client = client_as(world, role)
    world.label(limit=5)
    slug = world.project.slug
    addresses = [reverse("items", args=[slug])]
    addresses += [reverse("item", args=[slug, item.pk]) for item in world.project.items.all()[:5]]
    for address in addresses:
        body = part(client.get(address).content.decode(), '<main id="main"')
        assert "are not shown" in body
        for word in ("confidence1", "model1", "Answers of the models", "Uncertainty", "Sent to"):
            assert word not in body, (address, word)
    # Nor do the filters: the five labels of the open calibration set count as not there.
    assert "0 items" in client.get(addresses[0], {"stage": "labelled"}).content.decode()
    assert "0 items" in client.get(addresses[0], {"stage": "waiting"}).content.decode()


@pytest.mark.parametrize("role", ROLES)
def test_no_bound_and_no_threshold_before_the_last_label(world: World, role: str) -> None:
    client = client_as(world, role)
    slug = world.project.slug
    world.label(limit=20)
    for address in (reverse("overview", args=[slug]), reverse("run", args=[slug, 1])):
        answer = client.get(address)
        if answer.status_code == 403:
            continue
        body = part(answer.content.decode(), '<main id="main"')
        for word in ("Differences observed", "Uncertainty up to", "What is certified", "The chain"):
            assert word not in body, (address, word)
    for name in ("run_certificate", "run_draw"):
        assert client.get(reverse(name, args=[slug, 1])).status_code in (403, 404)


def test_an_annotator_is_not_told_which_stage_the_items_are_for(world: World) -> None:
    client = client_as(world, "annotator")
    body = part(client.get(reverse("overview", args=[world.project.slug])).content.decode(), "<main")
    assert "wait for a label" in body
    assert "calibration" not in body.lower()


def test_an_imported_file_looked_at_again_does_not_show_them_either(world: World) -> None:
    content = b"id,text,model1,confidence1\nt0,some text,emu,0.913\n"
    stored = store_file(
        project=world.project, content=io.BytesIO(content), original_name="x.csv", media_type="text/csv"
    )
    path = reverse("import_mapping", args=[world.project.slug, stored.pk])
    page = client_as(world, "manager").get(path).content.decode()
    assert "some text" in page
    assert "not shown now" in page
    assert "0.913" not in page
    world.finish()
    analyse(run=world.project.runs.get(), user=world.manager)
    world.do("analyse_run")
    assert "0.913" in client_as(world, "manager").get(path).content.decode()


def test_after_the_analysis_they_appear_to_those_who_may_see_them(world: World) -> None:
    world.finish()
    run = world.project.runs.get()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    address = reverse("items", args=[world.project.slug])
    assert "Uncertainty" in client_as(world, "viewer").get(address).content.decode()
    assert "Uncertainty" not in client_as(world, "reviewer").get(address).content.decode()


def test_whoever_has_seen_predictions_is_told_why_nothing_waits(world: World) -> None:
    world.finish()
    run = world.project.runs.get()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    run.refresh_from_db()
    cancel_run(run=run, user=world.manager)
    make_items(world.project, 3)
    batch_items = [item.pk for item in world.project.items.order_by("-position")[:3]]
    queue.create_batch(project=world.project, item_ids=batch_items, blind=True, priority=1, entropy=1)
    body = client_as(world, "manager").get(reverse("annotate", args=[world.project.slug])).content.decode()
    assert "An earlier run of this project has been analysed" in body
