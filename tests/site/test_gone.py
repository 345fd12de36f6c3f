"""What somebody else removes between the moment at which a view finds it and that at which it is used."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Project, StoredFile, Webhook
from annotation.outside.webhooks.manage import create_webhook
from annotation.people import invitations
from annotation.projects.lifecycle import delete_project
from routing.models import Run, Source
from testbed.factories import make_project, remove_deleted
from tests.annotation.apis import Api, problem
from tests.routing.sources.sending import uploaded

pytestmark = pytest.mark.django_db


@pytest.fixture
def webhook(project: Project) -> Webhook:
    owner = project.created_by
    return create_webhook(project=project, actor=owner, url="https://a.example/", events=["job.failed"])[0]


def removed_first(monkeypatch: pytest.MonkeyPatch, place: str, rows: Any) -> None:
    """Somebody else removes them as the service begins."""
    module, _dot, name = place.rpartition(".")
    service = getattr(__import__(module, fromlist=[name]), name)

    def late(**fields: Any) -> Any:
        rows.delete()
        return service(**fields)

    monkeypatch.setattr(place, late)


@pytest.mark.parametrize(
    ("service", "method", "path"),
    [
        ("update_webhook", "PATCH", "webhooks/{}/"),
        ("send_test", "POST", "webhooks/{}/test/"),
    ],
)
def test_a_webhook(project, webhook, monkeypatch, caplog, service, method, path) -> None:
    removed_first(monkeypatch, f"annotation.outside.webhooks.manage.{service}", Webhook.objects.all())
    body = {"description": "x"} if method == "PATCH" else {}
    problem(Api(project, project.created_by).send(method, path.format(webhook.pk), body), 404)
    [record] = [one for one in caplog.records if "is gone" in one.getMessage()]
    assert record.exc_info, "a fault of ours shows, too"


def test_a_source(project, monkeypatch) -> None:
    source = uploaded(project)
    removed_first(monkeypatch, "routing.sources.api.save_source", Source.objects.all())
    body = {"name": "s", "backend": "uploaded", "params": source.params, "cost_per_label": "1"}
    problem(Api(project, project.created_by).put(f"sources/{source.pk}/", **body), 404)


def test_a_page_says_so_too(project, webhook, monkeypatch) -> None:
    removed_first(monkeypatch, "annotation.outside.webhooks.manage.update_webhook", Webhook.objects.all())
    client = Client()
    client.force_login(project.created_by)
    answer = client.post(reverse("webhook_active", args=[project.slug, webhook.pk]), {"active": "yes"})
    assert (answer.status_code, b"nothing here" in answer.content.lower()) == (404, True)


@pytest.mark.parametrize("fault", [StoredFile.DoesNotExist, Run.certificate.RelatedObjectDoesNotExist])
@pytest.mark.parametrize("page", ["project_list", "webhook"])
def test_a_fault_stays_one(project, webhook, monkeypatch, fault, page) -> None:
    def failing(*args: Any, **options: Any) -> None:
        raise fault

    monkeypatch.setattr("annotation.projects.views.project_cards", failing)
    monkeypatch.setattr("annotation.outside.webhooks.views._page", failing)
    client = Client(raise_request_exception=False)
    client.force_login(project.created_by)
    args = [project.slug, webhook.pk] if page == "webhook" else []
    named = page == "webhook" and fault is StoredFile.DoesNotExist
    assert client.get(reverse(page, args=args)).status_code == (404 if named else 500)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["a page", "a program"])
def test_a_project(monkeypatch, by) -> None:
    """Also where its address names nothing else, and what was to be stored refers to it."""
    project = make_project()
    create = invitations.create_invitation

    def late(**fields: Any) -> Any:
        delete_project(project=project, actor=project.created_by, name=project.name)
        remove_deleted(project)
        return create(**fields)

    monkeypatch.setattr(invitations, "create_invitation", late)
    api = Api(project, project.created_by)
    if by == "a program":
        problem(api.post("invitations/", role="annotator"), 404)
        return
    fields = {"invite-role": "annotator", "invite-max_uses": 1, "invite-days": 7}
    answer = api.client.post(reverse("invitation_new", args=[project.slug]), fields)
    assert (answer.status_code, b"nothing here" in answer.content.lower()) == (404, True)
