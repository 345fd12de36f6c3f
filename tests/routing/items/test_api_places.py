"""Where a list goes on: only at a place that an answer about the same list gave out."""

import base64
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from annotation.api.root import CachedSchemaGenerator
from annotation.outside.webhooks.manage import create_webhook
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.annotation.apis import Api, problem
from tests.pages.test_access import synchronised

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
MADE_UP = (
    *("", "garbage", "!", "null", "0", "-1", "\x7f", "é", "[1]", '["a","b"]', "." * 99, "9" * 30),
    *(base64.b64encode(text).decode() for text in (b"p=abc", b"p=1", b"o=5", b"r=1&p=2", b"p=" + b"9" * 30)),
)


def lists() -> Iterator[tuple[str, str]]:
    """(path, parameter) of all that the schema says has pages."""
    for path, methods in CachedSchemaGenerator().get_schema(public=True)["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", []):
            if parameter["name"] in ("cursor", "after", "before"):
                yield path, parameter["name"]


def test_what_no_answer_gave_out_is_refused_by_every_list() -> None:
    world = make_world(20)
    world.routed(m=10)
    api = Api(world.project, world.manager)
    job, run = world.project.jobs.first(), world.project.runs.first()
    webhook, _ = create_webhook(
        project=world.project, actor=world.manager, url="https://example.org/", events=["run.routed"]
    )
    connection = synchronised(world).connection_id
    asked = list(lists())
    assert len(asked) > 10
    for path, name in asked:
        address = path.format(
            slug=world.project.slug,
            job_id=job.pk,
            number=run.number,
            webhook_id=webhook.pk,
            connection_id=connection,
        )
        for cursor in MADE_UP:
            told = problem(api.client.get(address, {name: cursor}), 400)
            assert told["field"] == name, (path, cursor)


@pytest.fixture
def api() -> Api:
    project = make_project()
    make_items(project, 5)
    return Api(project, project.created_by)


def cursor_in(address: str, name: str = "cursor") -> str:
    return parse_qs(urlsplit(address).query)[name][0]


def test_a_place_of_another_list_or_of_other_filters_is_refused(api) -> None:
    cursor = cursor_in(api.get("items/", page_size=2, columns="true").json()["next"])
    more = api.get("items/", cursor=cursor, columns="true", page_size=3).json()["results"]
    assert [item["external_id"] for item in more] == ["t2", "t3", "t4"]
    other = make_project()
    assert problem(api.get("items/", cursor=cursor), 400)["field"] == "cursor"
    assert problem(api.get("items/", cursor=cursor, columns="true", external_id="t4"), 400)
    assert problem(api.get("jobs/", cursor=cursor), 400)["field"] == "cursor"
    assert problem(Api(other, other.created_by).get("items/", cursor=cursor, columns="true"), 400)
    changed = cursor[:-1] + ("a" if cursor[-1] != "a" else "b")
    assert problem(api.get("items/", cursor=changed, columns="true"), 400)


def test_so_is_one_of_the_table(api) -> None:
    first = api.get("table/", page_size=2, sort="-name").json()
    after = cursor_in(first["next"], "after")
    page = api.get("table/", after=after, sort="-name", page_size=2).json()
    back = api.client.get(page["previous"]).json()
    assert back["results"] == first["results"]
    assert problem(api.get("table/", after=after), 400)["field"] == "after"
    assert problem(api.get("table/", after=after, sort="-name", q="one"), 400)["field"] == "after"
    both = {"after": after, "before": cursor_in(page["previous"], "before"), "sort": "-name"}
    assert problem(api.get("table/", **both), 400)["field"] == "before"
