"""Plans through the API: the menus, what a plan would mean, and starting a run."""

import json
from decimal import Decimal

import pytest
from django.urls import reverse

from routing.models import Run
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "0.1", "alpha": "0.1", "m": 60, "p": "0.9"}


@pytest.fixture
def world(client):
    world = make_world(150)
    client.force_login(world.manager)
    return world


def post(client, world, name, **fields):
    return client.post(reverse(name, args=[world.project.slug]), fields, content_type="application/json")


def test_the_menus_name_what_is_valid_and_why_the_rest_is_not(client, world):
    url = reverse("api_plan", args=[world.project.slug])
    menus = client.get(url).json()["options"]
    assert set(menus) == {"target", "rule", "bound", "loss", "score"}
    assert all(option["summary"] and option["title"] for menu in menus.values() for option in menu)
    best = {
        name: [option["name"] for option in menu if option["recommended"]] for name, menu in menus.items()
    }
    assert best == {
        "target": ["dataset"],
        "rule": ["every_score"],
        "bound": ["hypergeometric"],
        "loss": ["zero_one"],
        "score": ["recorded"],
    }
    assert "clt" not in [option["name"] for option in menus["bound"]]
    assert "pointwise_argmin" not in [option["name"] for option in menus["rule"]]
    menus = client.get(url, {"target": "population", "p_column": "text"}).json()["options"]
    refusals = {option["name"]: option["refusal"] for menu in menus.values() for option in menu}
    assert refusals["betting_upper"] == ""
    assert "probabilit" in refusals["binomial"]
    assert "probabilit" in refusals["split_fixed_sequence"]


def test_a_plan_is_told_without_being_stored(client, world):
    seen = post(
        client, world, "api_plan", **PLAN, target="pool", rule="multi_chain", bound="hoeffding_bentkus"
    )
    assert seen.status_code == 200
    body = seen.json()
    assert body["bound"] == "hoeffding_bentkus"
    assert Decimal(body["expected_labels"]) == 54
    assert Decimal(body["at_most"]) > Decimal(body["at_least"])
    assert not Run.objects.exists()


def test_no_name_stands_for_the_default(client, world):
    unnamed = dict.fromkeys(("rule", "bound", "loss", "score"), "")
    seen = post(client, world, "api_plan", **PLAN, **unnamed)
    assert (seen.status_code, seen.json()["bound"]) == (200, "hypergeometric")
    assert post(client, world, "api_runs", **PLAN, **unnamed).json()["rule"] == "every_score"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"bound": "binomial"}, "bound"),
        ({"rule": "lexicographic"}, "rule"),
        ({"loss": "jaccard"}, "loss"),
        ({"loss_params": {"x": 1}}, "loss_params"),
        ({"score": "logits"}, "score"),
        ({"p": "0"}, "p"),
        ({"p": None, "p_column": "text"}, "p_column"),
        ({"epsilon": "0.0000000001"}, "epsilon"),
        ({"target": "everything"}, "target"),
    ],
)
def test_what_does_not_fit_names_its_field(client, world, fields, field):
    for name in ("api_plan", "api_runs"):
        answer = post(client, world, name, **(PLAN | fields))
        assert answer.status_code == 400
        assert answer.json()["field"] == field
    assert not Run.objects.exists()


def test_all_fields_at_fault_are_named_at_once(client, world):
    for name in ("api_plan", "api_runs"):
        answer = post(client, world, name, **(PLAN | {"epsilon": "7", "alpha": "x", "m": -1}))
        assert answer.status_code == 400
        assert [fault["field"] for fault in answer.json()["faults"]] == ["epsilon", "alpha", "m"]


@pytest.mark.parametrize("name", ["api_plan", "api_runs", "api_sources"])
def test_a_misspelled_field_starts_nothing(client, world, name):
    answer = post(client, world, name, **PLAN, boundd="binomial", traget="pool")
    assert answer.status_code == 400
    body = answer.json()
    assert body["field"] in {"boundd", "epsilon"}
    assert "'boundd'" in body["detail"]
    assert "'traget'" in body["detail"]
    assert ("target, rule" in body["detail"]) == (name != "api_sources")
    assert not Run.objects.exists()


