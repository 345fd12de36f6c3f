"""Items and labels out through the API: all of them, as they stood, and nothing that may not be seen."""

import json
import threading
from typing import Any

import pytest
from django.db import connection

from annotation.items import queries
from annotation.labelling import queue
from annotation.models import Item, Label, Project
from annotation.ports import routing_port
from testbed.factories import add_member, make_image_items, make_items, make_project
from tests.annotation.apis import Api, problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def project() -> Project:
    project = make_project()
    project.columns = ["text", "n", "score"]
    project.save()
    data = {"score": "0.9", "n": "1.5", "text": "x"}
    items = make_items(project, ["one\n\u2028", "zwei ü", "three"], data=data, typed={"n": 1.5})
    items += make_image_items(project, 1)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=3
    )
    return project


@pytest.fixture
def viewer(project) -> Api:
    return Api(project, add_member(project, "viewer"))


@pytest.fixture
def small_pages(monkeypatch) -> None:
    monkeypatch.setattr(queries, "PAGE", 2)


def give(project: Project, user: Any, *values: str) -> list[Label]:
    labels = []
    for value in values:
        task = queue.claim(project=project, user=user)
        labels.append(
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=value,
                idempotency_key=f"{user.pk}-{task.work_item.pk}",
                comment="sure",
                lead_time_ms=900,
            )
        )
    return labels


class TestItems:
    def test_lines_are_what_the_pages_list(self, project, viewer, small_pages) -> None:
        lines = viewer.lines("items.ndjson")
        assert lines == viewer.get("items/").json()["results"]
        assert [line["external_id"] for line in lines] == ["t0", "t1", "t2", "i3.png"]
        assert lines[0]["text"] == "one\n\u2028"
        raw = b"".join(viewer.get("items.ndjson").streaming_content).decode()
        assert len(raw.splitlines()) == 4

    def test_filters(self, project, viewer) -> None:
        first, *_rest, last = Item.objects.order_by("position")
        for query, names in (
            ({"external_id": "t1"}, ["t1"]),
            ({"created_after": last.created_at.isoformat()}, []),
            ({"created_before": last.created_at.isoformat()}, ["t0", "t1", "t2"]),
            ({"created_before": first.created_at.isoformat()}, []),
        ):
            rows = viewer.lines("items.ndjson", **query)
            assert [row["external_id"] for row in rows] == names
            assert viewer.get("items/", **query).json()["results"] == rows
        for path in ("items/", "items.ndjson"):
            for query in ({"job": 10**9}, {"created_after": "today"}, {"score": "0.9"}, {"label": "cat"}):
                assert problem(viewer.get(path, **query), 400)["field"] in query

    def test_columns_come_as_they_were_without_those_of_models(self, project, viewer, monkeypatch) -> None:
        first = viewer.get("items/", columns="true").json()["results"][0]
        assert list(first["data"].items()) == [("text", "x"), ("n", 1.5), ("score", "0.9")]
        monkeypatch.setattr(routing_port(), "model_columns", lambda **_: {"score"})
        for rows in (
            viewer.get("items/", columns="true").json()["results"],
            viewer.lines("items.ndjson", columns="true"),
        ):
            assert all("score" not in row["data"] for row in rows)
            assert rows[0]["data"] == {"text": "x", "n": 1.5}
        assert all("data" not in row for row in viewer.lines("items.ndjson"))

    def test_each_has_its_address(self, project, viewer) -> None:
        for query in ({}, {"columns": "true"}):
            rows = viewer.get("items/", **query).json()["results"]
            assert [viewer.get(f"items/{row['id']}/", **query).json() for row in rows] == rows
        assert problem(viewer.get(f"items/{rows[0]['id']}/", job="1"), 400)["field"] == "job"
        (elsewhere,) = make_items(make_project(), 1)
        problem(viewer.get(f"items/{elsewhere.pk}/"), 404)

    def test_not_for_annotators(self, project) -> None:
        ann = Api(project, add_member(project, "annotator"))
        problem(ann.get(f"items/{Item.objects.first().pk}/"), 403)
        problem(ann.get("items/"), 403)
        problem(ann.get("items.ndjson"), 403)

    def test_whoever_asks_for_lines_gets_them_and_errors_are_told(self, project, viewer) -> None:
        accept = {"headers": {"Accept": "application/x-ndjson"}}
        found = viewer.client.get(viewer.base + "items.ndjson", **accept)
        assert found.status_code == 200
        refused = viewer.client.get(viewer.base + "items.ndjson?jobb=1", **accept)
        assert problem(refused, 400)["field"] == "jobb"


