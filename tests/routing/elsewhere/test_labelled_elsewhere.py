"""What a run sends to people, labelled in another program: given out without models' answers, taken back."""

import json
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.labelling import queue
from annotation.models import AuditEvent, Item, Label, Project, User, WorkItem
from annotation.people.invite_by_name import invite_person
from routing.core.correctness import left_open_by
from routing.runs.labelled_elsewhere import elsewhere_in_words
from routing.runs.labelling_pace import labelling_progress_of
from testbed.delivered import delivered
from testbed.experts import ExpertWorld
from testbed.factories import add_member
from testbed.worlds import make_world, rows_of
from tests.verify.reports import found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def world():
    made = make_world(100)
    made.routed(m=40)
    return made


def newest(world):
    return world.project.runs.order_by("-number").first().number


def out(client, world, shape="label-studio", user=None, **more):
    client.force_login(user or world.manager)
    address = reverse("api_run_work_lines", args=[world.project.slug, newest(world)])
    return client.get(address, {"shape": shape, **more})


def waiting(client, world, part, *, status=200):
    client.force_login(world.manager)
    response = client.get(reverse("api_run_work", args=[world.project.slug, newest(world)]), {"part": part})
    assert response.status_code == status
    return response.json()


def lines(response):
    assert response.status_code == 200
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def back(client, world, rows, **more):
    client.force_login(world.manager)
    address = reverse("api_run_work", args=[world.project.slug, newest(world)])
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
    rows = [answered(tasks[0]), answered(tasks[1], "no such label"), answered(tasks[2])]
    rows[2]["annotations"][0]["result"] = []
    people = {"user 3": person.username}
    taken = back(client, world, rows, people=people).json()
    assert (taken["stored"], taken["known"]) == (1, 0)
    assert [entry["row"] for entry in taken["refused"]] == [2, 3]
    assert taken["refused"][1]["reason"] == "It is empty."
    label = Label.objects.get(annotator=person)
    assert (label.item_id, label.value, label.lead_time_ms) == (
        tasks[0]["meta"]["hypac"]["item"],
        "cat",
        2500,
    )
    batch = label.work_item.batch
    pace = labelling_progress_of(batch, queue.batch_progress(batch))
    assert (pace.last_hour, pace.per_hour) == (1, None)  # many come at once, which is no pace
    again = back(client, world, rows[:1], people=people).json()
    assert again == {"stored": 0, "known": 1, "refused": []}
    other = back(client, world, [answered(tasks[0], "dog")], people=people).json()
    assert "another label" in other["refused"][0]["reason"]
    somebody = add_member(world.project, "annotator")
    late = back(client, world, [answered(tasks[0])], people={"user 3": somebody.username}).json()
    assert "Somebody else has labelled" in late["refused"][0]["reason"]
    assert len(lines(out(client, world))) == len(tasks) - 1
    assert not WorkItem.objects.filter(state=WorkItem.State.LEASED).exists()


def test_rows_without_a_person_or_an_item_of_the_run_are_refused(client, world):
    person, owner = (add_member(world.project, role) for role in ("annotator", "owner"))
    User.objects.create_user("Invited")
    invite_person(project=world.project, actor=owner, username="Invited", role="annotator")
    item = lines(out(client, world, "hypac"))[0]["item"]
    calibration = world.project.runs.get().calibration_batch.work_items.first().item_id
    rows = [
        {"item": item, "value": "cat", "annotator": "nobody"},
        {"item": calibration, "value": "cat", "annotator": person.username},
        {"item": "x", "value": "cat", "annotator": person.username},
        {"item": item, "value": "cat", "annotator": "invited"},
    ]
    taken = back(client, world, rows).json()
    assert (taken["stored"], [entry["row"] for entry in taken["refused"]]) == (0, [1, 2, 3, 4])
    assert "no member" in taken["refused"][0]["reason"]
    assert taken["refused"].pop()["reason"].startswith("“invited” has not accepted the invitation")
    names = dict(Item.objects.values_list("pk", "external_id"))
    told = [(entry["item"], entry["name"], entry["annotator"]) for entry in taken["refused"]]
    assert told == [
        (item, names[item], "nobody"),
        (calibration, names[calibration], person.username),
        (None, "", person.username),
    ]


