"""Webhooks on pages and in the API: made, looked after, switched off; their secret is shown once."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Project, Webhook, WebhookDelivery
from annotation.outside.secrets import decrypt
from annotation.outside.webhooks.manage import create_webhook, send_test
from annotation.outside.webhooks.sending import switch_off
from annotation.projects.lifecycle import archive_project, duplicate_project
from annotation.words import Words
from testbed.factories import make_project

URL = "https://example.org/hook?key=4711"


@pytest.fixture
def webhook(project: Project) -> Webhook:
    return create_webhook(
        project=project, actor=project.created_by, url=URL, events=["run.analysed"], description="Nightly"
    )[0]


def at(name: str, webhook: Webhook, *more: int) -> str:
    return reverse(name, args=[webhook.project.slug, webhook.pk, *more])


class TestPages:
    def test_it_is_made_and_its_secret_shown_once(self, owner: Client, project: Project) -> None:
        answer = owner.post(
            reverse("webhook_new", args=[project.slug]),
            {"url": URL, "description": "", "events": ["label.created", "run.routed"]},
        )
        made = project.webhooks.get()
        secret = decrypt(made.secret)
        assert secret in answer.content.decode()
        assert answer.headers["Cache-Control"] == "no-store, private"
        assert (made.url, made.events) == (URL, ["run.routed", "label.created"])
        for page in (reverse("webhooks", args=[project.slug]), at("webhook", made)):
            assert secret not in owner.get(page).content.decode()

    def test_what_cannot_be_used_is_said_beside_its_field(self, owner: Client, project: Project) -> None:
        page = owner.post(reverse("webhook_new", args=[project.slug]), {"url": "http://10.0.0.1/"})
        text = page.content.decode()
        assert page.status_code == 200
        assert 'id="id_events_error"' in text
        assert 'value="http://10.0.0.1/"' in text
        answer = owner.post(
            reverse("webhook_new", args=[project.slug]),
            {"url": "http://10.0.0.1/", "events": ["run.routed"]},
        )
        assert "HYPAC_PRIVATE_HOSTS" in answer.content.decode()
        assert not project.webhooks.exists()

    def test_it_is_changed_switched_tried_and_deleted(self, owner: Client, webhook: Webhook) -> None:
        fields = {"url": "https://example.org/b", "description": "B", "events": ["job.failed"]}
        assert owner.post(at("webhook_save", webhook), fields).status_code == 302
        owner.post(at("webhook_active", webhook), {"active": "0"})
        webhook.refresh_from_db()
        assert (webhook.url, webhook.events, webhook.is_active) == (
            "https://example.org/b",
            ["job.failed"],
            False,
        )
        owner.post(at("webhook_test", webhook))
        sent = webhook.deliveries.get()
        assert sent.event == "webhook.test"
        WebhookDelivery.objects.filter(pk=sent.pk).update(
            state="failed", next_attempt_at=None, error="gone <b>"
        )
        assert "gone &lt;b&gt;" in owner.get(at("webhook", webhook)).content.decode()
        owner.post(at("webhook_redeliver", webhook, sent.pk))
        assert webhook.deliveries.get().state == "pending"
        assert owner.post(at("webhook_delete", webhook)).status_code == 302
        assert not Webhook.objects.exists()

    def test_one_that_was_switched_off_by_itself_says_so(self, owner: Client, webhook: Webhook) -> None:
        switch_off(webhook, Words("It has taken no message."))
        for page in (reverse("webhooks", args=[webhook.project.slug]), at("webhook", webhook)):
            assert "It has taken no message." in owner.get(page).content.decode()

    def test_messages_come_in_pages(self, owner: Client, webhook: Webhook) -> None:
        for _time in range(31):
            send_test(webhook=webhook, actor=webhook.created_by)
        assert owner.get(at("webhook", webhook)).content.decode().count("msg_") >= 30
        assert "?page=2" in owner.get(at("webhook", webhook)).content.decode()
        assert owner.get(at("webhook", webhook) + "?page=2").status_code == 200


class TestProjects:
    def test_a_copy_has_none_and_tells_nobody(self, webhook: Webhook) -> None:
        project = webhook.project
        copy = duplicate_project(project=project, actor=project.created_by, name="Copy")
        assert not copy.webhooks.exists()

    def test_an_archived_project_shows_them_and_changes_none(self, owner: Client, webhook: Webhook) -> None:
        archive_project(project=webhook.project, actor=webhook.created_by)
        assert owner.get(at("webhook", webhook)).status_code == 200
        assert owner.post(at("webhook_test", webhook)).status_code == 403


class TestApi:
    def ask(self, client: Client, method: str, path: str, body: Any = None) -> Any:
        return client.generic(method, path, json.dumps(body or {}), content_type="application/json")

    def test_the_whole_way(self, owner: Client, project: Project) -> None:
        webhooks = reverse("api_webhooks", args=[project.slug])
        made = self.ask(owner, "POST", webhooks, {"url": URL, "events": ["run.routed"]})
        assert made.status_code == 201, made.content
        secret = made.json()["secret"]
        assert secret.startswith("whsec_")
        one = reverse("api_webhook", args=[project.slug, made.json()["id"]])
        for path in (webhooks, one):
            assert "secret" not in owner.get(path).content.decode()
        assert owner.get(webhooks).json()["results"] == [owner.get(one).json()]
        changed = self.ask(owner, "PATCH", one, {"active": False})
        assert (changed.json()["active"], changed.json()["url"]) == (False, URL)
        rotated = self.ask(owner, "POST", f"{one}rotate/")
        assert rotated.json()["secret"] != secret
        tested = self.ask(owner, "POST", f"{one}test/")
        assert tested.status_code == 202
        listed = owner.get(f"{one}deliveries/?state=pending").json()["results"]
        assert [row["id"] for row in listed] == [tested.json()["id"]]
        sent = f"{one}deliveries/{tested.json()['id']}/"
        assert owner.get(sent).json()["payload"]["type"] == "webhook.test"
        assert self.ask(owner, "POST", f"{sent}redeliver/").status_code == 409
        WebhookDelivery.objects.update(state="delivered", next_attempt_at=None)
        again = self.ask(owner, "POST", f"{sent}redeliver/")
        assert (again.status_code, again.json()["state"]) == (202, "pending")
        assert self.ask(owner, "DELETE", one).status_code == 204
        assert owner.get(one).status_code == 404

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"events": ["run.routed"]}, "url"),
            ({"url": "http://127.0.0.1/", "events": ["run.routed"]}, "url"),
            ({"url": URL, "events": []}, "events"),
            ({"url": URL, "events": ["run.exploded"]}, "events"),
            ({"url": URL, "events": ["run.routed"], "secret": "x"}, "secret"),
        ],
    )
    def test_what_cannot_be_used_is_named(
        self, owner: Client, project: Project, body: Any, field: str
    ) -> None:
        answer = self.ask(owner, "POST", reverse("api_webhooks", args=[project.slug]), body)
        assert answer.status_code == 400
        assert answer.json()["field"].startswith(field)
        assert not project.webhooks.exists()

    def test_nothing_is_found_through_another_project(self, webhook: Webhook, client_of: Any) -> None:
        other = make_project()
        sent = send_test(webhook=webhook, actor=webhook.created_by)
        mallory = client_of(other.created_by)
        for name, more in (("api_webhook", ()), ("api_webhook_delivery", (sent.pk,))):
            path = reverse(name, args=[other.slug, webhook.pk, *more])
            assert mallory.get(path).status_code == 404
        # A message of another webhook of the same project is not found under this one either.
        twin, _ = create_webhook(
            project=webhook.project, actor=webhook.created_by, url=URL, events=["run.routed"]
        )
        mine = client_of(webhook.created_by)
        path = reverse("api_webhook_delivery", args=[webhook.project.slug, twin.pk, sent.pk])
        assert mine.get(path).status_code == 404


def test_two_faults_are_told_at_once(owner: Client, webhook: Webhook) -> None:
    slug, typed = webhook.project.slug, {"url": "ftp://example.org", "events": []}
    for address in (reverse("webhook_new", args=[slug]), at("webhook_save", webhook)):
        page = owner.post(address, typed).content.decode()
        assert page.count("An address starts with http:// or https://.") == 1
        assert page.count("Choose at least one event.") == 1
    places = ((owner.post, reverse("api_webhooks", args=[slug])), (owner.patch, at("api_webhook", webhook)))
    for send, address in places:
        answer = send(address, json.dumps(typed), content_type="application/json")
        told = answer.json()
        assert (answer.status_code, told["field"], sorted(told["errors"])) == (400, "url", ["events", "url"])
        assert told["errors"]["url"] == ["An address starts with http:// or https://."]
        assert "Choose at least one of" in told["errors"]["events"][0]
    webhook.refresh_from_db()
    assert (webhook.url, Webhook.objects.count()) == (URL, 1)
