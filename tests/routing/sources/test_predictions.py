"""The page on which answers from outside are sent in."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.jobs import jobs
from routing.models import SentAnswer, Source
from testbed.factories import make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.fixture
def project(client):
    project = make_project(choices=("cat", "dog"))
    make_items(project, 3)
    client.force_login(project.created_by)
    return project


def make_source(client, project, **fields):
    form = {
        "name": "Outside",
        "backend": "uploaded",
        "declared_model": "house-7b",
        "cost_per_label": "0.5",
        "cost_function": "flat",
    }
    return client.post(reverse("source_new", args=[project.slug]), form | fields)


def upload(client, source, text: str, **fields):
    address = reverse("source_predictions", args=[source.project.slug, source.pk])
    file = SimpleUploadedFile("answers.jsonl", text.encode(), content_type="application/x-ndjson")
    return client.post(address, {"file": file, **fields})


def test_a_source_is_made_filled_and_given_a_new_revision_on_its_pages(client, project) -> None:
    response = make_source(client, project)
    source = Source.objects.get()
    assert source.params == {"model": "house-7b"}
    assert response.url == reverse("source_predictions", args=[project.slug, source.pk])
    assert "0 of 3 items" in client.get(response.url).content.decode()
    lines = [{"external_id": "t0", "label": "cat"}, {"external_id": "t1", "label": "secret-answer"}]
    sent = upload(client, source, "\n".join(map(json.dumps, lines)))
    job = project.jobs.get()
    assert sent.url == reverse("job", args=[project.slug, job.pk])
    jobs.run(job.pk)
    page = client.get(sent.url).content.decode()
    assert "no label of the project" in page
    assert "secret-answer" not in page
    page = client.get(response.url).content.decode()
    assert "1 of 3 items" in page
    assert "1 added" in page
    edit = reverse("source_edit", args=[project.slug, source.pk])
    assert 'value="house-7b"' in client.get(edit).content.decode()
    form = {"name": "Outside", "backend": "uploaded", "declared_model": "house-7b", "cost_per_label": "0.5"}
    assert client.post(edit, form | {"declared_revision": "2"}).status_code == 302
    source.refresh_from_db()
    assert source.params == {"model": "house-7b", "revision": "2"}
    assert "0 of 3 items" in client.get(response.url).content.decode()
    assert SentAnswer.objects.count() == 1


def test_a_model_without_a_name_is_refused_beside_its_field(client, project) -> None:
    page = make_source(client, project, declared_model="").content.decode()
    assert "This is needed" in page
    assert not Source.objects.exists()


def test_without_a_file_nothing_happens(client, project) -> None:
    make_source(client, project)
    address = reverse("source_predictions", args=[project.slug, Source.objects.get().pk])
    assert client.post(address, {}).status_code == 200
    assert not project.jobs.exists()


def test_other_sources_have_no_such_page(client, project) -> None:
    make_source(client, project)
    Source.objects.update(backend="sklearn")
    address = reverse("source_predictions", args=[project.slug, Source.objects.get().pk])
    assert client.get(address).status_code == 404