def test_each_refusal_says_what_is_wrong_to_whoever_sent_the_rows(client, world):
    person = add_member(world.project, "annotator")
    task, other = lines(out(client, world))[:2]
    item = other["meta"]["hypac"]["item"]
    rows = [
        {"text": "...", "label": "cat", "id": 3, "annotation_id": 4, "annotator": 3},  # JSON-MIN
        {"item": item, "value": "cat"},
        {"item": item, "value": "catt", "annotator": person.username},
        {**answered(task), "annotations": [{"result": [{"type": "brush", "value": {}}], "completed_by": 3}]},
        {**answered(task), "meta": {}},
        {"value": "cat", "annotator": person.username},
    ]
    taken = back(client, world, rows, people={"user 3": person.username}).json()
    minimal, nobody, unknown, unreadable, other_task, itemless = (
        entry["reason"] for entry in taken["refused"]
    )
    assert "JSON-MIN" in minimal
    assert "meta.hypac.item" in other_task
    assert "by “item”" in itemless
    assert "who answered" in nobody
    assert unknown == "'catt' is not one of this project's labels."
    assert unreadable.startswith("This answer cannot be used: it has brush, which is not read here")
    assert taken["refused"][2]["name"] == Item.objects.get(pk=item).external_id


def test_the_calibration_set_is_given_out_by_name_alone(client):
    world = make_world(100)
    world.start(m=40)
    world.do("prepare_run")
    response = out(client, world)
    assert response.status_code == 409
    assert "part=calibration" in response.json()["detail"]
    assert back(client, world, [{"item": 1, "value": "cat"}]).status_code == 409
    assert not AuditEvent.objects.filter(action="run.handed_out").exists()


def test_a_calibration_set_labelled_elsewhere_is_certified_and_says_so(client, tmp_path):
    world = make_world(100)
    run = world.start(m=40)
    world.do("prepare_run")
    told = waiting(client, world, "calibration")
    batch = world.project.runs.get().calibration_batch
    assert (told["waiting"], told["blind"]) == (batch.work_items.count(), True)
    assert any("what a model answered" in sentence for sentence in told["conditions"])
    tasks = lines(out(client, world, part="calibration"))
    assert len(tasks) == told["waiting"]
    assert {tuple(task["data"]) for task in tasks} == {("text",)}
    ann = world.annotators[0]
    names = dict(Item.objects.values_list("pk", "external_id"))
    rows = [answered(task, world.truth[names[task["meta"]["hypac"]["item"]]]) for task in tasks]
    people = {"user 3": ann.username}
    taken = back(client, world, rows[:-1], people=people, part="calibration").json()
    assert (taken["stored"], taken["refused"]) == (len(rows) - 1, [])
    assert waiting(client, world, "calibration")["waiting"] == 1
    world.label()  # the last one here
    world._route(world._analyse(run))
    certificate = json.loads(run.certificate.document)
    assert certificate["provenance"]["calibration_elsewhere"] == len(rows) - 1
    said = f"people gave in another program: {len(rows) - 1}."
    for name in ("run", "run_certificate_page"):
        page = client.get(reverse(name, args=[world.project.slug, 1])).content.decode()
        assert said in page, name
        assert page.count("in another program:") == 1, name
        assert "without seeing any answer" not in page, name
        assert "blind, or would" not in page, name
        assert "whether blind is not known here" in page, name
    files = delivered(world, run)
    card = files["README.md"].decode()
    assert said in card
    assert card.count(f"{len(rows) - 1}.") == card.count("in another program:") == 1
    assert "Answers that came from another program are counted above" in card
    assert "without seeing any answer" not in card
    assert "blind, or would" not in card
    checked = found_in(tmp_path / "files", files)
    assert (checked.code, checked.faults) == (0, "")
    assert "given in another program" in checked.notes
    assert waiting(client, world, "calibration", status=409)["code"] == "no_calibration_items"


def test_of_several_answers_about_an_item_labels_and_items_are_counted(client):
    world = make_world(100)
    Project.objects.filter(pk=world.project.pk).update(overlap=2, overlap_share=Decimal(1))
    world.project.refresh_from_db()
    run = world.start(m=40)
    world.do("prepare_run")
    items = [task["item"] for task in lines(out(client, world, "hypac", part="calibration"))]
    for person in world.annotators:
        rows = [{"item": item, "value": "cat", "annotator": person.username} for item in items]
        assert back(client, world, rows, part="calibration").json()["stored"] == len(items)
    run.refresh_from_db()
    (said,) = elsewhere_in_words(run)
    assert f"{2 * len(items)}, about {len(items)} items." in said


def test_without_labels_from_elsewhere_nothing_is_said_of_them(client, world):
    certificate = json.loads(world.project.runs.get().certificate.document)
    assert "calibration_elsewhere" not in certificate["provenance"]
    assert "blind, or would have given" in left_open_by(certificate)
    assert "another program" not in delivered(world, world.project.runs.get())["README.md"].decode()
    told = waiting(client, world, "routed")
    assert (told["blind"], len(told["conditions"])) == (False, 2)


