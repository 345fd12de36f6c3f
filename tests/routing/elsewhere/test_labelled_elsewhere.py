"""What a run sends to people, labelled in another program: given out without models' answers, taken back."""

import json

import pytest
from django.urls import reverse

from annotation.models import AuditEvent, Label, WorkItem
from testbed.factories import add_member
from testbed.worlds import make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    made = make_world(100)
    made.routed(m=40)
    return made


def out(client, world, shape="label-studio", user=None):
    client.force_login(user or world.manager)
    address = reverse("api_run_work_lines", args=[world.project.slug, 1])
    return client.get(address, {"shape": shape})


def lines(response):
    assert response.status_code == 200
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def back(client, world, rows, **more):
    client.force_login(world.manager)
    address = reverse("api_run_work", args=[world.project.slug, 1])
    return client.post(address, {"rows": rows, **more}, content_type="application/json")


def answered(task, choice="cat", by=3):
    result = [{"type": "choices", "from_name": "label", "to_name": "item", "value": {"choices": [choice]}}]
    return {**task, "id": 7, "annotations": [{"result": result, "completed_by": by, "lead_time": 2.5}]}


def test_tasks_hold_what_people_see_and_nothing_of_a_model(client, world):
    tasks = lines(out(client, world))
    waiting = WorkItem.objects.filter(batch=world.project.runs.get().routed_batch, state="open")
    assert [task["meta"]["hypac"]["item"] for task in tasks] == list(
        waiting.order_by("priority", "order").values_list("item", flat=True)
    )
    assert {tuple(task) for task in tasks} == {("data", "meta")}
    assert {tuple(task["data"]) for task in tasks} == {("text",)}
    own = lines(out(client, world, "hypac"))
    assert {tuple(row) for row in own} == {("item", "name", "text", "fields", "image")}
    assert AuditEvent.objects.filter(action="run.handed_out").count() == 2


def test_an_export_of_label_studio_comes_back_once(client, world):
    person = add_member(world.project, "annotator")
    tasks = lines(out(client, world))
    rows = [answered(tasks[0]), answered(tasks[1], "no such label")]
    people = {"user 3": person.username}
    taken = back(client, world, rows, people=people).json()
    assert (taken["stored"], taken["known"]) == (1, 0)
    assert [entry["row"] for entry in taken["refused"]] == [2]
    label = Label.objects.get(annotator=person)
    assert (label.item_id, label.value, label.lead_time_ms) == (
        tasks[0]["meta"]["hypac"]["item"],
        "cat",
        2500,
    )
    again = back(client, world, rows[:1], people=people).json()
    assert again == {"stored": 0, "known": 1, "refused": []}
    other = back(client, world, [answered(tasks[0], "dog")], people=people).json()
    assert "another label" in other["refused"][0]["reason"]
    somebody = add_member(world.project, "annotator")
    late = back(client, world, [answered(tasks[0])], people={"user 3": somebody.username}).json()
    assert "waits for no answer" in late["refused"][0]["reason"]
    assert len(lines(out(client, world))) == len(tasks) - 1
    assert not WorkItem.objects.filter(state=WorkItem.State.LEASED).exists()


def test_rows_without_a_person_or_an_item_of_the_run_are_refused(client, world):
    person = add_member(world.project, "annotator")
    item = lines(out(client, world, "hypac"))[0]["item"]
    calibration = world.project.runs.get().calibration_batch.work_items.first().item_id
    rows = [
        {"item": item, "value": "cat", "annotator": "nobody"},
        {"item": calibration, "value": "cat", "annotator": person.username},
        {"item": "x", "value": "cat", "annotator": person.username},
    ]
    taken = back(client, world, rows).json()
    assert (taken["stored"], [entry["row"] for entry in taken["refused"]]) == (0, [1, 2, 3])
    assert "no member" in taken["refused"][0]["reason"]


def test_the_calibration_set_is_not_given_out(client):
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    response = out(client, world)
    assert response.status_code == 409
    assert "blind" in response.json()["detail"]
    assert back(client, world, [{"item": 1, "value": "cat"}]).status_code == 409


def test_another_shape_is_refused(client, world):
    assert out(client, world, "cvat").status_code == 400
