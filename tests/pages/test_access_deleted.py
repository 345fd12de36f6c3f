"""Nobody can open a deleted project from that moment, whoever they were in it, before its removal begins."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from annotation.people.invitations import create_invitation
from annotation.people.tokens import make_token
from annotation.projects.lifecycle import delete_project
from testbed.factories import add_member
from testbed.worlds import World
from tests.pages.test_access import API, PAGES, ROLES, address, arguments as arguments, world as world

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.database]


def test_no_address_answers(world: World, arguments: dict[str, object]) -> None:
    """By the short name that it had, and to its owners by the one that it has now."""
    project = world.project
    clients = {role: Client(raise_request_exception=False) for role in ROLES}
    for role, client in clients.items():
        client.force_login(add_member(project, role))
    _, secret = make_token(user=world.manager, name="nightly")
    program = Client(headers={"Authorization": f"Token {secret}"})
    delete_project(project=project, actor=world.manager, name=project.name)
    project.refresh_from_db()
    assert project.slug != arguments["slug"]
    asked = [(role, client, {**PAGES, **API}, arguments["slug"]) for role, client in clients.items()]
    asked += [("owner", clients["owner"], {**PAGES, **API}, project.slug)]
    asked += [("a token", program, API, arguments["slug"])]
    wrong = []
    for who, client, table, slug in asked:
        for name, methods in table.items():
            path = address(name, {**arguments, "slug": slug})
            for method in methods:
                status = client.generic(method, path).status_code
                if status != 404:
                    wrong.append(f"{method} {name} as {who}: {status}")
    assert wrong == []


def test_no_list_names_it(world: World) -> None:
    project = world.project
    assert project.name in listed(world.manager)
    delete_project(project=project, actor=world.manager, name=project.name)
    assert project.name not in listed(world.manager)


def listed(user) -> str:
    client = Client()
    client.force_login(user)
    pages = ("project_list", "account", "tokens", "api_projects", "api_tokens")
    return "".join(client.get(reverse(page)).content.decode() for page in pages)


def test_a_token_for_it_alone_has_ended(world: World) -> None:
    _, secret = make_token(user=world.manager, name="nightly", project=world.project)
    client = Client(headers={"Authorization": f"Token {secret}"})
    address = reverse("api_project", args=[world.project.slug])
    assert client.get(address).status_code == 200
    delete_project(project=world.project, actor=world.manager, name=world.project.name)
    assert client.get(address).status_code == 401


def test_nobody_joins_it_by_an_invitation(world: World) -> None:
    project = world.project
    _, token = create_invitation(project=project, actor=world.manager, role="annotator", max_uses=2, days=1)
    link = reverse("join_link", args=[token])
    assert project.name in Client().get(link).content.decode()
    delete_project(project=project, actor=world.manager, name=project.name)
    assert project.name not in Client().get(link).content.decode()
    unknown = Client().get(reverse("join_link", args=["x" * 43]))
    assert Client().get(link).status_code == unknown.status_code
    assert not Project.objects.get(pk=project.pk).memberships.exists()
