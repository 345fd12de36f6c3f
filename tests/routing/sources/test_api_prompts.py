"""Language models as sources through the API: prompt, key, price line, presets, tries."""

from collections.abc import Iterator

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from routing.models import ModelPrice
from testbed.factories import add_member, make_items, make_project
from testbed.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db
JSON = "application/json"
KEY = "sk-very-secret-0123456789"
PROMPT = {
    "system": "Be brief.",
    "template": "{{ text }}?",
    "examples": [{"fields": {"text": "miaow"}, "answer": "cat"}],
}


@pytest.fixture
def server(settings) -> Iterator[ScriptedServer]:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer("cat", models=["tiny"]) as running:
        yield running


@pytest.fixture
def project(client):
    project = make_project(choices=("cat", "dog"))
    make_items(project, 6)
    client.force_login(project.created_by)
    return project


def body(server: ScriptedServer, **changes: object) -> dict[str, object]:
    return {
        "name": "Tiny",
        "backend": "openai_api",
        "params": {"url": server.url, "model": "tiny"},
        "cost_per_label": "0.5",
        "api_key": KEY,
        "prompt": PROMPT,
        **changes,
    }


def add(client, project, server, **changes: object):
    url = reverse("api_sources", args=[project.slug])
    return client.post(url, body(server, **changes), content_type=JSON)


def test_a_language_model_is_added_with_prompt_and_key(client, project, server) -> None:
    answer = add(client, project, server)
    assert answer.status_code == 201, answer.content
    saved = answer.json()
    assert saved["prompt"] == {"number": 1, **PROMPT}
    assert saved["has_key"] is True
    assert saved["served"]["model"] == "tiny"
    assert {score["name"] for score in saved["scores"] if not score["refusal"]} >= {"logits"}
    assert KEY not in answer.content.decode()
    url = reverse("api_source", args=[project.slug, saved["id"]])
    kept = body(server)
    del kept["prompt"], kept["api_key"]
    changed = client.put(url, kept, content_type=JSON).json()
    assert (changed["prompt"]["number"], changed["has_key"]) == (1, True)
    changed = client.put(url, body(server, api_key="", prompt={"template": "{{ text }}"}), content_type=JSON)
    assert (changed.json()["prompt"]["number"], changed.json()["has_key"]) == (2, False)
    versions = client.get(reverse("api_source_prompts", args=[project.slug, saved["id"]])).json()["results"]
    assert [version["number"] for version in versions] == [2, 1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt": "text"}, "prompt"),
        ({"prompt": {"template": "{{ text }}", "sytem": ""}}, "prompt"),
        ({"prompt": {"template": "{{ text }}", "examples": [{"text": "a"}]}}, "prompt"),
        ({"prompt": {"template": "{{ txt }}"}}, "template"),
        ({"price": 999_999}, "price"),
        ({"api_key": "two words \n"}, "api_key"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(client, project, server, changes, field) -> None:
    answer = add(client, project, server, **changes)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not project.sources.exists()


def test_a_prompt_or_key_for_a_source_that_has_none_is_refused(client, project, server) -> None:
    recorded = {"backend": "recorded", "params": {"label_column": "x"}}
    assert add(client, project, server, **recorded, api_key=None).json()["field"] == "prompt"
    assert add(client, project, server, **recorded, prompt=None).json()["field"] == "api_key"


def test_the_price_list_charges_a_source(client, project, server) -> None:
    line = ModelPrice.objects.create(
        project=project, name="tiny", cost_function="tokens", prices={"per_token": "0.25"}
    )
    saved = add(client, project, server, price=line.pk).json()
    assert (saved["price"], saved["cost_function"], saved["prices"]) == (
        line.pk,
        "tokens",
        {"per_token": "0.25"},
    )


def test_a_source_is_tried(client, project, server) -> None:
    source = add(client, project, server).json()["id"]
    url = reverse("api_source_try", args=[project.slug, source])
    assert client.get(url).json() == {"job": None, "hidden": False, "mean_cost": None, "rows": None}
    job = client.post(url, content_type="application/json").json()["job"]
    assert client.post(url, content_type="application/json").status_code == 409  # one at a time
    jobs.run(job)
    shown = client.get(url).json()
    assert shown["job"]["state"] == "done"
    assert [row["value"] for row in shown["rows"]] == ["cat"] * 5
    assert shown["rows"][0]["asked"][0] == {"role": "system", "content": "Be brief."}


def test_a_reviewer_learns_nothing_of_a_try(client, project, server) -> None:
    source = add(client, project, server).json()["id"]
    server.default = "dog"
    url = reverse("api_source_try", args=[project.slug, source])
    job = client.post(url, content_type="application/json").json()["job"]
    jobs.run(job)
    client.force_login(add_member(project, "reviewer"))
    assert client.get(reverse("api_source_try", args=[project.slug, source])).status_code == 403
    assert client.get(reverse("api_job", args=[project.slug, job])).json()["result"] == {
        "items": 5,
        "usable": 5,
        "cost": "2.500000",
    }


def test_presets_name_where_they_come_from(client, project) -> None:
    presets = client.get(reverse("api_model_presets")).json()["results"]
    found = {preset["name"]: preset for preset in presets}
    assert found["qwen3-instruct-2507"]["params"] | {"max_tokens": 0} == {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "min_p": 0.0,
        "max_tokens": 0,
    }
    assert all(preset["source"].startswith("https://") for preset in presets if preset["name"] != "greedy")
