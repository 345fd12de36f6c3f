"""Suggestions as a part of a plan: off by default, frozen at the start, refused where labels have to be given
without.
"""

from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from annotation.errors import InputError
from annotation.models import WorkBatch
from routing.models import Run
from routing.runs.plan import outlook_of_plan
from testbed.factories import add_member, make_user
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "0.1", "alpha": "0.1", "m": 60, "p": "1"}
REFUSED = [
    ({"reference": "settled"}, "Two people and a third"),
    ({"reference": "expert", "expert": "erin"}, "run with an expert"),
    ({"target": "population"}, "audit later items"),
    ({"target": "population", "later_audit_share": "0.1"}, "audit later items"),
]


@pytest.fixture
def world(client: Client) -> World:
    world = make_world(150)
    for name in ("erin", "finn"):
        add_member(world.project, user=make_user(name))
    client.force_login(world.manager)
    return world


def post(client: Client, world: World, name: str, **fields: object) -> object:
    return client.post(reverse(name, args=[world.project.slug]), fields, content_type="application/json")


def test_they_are_off_unless_the_plan_asks_for_them(client: Client, world: World) -> None:
    plain = post(client, world, "api_runs", **PLAN)
    assert plain.status_code == 201
    assert plain.json()["suggestions"] is False
    run = Run.objects.get()
    assert run.suggestions is False
    page = client.get(reverse("run_plan", args=[world.project.slug, run.number])).content.decode()
    assert "Suggestions of models" not in page


def test_they_are_frozen_with_the_plan_and_said_on_its_page(client: Client, world: World) -> None:
    assert post(client, world, "api_runs", **PLAN, suggestions=True).status_code == 201
    run = Run.objects.get()
    slug, number = world.project.slug, run.number
    assert client.get(reverse("api_run", args=[slug, number])).json()["suggestions"] is True
    page = client.get(reverse("run_plan", args=[slug, number])).content.decode()
    assert "Suggestions of models on routed items" in page
    started = world.project.audit_events.get(action="run.started")
    assert started.data["suggestions"] is True
    with pytest.raises(IntegrityError, match="cannot be changed"), transaction.atomic():
        Run.objects.update(suggestions=False)


@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=["settled", "expert", "audit", "named audit"])
def test_they_are_refused_by_api_and_page_with_a_code_of_their_own(
    client: Client, world: World, fields: dict[str, str], words: str
) -> None:
    for name in ("api_plan", "api_runs"):
        refused = post(client, world, name, **PLAN, **fields, suggestions=True)
        body = refused.json()
        assert (refused.status_code, body["code"], body["field"]) == (
            400,
            "suggestions_refused",
            "suggestions",
        )
        assert words in body["detail"]
    typed = {"epsilon": "10 %", "alpha": "10 %", "m": "60", "p": "1", "suggestions": "on", **fields}
    page = client.post(reverse("plan", args=[world.project.slug]), typed).content.decode()
    assert words in page
    assert not Run.objects.exists()
    assert post(client, world, "api_plan", **PLAN, **fields).status_code == 200


def test_they_are_refused_where_several_people_label_an_item(client: Client, world: World) -> None:
    world.project.overlap, world.project.overlap_share = 2, Decimal("0.5")
    world.project.save()
    refused = post(client, world, "api_plan", **PLAN, suggestions=True)
    assert refused.json()["code"] == "suggestions_refused"
    assert "asks several people" in refused.json()["detail"]


def test_later_items_without_an_audit_may_have_them(world: World) -> None:
    run = world.start(m=60, target="population", later_audit_share=Decimal(0), suggestions=True)
    assert run.suggestions


@pytest.mark.parametrize(
    "columns",
    [{"reference": "settled"}, {"overlap": 2}],
)
def test_the_database_refuses_them_as_well(world: World, columns: dict[str, object]) -> None:
    run = world.start(m=60)
    run.pk, run.number, run.suggestions, run.state = None, 2, True, Run.State.CANCELLED
    for name, value in columns.items():
        setattr(run, name, value)
    with pytest.raises(IntegrityError, match="run_suggestions_to_one_person"), transaction.atomic():
        run.save(force_insert=True)


@pytest.mark.parametrize(
    "columns",
    [{"blind": True}, {"overlap": 2}, {"third_decides": True}, {"for_round": True}, {"for_gold": True}],
    ids=lambda columns: next(iter(columns)),
)
def test_no_batch_that_is_labelled_blind_suggests(world: World, columns: dict[str, object]) -> None:
    fields = {"project": world.project, "blind": False, "suggests": True} | columns
    with pytest.raises(IntegrityError, match="work_batch_suggests"), transaction.atomic():
        WorkBatch.objects.create(**fields)


def test_the_form_has_them_and_the_command_starts_a_run_with_them(client: Client, world: World) -> None:
    page = client.get(reverse("plan", args=[world.project.slug])).content.decode()
    assert 'name="suggestions"' in page
    assert "checked" not in page.split('name="suggestions"')[1].split(">")[0]
    words = ["--user", world.manager.username, "--epsilon", "0.1", "--alpha", "0.1", "--m", "60"]
    call_command("plan", world.project.slug, *words, "--suggestions", "--start", "--anyway", "--here")
    assert Run.objects.get().suggestions is True


def test_a_plan_with_gold_items_says_that_these_can_be_told(world: World) -> None:
    world.project.gold_share = 0.1
    world.project.save()
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 60}

    def told(**fields: object) -> str:
        return " ".join(outlook_of_plan(project=world.project, **plan, **fields).warnings)

    assert "Gold items have no suggestion" in told(suggestions=True)
    assert "Gold items" not in told()
    with pytest.raises(InputError) as refused:
        told(suggestions=True, reference="settled")
    assert refused.value.code == "suggestions_refused"
