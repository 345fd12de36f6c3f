"""Coming from Label Studio through the API alone."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.jobs import jobs
from annotation.models import Job, Label, Project
from testbed.factories import make_project
from tests.annotation.apis import Api
from tests.annotation.imports.test_imports import storage
from tests.label_studio_story import CONFIG, MODEL, results

__all__ = ["storage"]
pytestmark = pytest.mark.django_db
SECRET = "what somebody else said"
TASK = {
    "id": 4,
    "data": {"text": "a text"},
    "annotations": [{"result": results("pos"), "completed_by": {"email": "ann@example.com"}}],
    "predictions": [{"model_version": MODEL, "score": 0.5, "result": results("pos")}],
    "meta": {"note": SECRET},
}


@pytest.fixture
def owner() -> Api:
    """Somebody with a project that is made from a configuration."""
    project = make_project()
    client = Api(project, project.created_by).client
    body = {"name": "Reviews", "label_config": CONFIG}
    answer = client.post("/api/v1/projects/", json.dumps(body), "application/json")
    assert answer.status_code == 201, answer.content
    assert [choice["key"] for choice in answer.json()["choices"]] == ["pos", "Negative 👎"]
    return Api(Project.objects.get(slug="reviews"), project.created_by)


def test_a_configuration_that_cannot_be_used_is_refused_in_words(owner) -> None:
    body = {"name": "Sounds", "label_config": "<View><Audio name='a' value='$a'/></View>"}
    answer = owner.client.post("/api/v1/projects/", json.dumps(body), "application/json")
    assert answer.status_code == 400
    assert "These tags are not supported: Audio." in answer.content.decode()
    assert not Project.objects.filter(name="Sounds").exists()


@pytest.mark.parametrize("keep", [True, False])
def test_tasks_with_their_labels_and_nothing_that_others_said(owner, keep) -> None:
    base = "/api/v1/projects/reviews/"
    sent = SimpleUploadedFile("tasks.json", json.dumps([TASK]).encode())
    file = owner.client.post(f"{base}files/", {"file": sent}).json()["id"]
    look = owner.client.get(f"{base}files/{file}/preview/")
    assert look.json()["format"] == "label_studio"
    assert look.json()["rows"][0]["label_studio"] is None
    assert SECRET not in look.content.decode()
    body = {"file": file, "text_column": "text", "keep_labels": keep}
    answer = owner.client.post(f"{base}imports/", json.dumps(body), "application/json")
    assert answer.status_code == 202, answer.content
    jobs.run(answer.json()["id"])
    assert Job.objects.get(pk=answer.json()["id"]).state == "done"
    assert Label.objects.count() == int(keep)
    for path in ("items/", "items.ndjson"):
        shown = owner.client.get(base + path)
        content = b"".join(shown.streaming_content) if shown.streaming else shown.content
        assert b"a text" in content
        assert SECRET.encode() not in content
        assert f"{MODEL}.label".encode() not in content
