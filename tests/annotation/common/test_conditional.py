"""Whoever has an answer already is told that it is still the same, once they have shown that they may ask."""

import pytest

from annotation.models import Project
from annotation.people.members import change_role
from testbed.factories import add_member, make_items, make_project
from tests.annotation.apis import Api, problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    project = make_project()
    make_items(project, 2)
    return project


@pytest.fixture
def owner(project) -> Api:
    return Api(project, project.created_by)


def paths(project: Project) -> list[str]:
    return [
        "",
        "choices/",
        "items/",
        f"items/{project.items.first().pk}/",
        "labels/",
        "overview/",
        "sources/",
    ]


def asked_again(api: Api, path: str, tag: str, method: str = "get"):
    return getattr(api.client, method)(api.base + path, headers={"If-None-Match": tag})


def test_what_is_the_same_comes_without_its_body(project, owner, settings) -> None:
    settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "user": "1000/min"}
    for path in paths(project):
        first = owner.get(path)
        tag = first["ETag"]
        for sent in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = asked_again(owner, path, sent)
            assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag), path
            assert again["Cache-Control"] == "private, no-store"
            assert again["RateLimit-Policy"] == first["RateLimit-Policy"]
            assert "Content-Type" not in again
        assert asked_again(owner, path, tag, "head").status_code == 304
        other = asked_again(owner, path, '"other"')
        assert (other.status_code, other.json()) == (200, first.json())


def test_what_has_changed_comes_whole(project, owner) -> None:
    tags = {path: owner.get(path)["ETag"] for path in paths(project)}
    make_items(project, ["more"])
    assert asked_again(owner, "items/", tags["items/"]).status_code == 200
    owner.patch(name="Other")
    assert asked_again(owner, "", tags[""]).json()["name"] == "Other"


def test_a_role_that_changed_is_told_and_one_that_ended_is_asked_first(project, owner) -> None:
    person = add_member(project, "manager")
    api = Api(project, person)
    tag, items = api.get()["ETag"], api.get("items/")["ETag"]
    change_role(project=project, actor=project.created_by, user=person, role="annotator")
    assert asked_again(api, "", tag).json()["role"] == "annotator"
    problem(asked_again(api, "items/", items), 403)
    person.memberships.all().delete()
    problem(asked_again(api, "", tag), 404)


def test_an_if_match_that_nobody_compares_is_refused(project, owner) -> None:
    body = {"choices": [{"key": "cat", "name": "Feline"}, {"key": "dog", "name": "Dog"}]}
    before = owner.get("choices/").json()
    refused = owner.send("PUT", "choices/", body, **{"If-Match": owner.get("choices/")["ETag"]})
    assert problem(refused, 400)["field"] == "If-Match"
    assert owner.get("choices/").json() == before
    assert owner.send("PUT", "choices/", body, **{"If-Match": "*"}).status_code == 200


def test_what_is_made_says_where_it_is(project, owner) -> None:
    hook = {"url": "https://hooks.example.com/x", "events": ["label.created"]}
    price = {"name": "small", "cost_function": "tokens", "prices": {"per_token": "1"}}
    for path, body in (
        ("webhooks/", hook),
        ("prices/", price),
        ("invitations/", {"role": "annotator", "max_uses": 1, "days": 1}),
    ):
        made = owner.post(path, **body)
        assert made.status_code == 201, made.content
        assert owner.client.get(made["Location"]).json()["id"] == made.json()["id"]


def test_pages_name_those_beside_them(project, owner) -> None:
    make_items(project, ["third", "fourth"])
    first = owner.get("items/", page_size=2)
    assert first["Link"] == f'<{first.json()["next"]}>; rel="next"'
    second = owner.client.get(first.json()["next"])
    assert second["Link"] == f'<{second.json()["previous"]}>; rel="prev"'
    assert "Link" not in owner.get("items/")
