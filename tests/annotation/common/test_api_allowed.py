"""Whoever sends what is not allowed is told what is: values, media types, methods."""

from typing import Any

import pytest
from django.test import Client
from rest_framework import serializers

from annotation.common.api.allowed import name_choices
from annotation.common.events import EVENTS
from annotation.models import Membership, Project
from testbed.factories import make_project
from tests.annotation.apis import NDJSON, Api, problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
URL = "https://hooks.example.org/"
ROLES = ", ".join(Membership.Role.values)


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> Api:
    return Api(project, project.created_by)


def test_an_unknown_event_is_answered_with_those_that_there_are(api: Api) -> None:
    made = api.post("webhooks/", url=URL, events=["run.routed"]).json()
    one = f"webhooks/{made['id']}/"
    for answer in (
        api.post("webhooks/", url=URL, events=["run.routed", "run.exploded"]),
        api.patch(one, events=["run.exploded"]),
        api.get(f"{one}deliveries/", event="run.exploded"),
    ):
        told = problem(answer, 400)["detail"]
        assert told.startswith("There is no “run.exploded”; choose one of ")
        assert all(name in told for name in EVENTS)
    assert problem(api.post("webhooks/", url=URL, events=[]), 400)["detail"].endswith("project.archived.")
    assert api.get(f"{one}deliveries/", event="webhook.test").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("GET", "members/?role=boss", None, ROLES),
        ("POST", "members/", {"username": "ann", "role": "boss"}, ROLES),
        ("POST", "invitations/", {"role": "boss"}, ROLES),
        ("GET", "jobs/?state=late", None, "queued, running, paused"),
        ("PATCH", "", {"text_format": "html"}, "plain, markdown"),
        ("POST", "queue/skip/", {"work_item": 1, "token": "x", "reason": "tired"}, "unclear"),
        ("GET", "table/?sort=beauty", None, "position"),
        ("GET", "table/?label=emu", None, "There is no such label; choose one of cat, dog."),
        ("POST", "table/changes/", {"change": "burn", "items": [1]}, "choose one of"),
        ("GET", "items/?order=id", None, "the parameters are columns, created_after"),
    ],
)
def test_a_value_that_is_none_of_them(api: Api, method: str, path: str, body: Any, words: str) -> None:
    answer = api.get(path) if method == "GET" else api.send(method, path, body)
    assert words in problem(answer, 400)["detail"]


def test_a_token_as_nobody_that_there_is(api: Api) -> None:
    answer = api.client.post(
        "/api/v1/tokens/", {"name": "x", "role": "boss"}, content_type="application/json"
    )
    assert f"choose one of {ROLES}." in problem(answer, 400)["detail"]


def test_another_media_type_is_answered_with_those_that_the_address_takes(api: Api) -> None:
    def detail(path: str, content_type: str) -> str:
        answer = api.client.post(api.base + path, "x", content_type=content_type)
        return str(problem(answer, 415)["detail"])

    for path in ("webhooks/", "connections/", "imports/", "members/"):
        assert "takes application/json: name it" in detail(path, "text/plain")
    assert f"takes {NDJSON}: name it" in detail("items/", "application/json")


def test_what_cannot_be_answered_and_methods_that_there_are_not(api: Api) -> None:
    answer = api.client.get(f"{api.base}jobs/", headers={"accept": "text/csv"})
    assert "answers with application/json: name it in the header Accept" in problem(answer, 406)["detail"]
    assert problem(api.send("PUT", "webhooks/", {}), 405)["detail"].endswith(
        "This address takes GET or POST."
    )


def test_choices_are_named_however_deep_they_lie() -> None:
    class Inner(serializers.Serializer[Any]):
        kind = serializers.ChoiceField(choices=["a", "{b}"])

    class Outer(serializers.Serializer[Any]):
        rows = Inner(many=True)
        named = serializers.DictField(child=serializers.ListField(child=Inner()))

    data = {"rows": [{"kind": "a"}, {"kind": "c"}], "named": {"x": [{"kind": "{0}"}]}}
    serializer = Outer(data=data)
    name_choices(serializer)
    assert not serializer.is_valid()
    told = str(serializer.errors)
    assert "There is no “c”; choose one of a, {b}." in told
    assert "There is no “{0}”; choose one of a, {b}." in told
    assert "choose one of" not in str(Inner().fields["kind"].error_messages)


def test_somebody_unknown_is_told_nothing_of_it(project: Project) -> None:
    answer = Client().post(f"/api/v1/projects/{project.slug}/webhooks/", "x", content_type="text/plain")
    assert "application/json" not in problem(answer, 401)["detail"]


def test_half_a_character_in_a_name_is_told_and_breaks_no_answer(api: Api, project: Project) -> None:
    answer = api.client.post(
        f"/api/v1/projects/{project.slug}/webhooks/",
        b'{"url": "https://hooks.example.org/", "\\ud800": 1}',
        content_type="application/json",
    )
    assert "\\ud800" in problem(answer, 400)["field"]


def test_an_unknown_kind_of_work_is_answered_with_those_that_there_are(api: Api) -> None:
    told = problem(api.get("jobs/?kind=imprt"), 400)
    assert (told["field"], "imprt" in told["detail"]) == ("kind", True)
    assert all(name in told["detail"] for name in ("import", "prepare_run", "deliver_run"))
    assert api.get("jobs/?kind=import").json()["results"] == []
