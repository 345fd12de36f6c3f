"""What people meet who come from Label Studio: a configuration, and tasks with labels in them."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from annotation.jobs import jobs
from annotation.models import Job, Label, Project
from annotation.people.tokens import make_token
from tests.annotation.imports.test_import_pages import text, upload
from tests.label_studio_story import CONFIG, MODEL, results

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
SECRET = "what somebody else said"
TASKS = [
    {
        "id": number,
        "data": {"text": f"text {number}"},
        "annotations": [{"result": results(label), "completed_by": 1, "was_cancelled": False}],
        "predictions": [{"model_version": MODEL, "score": 0.5, "result": results("pos")}],
        "meta": {"note": SECRET},
    }
    for number, label in enumerate(("cat", "dog"))
]


def new(client, **fields):
    form = {"name": "Reviews", "task_type": "number", "human_cost": "1", "currency": "USD"}
    return client.post(reverse("project_new"), form | fields)


def test_a_project_is_made_from_a_configuration(owner) -> None:
    assert new(owner, label_config=CONFIG).status_code == 302
    project = Project.objects.get(name="Reviews")
    assert project.task_type == "single_choice"
    assert project.choices.count() == 2
    answer = owner.get(reverse("project_label_config", args=[project.slug]))
    assert answer.content.decode() == CONFIG
    assert answer["Content-Disposition"] == 'attachment; filename="reviews-config.xml"'
    # By token, too, which the log-in page would not have taken.
    token = make_token(user=project.created_by, name="night")[1]
    by_token = Client().get(
        f"/api/v1/projects/{project.slug}/config.xml", HTTP_AUTHORIZATION=f"Token {token}"
    )
    assert (by_token.status_code, by_token.content.decode()) == (200, CONFIG)
    assert by_token["Content-Type"].startswith("application/xml")
    assert by_token["Content-Disposition"] == answer["Content-Disposition"]
    settings = text(owner.get(reverse("project_settings", args=[project.slug])))
    assert reverse("project_label_config", args=[project.slug]) in settings


def test_what_is_not_supported_is_said_at_the_field(owner) -> None:
    page = text(new(owner, label_config="<View><Audio name='a' value='$a'/></View>"))
    assert "These tags are not supported: Audio." in page
    assert "It asks nothing" in page
    assert not Project.objects.filter(name="Reviews").exists()


@pytest.mark.parametrize("kept", [True, False])
def test_labels_are_kept_where_that_is_wanted(owner, project, kept) -> None:
    path = upload(owner, project, json.dumps(TASKS), "tasks.json")
    page = text(owner.get(path))
    assert "Label Studio tasks" in page
    assert 'name="keep_labels"' in page
    form = {"text_column": ["text"], "id_column": ""} | ({"keep_labels": "on"} if kept else {})
    assert ("checked" in text(owner.post(path, form | {"do": "look"}))) is kept
    assert owner.post(path, form).status_code == 302
    jobs.run(Job.objects.get().pk)
    assert Label.objects.count() == (2 if kept else 0)


def test_nothing_that_others_said_is_on_the_page(owner, project) -> None:
    path = upload(owner, project, json.dumps(TASKS), "tasks.json")
    page = text(owner.get(path))
    assert SECRET not in page
    assert "(not shown now)" in page
    refused = text(owner.post(path, {"text_column": ["label_studio"], "id_column": ""}))
    assert SECRET not in refused
    assert not Job.objects.exists()


def test_without_labels_in_the_file_nothing_is_asked(owner, project) -> None:
    bare = json.dumps([{"data": {"text": "a"}}])
    assert "keep_labels" not in text(owner.get(upload(owner, project, bare, "tasks.json")))