def test_a_part_of_the_labels_that_the_rule_does_not_read_is_refused(client, world):
    for rule in ({}, {"rule": "multi_chain"}):
        answer = post(client, world, "api_runs", **PLAN, **rule, split_share="0.3")
        assert (answer.status_code, answer.json()["field"]) == (400, "split_share")
        assert "'split_fixed_sequence'" in answer.json()["detail"]
    assert post(client, world, "api_plan", **PLAN, split_share=None).status_code == 200


def test_a_run_is_started_as_on_the_page(client, world):
    answer = post(client, world, "api_runs", **PLAN, rule="split_fixed_sequence", split_share="0.4")
    assert answer.status_code == 201
    body = answer.json()
    assert (body["rule"], body["split_share"], body["bound"]) == (
        "split_fixed_sequence",
        0.4,
        "hypergeometric",
    )
    assert Run.objects.get().created_by == world.manager
    assert post(client, world, "api_runs", **PLAN).status_code == 409


def test_a_hopeless_run_has_to_be_wanted(client, world):
    hopeless = PLAN | {"epsilon": "0.001", "alpha": "0.001"}
    answer = post(client, world, "api_runs", **hopeless)
    assert (answer.status_code, answer.json()["field"]) == (400, "anyway")
    assert post(client, world, "api_runs", **hopeless, anyway=True).status_code == 201


@pytest.mark.parametrize("depth", [900, 100_000])
def test_parameters_that_are_nested_too_deeply_are_refused(client, world, depth):
    nested = "[" * depth + "]" * depth
    body = json.dumps(PLAN).removesuffix("}") + f', "loss_params": {{"x": {nested}}}}}'
    url = reverse("api_plan", args=[world.project.slug])
    answer = client.post(url, body, content_type="application/json")
    assert answer.status_code == 400
    assert "nested" in answer.json()["detail"]
    url = reverse("plan_outlook", args=[world.project.slug])
    fields = PLAN | {"loss_params": '{"x": ' + "[" * 900 + "]" * 900 + "}"}
    assert client.get(url, fields).status_code == 200


def test_measuring_has_a_price_is_bought_and_foretells(client) -> None:
    world = make_world(400, human_cost="40")
    client.force_login(world.manager)
    url = f"/api/v1/projects/{world.project.slug}/plan/"
    plan = {"epsilon": "0.1", "alpha": "0.1", "m": 120}
    before = client.post(url, plan, content_type="application/json").json()["measured"]
    assert (before["state"], before["forecast"]) == ("not measured", None)
    told = client.get(f"{url}measure/").json()
    assert (told["pilot_size"], Decimal(str(told["price"])), told["sources"]) == (
        80,
        240,
        ["Model 1", "Model 2"],
    )
    one = client.get(f"{url}measure/", {"leave_out": ["Model 1"]})
    assert one.status_code == 400
    refused = client.post(f"{url}measure/", {"budget": "7"}, content_type="application/json")
    assert (refused.status_code, refused.json()["field"]) == (400, "budget")
    bought = client.post(f"{url}measure/", {"budget": "300"}, content_type="application/json")
    assert (bought.status_code, bought.json()["state"]) == (202, "measured")
    foretold = client.post(url, plan, content_type="application/json").json()["measured"]["forecast"]
    assert foretold["now"]["m"] == 120
    assert foretold["now"]["low"] <= foretold["now"]["net_saving"] <= foretold["now"]["high"]
    assert foretold["half"]["m"] == foretold["proposed"]["m"] // 2
    assert client.delete(f"{url}measure/").status_code == 204
    assert client.delete(f"{url}measure/").status_code == 409


def test_every_drawn_item_is_asked_about_where_no_share_is_named(client, world) -> None:
    named = {name: value for name, value in PLAN.items() if name != "p"}
    for fields in (named, named | {"p": None}):
        seen = post(client, world, "api_plan", **fields).json()
        assert Decimal(str(seen["expected_labels"])) == 60
        assert seen["sentence"].startswith("All 60 drawn items go to people. ")
