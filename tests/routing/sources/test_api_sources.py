"""Sources through the API."""

from decimal import Decimal

import pytest
from django.urls import reverse

from testbed.factories import add_member
from testbed.worlds import make_world
from tests.annotation.apis import problem

pytestmark = pytest.mark.django_db
JSON = "application/json"


def tokens(index, row):
    row["tokens"] = str(10 + index)


@pytest.fixture
def world():
    return make_world(20, change=tokens)


def new(**changes):
    fields = {
        "name": "Model 3",
        "backend": "recorded",
        "params": {
            "label_column": "model1",
            "confidence_column": "confidence1",
            "tokens_out_column": "tokens",
        },
        "cost_per_label": "3.5",
        "cost_function": "tokens",
        "prices": {"per_token": "0.25"},
    }
    return fields | changes


def test_a_first_source_without_a_score_is_saved_with_a_warning(client, world):
    client.force_login(world.manager)
    first = world.project.sources.get(position=1)
    one = reverse("api_source", args=[world.project.slug, first.pk])
    fields = {"name": first.name, "backend": "recorded", "cost_per_label": "1"}
    for params, words in (
        ({"label_column": "model1"}, "names no column of confidences"),
        ({"label_column": "model1", "confidence_column": "text"}, "has a usable score"),
    ):
        answer = client.put(one, fields | {"params": params}, content_type=JSON)
        assert answer.status_code == 200
        (warning,) = answer.json()["warnings"]
        assert words in warning
    answer = client.put(one, fields | {"params": first.params}, content_type=JSON)
    assert answer.json()["warnings"] == []


def test_a_source_is_added_read_changed_and_removed(client, world):
    client.force_login(world.manager)
    url = reverse("api_sources", args=[world.project.slug])
    response = client.post(url, new(), content_type=JSON)
    assert response.status_code == 201, response.json()
    body = response.json()
    assert (body["position"], body["cost_function"], body["prices"]) == (3, "tokens", {"per_token": "0.25"})
    scores = {score["name"]: score for score in body["scores"]}
    assert scores["recorded"]["refusal"] == scores["calibrated"]["refusal"] == ""
    assert "needs token probabilities" in scores["logits"]["refusal"]
    assert set(scores["ensemble"]["params"]) == {"measure"}

    one = reverse("api_source", args=[world.project.slug, body["id"]])
    assert body["warnings"] == []
    change = new(cost_function="flat", prices={}, cost_per_label="4")
    assert client.put(one, change, content_type=JSON).json()["cost_function"] == "flat"
    assert Decimal(client.get(one).json()["cost_per_label"]) == 4
    listed = client.get(url).json()["results"]
    assert [source["name"] for source in listed] == ["Model 1", "Model 2", "Model 3"]
    assert "params" not in listed[0]
    assert client.delete(one).status_code == 204
    assert client.get(one).status_code == 404


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"cost_function": "gold"}, "cost_function", "choose one of flat, tokens, api_price, time"),
        ({"cost_function": "api_price", "prices": {"input": "1"}}, "output", "is needed"),
        (
            {"cost_function": "api_price", "prices": {"input": "1", "output": "1"}},
            "cost_function",
            "tokens were read",
        ),
        ({"prices": {"per_token": "dear"}}, "per_token", "'dear'"),
        ({"prices": {"per_token": "1E-999999"}}, "per_token", "between 1e-12 and 1e12"),
        ({"prices": {"per_label": "1"}}, "per_label", "no price 'per_label'"),
        ({"cost_function": "flat"}, "prices", "price per label"),
        (
            {"params": {"label_column": "model1", "tokens_out_column": "x"}},
            "tokens_out_column",
            "no column 'x'",
        ),
        ({"cost_per_label": "-1"}, "cost_per_label", "at least 0"),
    ],
)
def test_what_cannot_be_is_refused_by_field(client, world, changes, field, words):
    client.force_login(world.manager)
    response = client.post(
        reverse("api_sources", args=[world.project.slug]), new(**changes), content_type=JSON
    )
    assert response.status_code == 400
    assert response.json()["field"] == field
    assert words in response.json()["detail"]
    assert world.project.sources.count() == 2


def test_only_those_who_may_edit_sources_can(client, world):
    client.force_login(add_member(world.project, "viewer"))
    url = reverse("api_sources", args=[world.project.slug])
    assert client.get(url).status_code == 200
    assert client.post(url, new(), content_type=JSON).status_code == 403
    one = reverse("api_source", args=[world.project.slug, world.project.sources.first().pk])
    assert client.get(one).status_code == 403
    assert client.delete(one).status_code == 403
    other = make_world(5)
    client.force_login(other.manager)
    assert client.delete(one).status_code == 404
    assert (
        client.delete(
            reverse("api_source", args=[other.project.slug, world.project.sources.first().pk])
        ).status_code
        == 404
    )


@pytest.mark.parametrize("sign", ["\0", "\ud800"])
@pytest.mark.parametrize(
    ("backend", "params", "field"),
    [
        ("uploaded", {"model": "a%sb"}, "model"),
        ("uploaded", {"model": "a", "revision": "%s"}, "revision"),
        ("recorded", {"label_column": "a%sb"}, "label_column"),
    ],
)
def test_a_character_that_no_database_keeps_is_refused_by_its_field(
    client, world, backend, params, field, sign
):
    client.force_login(world.manager)
    params = {name: value.replace("%s", sign) for name, value in params.items()}
    fields = {"name": "odd", "backend": backend, "params": params, "cost_per_label": "0"}
    url = reverse("api_sources", args=[world.project.slug])
    answer = client.post(url, fields, content_type=JSON)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not world.project.sources.filter(name="odd").exists()


@pytest.mark.parametrize(
    ("changed", "field", "path"),
    [
        ({"params": {"label_column": "none"}}, "label_column", "params.label_column"),
        ({"params": {"labels": "model1"}}, "labels", "params.labels"),
        ({"params": {}}, "label_column", "params.label_column"),
        ({"prices": {"per_token": "much"}}, "per_token", "prices.per_token"),
        ({"backend": "none"}, "backend", "backend"),
    ],
)
def test_a_fault_has_the_full_path_and_field_the_name_that_it_always_had(client, world, changed, field, path):
    client.force_login(world.manager)
    answer = client.post(reverse("api_sources", args=[world.project.slug]), new(**changed), content_type=JSON)
    told = problem(answer, 400)
    assert told["field"] == field
    assert told["faults"] == [{"field": path, "code": "invalid", "detail": told["detail"]}]