def test_who_saw_model_output_gives_no_blind_label_elsewhere(client):
    world = make_world(200)
    world.analysed(m=40)
    world.start(m=40)
    world.do("prepare_run")
    tasks = lines(out(client, world, "hypac", part="calibration"))
    row = {"item": tasks[0]["item"], "value": "cat", "annotator": world.manager.username}
    taken = back(client, world, [row], part="calibration").json()
    assert taken["stored"] == 0
    # The token's owner may be somebody else: whose role it is, is said.
    assert f"the role of {world.manager.username} shows what" in taken["refused"][0]["reason"]


def test_what_several_people_or_an_expert_say_is_asked_here_alone(client):
    here = ExpertWorld(200, error=0.05)
    here.world.start(reference="settled", m=60, p=None, rule="")
    here.world.do("prepare_run")
    assert waiting(client, here.world, "calibration", status=409)["code"] == "labelled_here_alone"
    assert out(client, here.world, part="calibration").status_code == 409


def test_no_answer_from_here_can_look_like_one_from_elsewhere(client, world):
    ann = world.annotators[0]
    task = queue.claim(project=world.project, user=ann)
    client.force_login(ann)
    sent = {
        **{"work_item": task.work_item.pk, "token": task.token, "value": "cat"},
        "idempotency_key": "elsewhere:1:1",
    }
    slug = world.project.slug
    answer = client.post(reverse("api_queue_submit", args=[slug]), sent, content_type="application/json")
    assert (answer.status_code, answer.json()["field"]) == (400, "idempotency_key")
    page = client.post(reverse("annotate_submit", args=[slug]), sent)
    assert "send a random one" in page.content.decode()
    assert not Label.objects.filter(idempotency_key__startswith="elsewhere:").exists()


def test_a_label_from_elsewhere_says_nothing_of_what_was_shown_with_it(client):
    world = make_world(100)
    run = world.routed(m=40, suggestions=True)
    ann = world.annotators[0]
    task = lines(out(client, world, "hypac"))[0]
    row = {"item": task["item"], "value": "cat", "annotator": ann.username}
    assert back(client, world, [row]).json()["stored"] == 1
    world.finish()
    told = {row.external_id: row.suggestion for row in rows_of(run)}
    assert told[task["name"]] is None
    assert "none" in told.values()


def test_whatever_is_named_is_stored_or_refused_and_the_trail_says_by_whom(client, world):
    ann, bob = world.annotators
    items = [task["item"] for task in lines(out(client, world, "hypac"))[:4]]
    rows = [{"item": item, "value": "cat", "annotator": ann.username} for item in items[:2]]
    rows += [{"item": items[2], "value": "cat", "annotator": "\ud800x"}]
    rows += [{"item": True, "value": "cat", "annotator": ann.username}]
    taken = back(client, world, rows, people={"\ud800\0": bob.username})
    assert (taken.status_code, taken.json()["stored"]) == (200, 2)
    assert [entry["row"] for entry in taken.json()["refused"]] == [3, 4]
    event = AuditEvent.objects.get(action="run.labelled_elsewhere")
    assert event.data["by"] == {ann.username: 2}
    assert event.data["people"] == {"\ufffd\ufffd": bob.username}
    assert client.get(reverse("api_audit", args=[world.project.slug])).status_code == 200
    many = back(client, world, rows[:1], people={f"user {n}": "ann" for n in range(1001)})
    assert (many.status_code, many.json()["field"]) == (400, "people")


def test_a_name_that_means_two_people_is_nobodys(client, world):
    ann, bob = world.annotators
    User.objects.filter(pk=ann.pk).update(email=f"{bob.username}", email_confirmed_at=timezone.now())
    item = lines(out(client, world, "hypac"))[0]["item"]
    taken = back(client, world, [{"item": item, "value": "cat", "annotator": bob.username}]).json()
    assert (taken["stored"], len(taken["refused"])) == (0, 1)


def test_so_many_answers_come_at_once(client, world, monkeypatch):
    monkeypatch.setattr("routing.elsewhere.answers.MOST_ANSWERS", 2)
    task = lines(out(client, world))[0]
    row = answered(task)
    row["annotations"] *= 3
    refused = back(client, world, [row])
    assert (refused.status_code, refused.json()["field"]) == (400, "rows")


def test_another_shape_is_refused(client, world):
    assert out(client, world, "cvat").status_code == 400
