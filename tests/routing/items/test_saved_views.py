"""Views of the table under a name: one's own, those of the project, and who may change which."""

import re

import pytest
from django.urls import reverse

from annotation.models import AuditEvent, Project
from routing.items.saved_views import MOST
from routing.models import SavedView
from testbed.factories import add_member, make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    project = make_project(choices=("cat", "dog"))
    make_items(project, 3)
    return project


def save(client, project: Project, name: str, query: str = "label=cat&sort=-name", **more: str):
    return client.post(
        reverse("items_views", args=[project.slug]), {"name": name, "query": query, **more}, follow=True
    )


def tabs(client, project: Project, query: str = "") -> dict[str, bool]:
    """Names of the views on the page, and whether each is the current one."""
    page = client.get(reverse("items", args=[project.slug]) + f"?{query}").content.decode()
    part = page.partition('aria-label="Saved views"')[2].partition("</nav>")[0]
    found = re.findall(r"<a href=\"[^\"]*\"( aria-current=\"page\")?>(?:<bdi>)?([^<]*)", part)
    return {name: bool(current) for current, name in found}


def test_a_view_keeps_filters_order_and_columns_under_a_name(client_of, project) -> None:
    client = client_of(project.created_by)
    save(client, project, "  Cats  ", "label=cat&sort=-name&col=label&col=by&after=x&nonsense=1")
    view = SavedView.objects.get()
    assert (view.name, view.owner) == ("Cats", project.created_by)
    assert view.query == "label=cat&sort=-name&col=label&col=by"
    assert tabs(client, project) == {"All items": True, "Cats": False}
    assert tabs(client, project, view.query) == {"All items": False, "Cats": True}
    change = reverse("items_view", args=[project.slug, view.pk])
    client.post(change, {"name": "Felines"})
    assert "Felines" in tabs(client, project)
    client.post(change, {"delete": "1", "name": "Felines"})
    assert not SavedView.objects.exists()
    assert not AuditEvent.objects.filter(action__startswith="view.").exists()  # nobody else's concern


def test_a_persons_own_are_theirs_and_managers_keep_those_of_the_project(client_of, project) -> None:
    owner = client_of(project.created_by)
    viewer = client_of(add_member(project, "viewer"))
    save(viewer, project, "mine")
    refused = save(viewer, project, "ours", shared="on")
    assert refused.status_code == 403
    assert not SavedView.objects.filter(name="ours").exists()
    save(owner, project, "ours", shared="on")
    assert set(tabs(viewer, project)) == {"All items", "mine", "ours"}
    assert set(tabs(owner, project)) == {"All items", "ours"}
    ours, mine = SavedView.objects.get(name="ours"), SavedView.objects.get(name="mine")
    viewer.post(reverse("items_view", args=[project.slug, ours.pk]), {"delete": "1"})
    assert SavedView.objects.filter(pk=ours.pk).exists()
    assert owner.post(reverse("items_view", args=[project.slug, mine.pk]), {"delete": "1"}).status_code == 404
    assert AuditEvent.objects.filter(action="view.saved").count() == 1


def test_names_are_there_once_and_views_are_few(client_of, project) -> None:
    client = client_of(project.created_by)
    for name, said in (("", "a name of at most"), ("x" * 61, "a name of at most")):
        assert said in save(client, project, name).content.decode()
    for shared in ({}, {"shared": "on"}):
        save(client, project, "twice", **shared)
        assert "called “twice” already" in save(client, project, "twice", **shared).content.decode()
    SavedView.objects.bulk_create(
        SavedView(project=project, owner=project.created_by, name=f"{n}") for n in range(MOST - 1)
    )
    assert f"There are {MOST} such views already" in save(client, project, "more").content.decode()


def test_the_api_lists_makes_and_deletes_them(client_of, project) -> None:
    client, url = client_of(project.created_by), reverse("api_saved_views", args=[project.slug])
    body = {"name": "Dogs", "query": "label=dog", "shared": True}
    made = client.post(url, body, content_type="application/json")
    assert made.status_code == 201
    assert {name: made.json()[name] for name in body} == body
    taken = client.post(url, body, content_type="application/json")
    assert (taken.status_code, taken.json()["code"]) == (409, "view_name_taken")
    viewer = client_of(add_member(project, "viewer"))
    assert [one["name"] for one in viewer.get(url).json()["results"]] == ["Dogs"]
    own = reverse("api_saved_view", args=[project.slug, made.json()["id"]])
    refused = viewer.delete(own)
    assert (refused.status_code, refused.json()["code"]) == (409, "view_of_project")
    assert client.delete(own).status_code == 204
    assert client.delete(own).status_code == 404


def test_the_chip_of_a_label_has_its_colour(client_of, project) -> None:
    color = project.choices.get(key="cat").color
    page = client_of(project.created_by).get(reverse("items", args=[project.slug]), {"human": "cat"})
    chips = page.content.decode().partition('class="chips"')[2].partition("</ul>")[0]
    assert f'fill="{color}"' in chips
