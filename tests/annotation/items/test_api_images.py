"""The images of items, read by programs with a token."""

import io
from typing import Any

import pytest
from django.core import signing
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from annotation.common.files import store_file
from annotation.items import image_links
from annotation.labelling import queue
from annotation.models import Item, Membership, Project, User
from annotation.people.members import join, remove_member
from annotation.people.tokens import make_token
from annotation.projects.lifecycle import archive_project, delete_project
from testbed.factories import add_member, make_image, make_image_items, make_project
from tests.annotation.apis import problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def item(project) -> Item:
    return make_image_items(project, 2)[0]


def program(user: User, **cap: Any) -> Client:
    return Client(headers={"Authorization": f"Token {make_token(user=user, name='tests', **cap)[1]}"})


def image_path(client: Client, project: Project) -> str:
    """As the list of items has it."""
    listed = client.get(reverse("api_items", args=[project.slug])).json()["results"]
    return str(listed[0]["image"])


def test_a_token_reads_what_the_list_of_items_names(project, item) -> None:
    client = program(add_member(project, "viewer"))
    path = image_path(client, project)
    answer = client.get(path, headers={"Accept": "image/png"})
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content) == make_image(0)
    for header, value in {
        "Content-Type": "image/png",
        "Content-Length": str(len(make_image(0))),
        "ETag": f'"{item.image.sha256}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private, no-store",
    }.items():
        assert answer.headers[header] == value
    again = client.get(path, headers={"If-None-Match": f'"other", W/{answer.headers["ETag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    part = client.get(path, headers={"Range": "bytes=2-5"})
    assert (part.status_code, b"".join(part.streaming_content)) == (206, make_image(0)[2:6])
    head = client.head(path)
    assert (head.status_code, head.headers["ETag"]) == (200, answer.headers["ETag"])


def test_whoever_labels_reads_the_image_of_the_item_that_is_before_them(project, item) -> None:
    annotator = add_member(project, "annotator")
    queue.create_batch(project=project, item_ids=[item.pk], blind=True, priority=1, entropy=3)
    client = program(annotator, role="annotator", project=project)
    claim = reverse("api_queue_claim", args=[project.slug])
    task = client.post(claim, {}, content_type="application/json").json()["task"]
    answer = client.get(task["item"]["image"])
    assert b"".join(answer.streaming_content) == make_image(0)


def test_others_find_nothing(project, item) -> None:
    path = image_path(program(project.created_by), project)
    other = make_project()
    for client in (
        program(other.created_by),
        program(project.created_by, project=make_project(project.created_by)),
    ):
        problem(client.get(path), 404)
    theirs = path.replace(f"/{project.slug}/", f"/{other.slug}/")
    problem(program(other.created_by).get(theirs), 404)
    problem(Client().get(path), 401)
    problem(program(project.created_by).post(path), 405)


def test_other_files_and_images_of_deleted_items_are_nothing(project, item) -> None:
    client = program(project.created_by)
    path = image_path(client, project)
    stored = store_file(
        project=project, content=io.BytesIO(b"x"), original_name="a.png", media_type="image/png"
    )
    problem(client.get(path.replace(item.image.sha256, stored.sha256)), 404)
    for name in ("0", "..", "%00", "x" * 5_000):
        problem(client.get(path.replace(item.image.sha256, name)), 404)
    item.delete()
    problem(client.get(path), 404)


def test_an_archived_project_still_shows_them(project, item) -> None:
    archive_project(project=project, actor=project.created_by)
    client = program(project.created_by)
    assert client.get(image_path(client, project)).status_code == 200


def test_a_lost_image_is_told_as_gone(project, item) -> None:
    client = program(project.created_by)
    path = image_path(client, project)
    default_storage.delete(item.image.storage_name)
    assert "no longer in the storage" in problem(client.get(path), 410)["detail"]


def linked(client: Client, path: str, **fields: Any) -> Any:
    return client.post(f"{path}link/", fields, content_type="application/json")


def test_a_signed_address_shows_one_image_for_a_while_without_a_token(project, item, monkeypatch) -> None:
    client = program(add_member(project, "annotator"))
    path = image_path(program(project.created_by), project)
    made = linked(client, path, seconds=60)
    assert made.status_code == 201
    url = made.json()["url"]
    answer = Client().get(url)
    assert b"".join(answer.streaming_content) == make_image(0)
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert int(answer.headers["Cache-Control"].removeprefix("private, max-age=")) <= 60
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    name = url.rstrip("/").rpartition("/")[2]
    other = signing.dumps([project.pk, Item.objects.last().image.sha256, 10**10], salt="another")
    payload = other.partition(":")[0]
    for wrong in (f"{payload}{name[name.index(':') :]}", name[:-1], other, "x"):
        assert Client().get(reverse("image_link", args=[wrong])).status_code == 404
    now = image_links.time.time()
    monkeypatch.setattr(image_links.time, "time", lambda: now + 61)
    assert Client().get(url).status_code == 404


def test_a_signed_address_ends_with_its_project(project, item) -> None:
    client = program(project.created_by)
    url = linked(client, image_path(client, project)).json()["url"]
    assert Client().get(url).status_code == 200
    delete_project(project=project, actor=project.created_by, name=project.name)
    assert Client().get(url).status_code == 404


@pytest.mark.parametrize("lost", ["membership", "account"])
def test_a_signed_address_ends_with_the_right_of_whoever_made_it(project, item, lost) -> None:
    maker = add_member(project, "annotator")
    url = linked(program(maker), image_path(program(project.created_by), project)).json()["url"]
    assert Client().get(url).status_code == 200
    if lost == "membership":
        Membership.objects.filter(user=maker).update(is_active=False)
    else:
        User.objects.filter(pk=maker.pk).update(is_active=False)
    assert Client().get(url).status_code == 404


def test_a_signed_address_does_not_come_back_with_a_new_membership(project, item) -> None:
    maker, owner = add_member(project, "annotator"), project.created_by
    url = linked(program(maker), image_path(program(owner), project)).json()["url"]
    remove_member(project=project, actor=owner, user=maker)
    assert Client().get(url).status_code == 404
    join(project=project, actor=owner, user=maker, role="annotator")
    assert Client().get(url).status_code == 404
    anew = linked(program(maker), image_path(program(owner), project)).json()["url"]
    assert Client().get(anew).status_code == 200


def test_who_may_see_a_signed_address_is_asked_at_once(
    project, item, django_assert_max_num_queries: Any
) -> None:
    url = linked(program(project.created_by), image_path(program(project.created_by), project)).json()["url"]
    # Beside it, the file and whether an item shows it.
    with django_assert_max_num_queries(3):
        assert Client().get(url).status_code == 200


def test_a_signed_address_that_does_not_say_who_made_it_holds_no_longer(project, item) -> None:
    name = signing.dumps([project.pk, item.image.sha256, 10**10], salt="annotation.items.image_links")
    assert Client().get(reverse("image_link", args=[name])).status_code == 404


def test_no_signed_address_where_the_image_is_none_of_the_project_or_the_time_out_of_bounds(
    project, item
) -> None:
    path = image_path(program(project.created_by), project)
    client = program(project.created_by)
    for seconds in (0, -1, 24 * 3600 + 1, 10**30, "x"):
        assert problem(linked(client, path, seconds=seconds), 400)["field"] == "seconds"
    problem(linked(program(make_project().created_by), path), 404)
    problem(linked(client, path.replace(item.image.sha256, "0" * 64)), 404)
