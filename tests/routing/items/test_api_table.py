"""The table of items, for programs: as its page has it, and as blind."""

from typing import Any

import pytest
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import Comment
from testbed.factories import add_member, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_the_table_is_filtered_sorted_and_paged_as_on_its_page(client) -> None:
    world = make_world(60)
    world.complete(m=30)
    client.force_login(world.manager)
    here = reverse("api_table", args=[world.project.slug])
    first = client.get(f"{here}?page_size=40").json()
    second = client.get(first["next"]).json()
    rows = first["results"] + second["results"]
    assert [row["external_id"] for row in rows] == [f"t{n}" for n in range(60)]
    assert (second["next"], first["blind"], first["cut"]) == (None, False, False)
    assert client.get(second["previous"]).json()["results"] == first["results"]
    assert all(row["label"] for row in rows)
    wanted = [row["external_id"] for row in rows if row["given_by"] == "person"]
    found = client.get(f"{here}?by=person&page_size=200").json()["results"]
    assert [row["external_id"] for row in found] == wanted
    for query in ("bye=person", "sort=nothing", "page_size=0", "stage=nowhere"):
        assert client.get(f"{here}?{query}").status_code == 400, query


def test_nothing_of_models_is_in_it_before_the_analysis(client) -> None:
    world = make_world(60)
    world.calibrated(m=30)
    client.force_login(world.manager)
    here = reverse("api_table", args=[world.project.slug])
    page = client.get(here).json()
    assert page["blind"] is True
    hidden = ("label", "uncertainty", "routed_to", "given_by")
    assert not [row for row in page["results"] if any(row[name] is not None for name in hidden)]
    assert client.get(f"{here}?u_from=0.5").status_code == 400
    client.force_login(add_member(world.project, "annotator"))
    assert client.get(here).status_code == 403


def test_many_items_are_changed_and_the_change_taken_back(client) -> None:
    world = make_world(60)
    world.complete(m=30)
    project = world.project
    client.force_login(world.manager)
    here = reverse("api_item_changes", args=[project.slug])
    mine = list(project.items.values_list("pk", flat=True)[:3])

    def post(body: object, place: str = here) -> Any:
        return client.post(place, body, content_type="application/json")

    made = post({"change": "flag", "items": mine, "text": "look at these"})
    assert (made.status_code, made.json()["state"], made.json()["result"]["items"]) == (202, "done", 3)
    flags = Comment.objects.filter(item__in=mine, is_flag=True, resolved_at__isnull=True)
    assert flags.count() == 3
    undone = post({}, reverse("api_item_change_undo", args=[project.slug, made.json()["id"]]))
    assert (undone.status_code, undone.json()["state"], flags.count()) == (202, "done", 0)
    by_filter = post({"change": "comment", "filters": {"by": "person"}, "text": "by people"}).json()
    jobs.run(by_filter["id"])
    people = Comment.objects.filter(text="by people", is_flag=False).count()
    listed = client.get(f"{reverse('api_table', args=[project.slug])}?by=person&page_size=200").json()
    assert people == len(listed["results"]) > 0
    for body, field in (
        ({"change": "flag"}, "items"),
        ({"change": "flag", "items": mine, "filters": {}}, "items"),
        ({"change": "burn", "items": mine}, "change"),
        ({"change": "comment", "items": mine}, "text"),
        ({"change": "flag", "filters": {"bye": "person"}}, "bye"),
    ):
        refused = post(body)
        assert (refused.status_code, refused.json()["field"]) == (400, field), body
    elsewhere = make_project(world.manager)
    foreign = reverse("api_item_change_undo", args=[elsewhere.slug, made.json()["id"]])
    assert post({}, foreign).status_code == 404


def test_a_change_cannot_ask_by_filters_what_models_said_before_the_analysis(client) -> None:
    world = make_world(60)
    world.calibrated(m=30)
    client.force_login(world.manager)
    here = reverse("api_item_changes", args=[world.project.slug])
    body = {"change": "flag", "filters": {"u_from": "0.5"}}
    assert client.post(here, body, content_type="application/json").status_code == 400
    assert not Comment.objects.exists()