class TestLabels:
    def test_the_newest_of_each_with_who_gave_it(self, project, viewer, small_pages) -> None:
        ann, ben = add_member(project), add_member(project)
        first, *_rest = give(project, ann, "cat", "cat", "dog")
        give(project, ben, "dog")
        newest = queue.correct(user=ann, label_id=first.pk, value="dog", idempotency_key="c")
        rows = viewer.get("labels/").json()["results"]
        assert rows == viewer.lines("labels.ndjson")
        assert [row["value"] for row in rows] == ["cat", "dog", "dog", "dog"]
        last = rows[-1]
        assert (last["id"], last["supersedes"], last["version"]) == (newest.pk, first.pk, 2)
        assert last["external_id"] == newest.item.external_id
        assert rows[0]["lead_time_ms"] == 900
        assert [row["annotator"] for row in viewer.lines("labels.ndjson", annotator=ben.username)] == [
            ben.username
        ]
        by_item = viewer.get("labels/", external_id=newest.item.external_id).json()["results"]
        assert by_item == [last]
        assert viewer.lines("labels.ndjson", since=last["created_at"]) == [last]
        assert problem(viewer.get("labels/", since="x"), 400)["field"] == "since"
        assert problem(viewer.get("labels.ndjson", value="cat"), 400)["field"] == "value"

    def test_each_has_its_address_as_long_as_the_list_has_it(self, project, viewer, monkeypatch) -> None:
        ann, ben = add_member(project), add_member(project)
        first, second = give(project, ann, "cat", "cat")
        newest = queue.correct(user=ann, label_id=first.pk, value="dog", idempotency_key="c")
        rows = viewer.get("labels/").json()["results"]
        assert [viewer.get(f"labels/{row['id']}/").json() for row in rows] == rows
        problem(viewer.get(f"labels/{first.pk}/"), 404)
        own, other = Api(project, ann), Api(project, ben)
        assert own.get(f"labels/{newest.pk}/").json()["external_id"] is None
        problem(other.get(f"labels/{newest.pk}/"), 404)
        hidden = {batch.pk for batch in project.work_batches.all()}
        monkeypatch.setattr(routing_port(), "hidden_batches", lambda **_: hidden)
        problem(viewer.get(f"labels/{second.pk}/"), 404)
        assert own.get(f"labels/{second.pk}/").status_code == 200

    def test_what_is_hidden_is_missing_for_all_who_see_items(self, project, viewer, monkeypatch) -> None:
        give(project, add_member(project), "cat")
        hidden = {batch.pk for batch in project.work_batches.all()}
        monkeypatch.setattr(routing_port(), "hidden_batches", lambda **_: hidden)
        for role in ("owner", "manager", "reviewer", "viewer"):
            api = Api(project, add_member(project, role))
            assert api.get("labels/").json()["results"] == []
            assert api.lines("labels.ndjson") == []

    def test_annotators_see_all_of_their_own_and_no_name_of_an_item(self, project, monkeypatch) -> None:
        ann, ben = add_member(project), add_member(project)
        give(project, ann, "cat")
        give(project, ben, "dog")
        hidden = {batch.pk for batch in project.work_batches.all()}
        monkeypatch.setattr(routing_port(), "hidden_batches", lambda **_: hidden)
        api = Api(project, ann)
        (own,) = api.get("labels/").json()["results"]
        assert (own["value"], own["annotator"], own["external_id"]) == ("cat", ann.username, None)
        assert api.lines("labels.ndjson") == [own]
        assert api.lines("labels.ndjson", annotator=ben.username) == []
        assert problem(api.get("labels/", external_id="t0"), 400)["field"] == "external_id"

    def test_labels_of_other_projects_are_not_there(self, project, viewer) -> None:
        other = make_project()
        items = make_items(other, 1)
        queue.create_batch(
            project=other, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=3
        )
        give(other, add_member(other), "cat")
        assert viewer.lines("labels.ndjson") == []


@pytest.mark.parametrize("path", ["items.ndjson", "items.ndjson?columns=true", "labels.ndjson"])
def test_no_row_takes_a_query_of_its_own(project, viewer, path, django_assert_max_num_queries) -> None:
    make_items(project, 30)
    give(project, add_member(project), "cat", "cat", "dog", "dog")
    with django_assert_max_num_queries(12):
        b"".join(viewer.get(path).streaming_content)


def test_long_texts_are_read_a_few_at_a_time(project, viewer, monkeypatch) -> None:
    """As many together as may be, one that is longer by itself; none is left out."""
    monkeypatch.setattr(queries.limits, "PAGE_CHARACTERS", 100)
    make_items(project, ["x" * size for size in (40, 50, 60, 300, 10, 20)])
    before = project.items.count()
    pieces = [piece.splitlines() for piece in viewer.get("items.ndjson").streaming_content]
    texts = [[len(json.loads(line).get("text", "")) for line in piece] for piece in pieces]
    assert all(sum(piece) <= 100 or len(piece) == 1 for piece in texts)
    assert [size for piece in texts for size in piece if size > 5][-6:] == [40, 50, 60, 300, 10, 20]
    assert sum(map(len, texts)) == before


def test_an_error_on_the_way_cuts_the_answer_off(project, viewer, small_pages, monkeypatch) -> None:
    real = queries.in_pages

    def breaks(*args: Any, **options: Any) -> Any:
        yield next(real(*args, **options))
        raise RuntimeError("the database is gone")

    monkeypatch.setattr("annotation.items.api.in_pages", breaks)
    response = viewer.get("items.ndjson")
    content = response.streaming_content
    assert len(next(content).splitlines()) == 2
    with pytest.raises(RuntimeError):
        next(content)


@pytest.mark.django_db(transaction=True)
def test_what_comes_while_it_is_read_is_not_in_it(project, viewer, small_pages) -> None:
    content = viewer.get("items.ndjson").streaming_content
    first = next(content)
    make_items(project, 5)
    rest = b"".join(content)
    names = [json.loads(line)["external_id"] for line in (first + rest).splitlines()]
    assert names == ["t0", "t1", "t2", "i3.png"]
    assert project.items.count() == 9
    assert not connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_whoever_goes_away_leaves_no_reader(project, viewer, small_pages) -> None:

    response = viewer.get("items.ndjson")
    next(iter(response.streaming_content))
    response.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "snapshot-reader"]
