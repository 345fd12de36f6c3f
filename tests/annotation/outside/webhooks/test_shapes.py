"""Chats are told one sentence, in which no name of a project can do anything."""

import json

import pytest
from django.test import Client

from annotation.common.shapes import SHAPES
from annotation.errors import InputError
from annotation.models import Webhook
from annotation.outside.webhooks import manage
from annotation.outside.webhooks.sending import send_due
from tests.annotation.outside.webhooks.acts import happens

pytestmark = pytest.mark.django_db
TOLD = "Everything that a run sent to people is labelled"


def said(receiver) -> dict:
    return json.loads(receiver.received[-1].body)


@pytest.fixture
def chat(make, project, receiver, settings):
    settings.HYPAC_ADDRESS = "https://labels.example"

    def sent(shape: str) -> dict:
        webhook, _ = make(shape=shape)
        happens(project)
        assert send_due(webhook.pk) == 1
        return said(receiver)

    return sent


def test_a_chat_is_told_a_sentence_with_a_link(chat, project) -> None:
    link = f"https://labels.example/projects/{project.slug}/runs/1/"
    assert chat("slack") == {"text": f"{project.name}: {TOLD}\n{link}"}
    [attachment] = chat("teams")["attachments"]
    card = attachment["content"]
    assert card["body"][0]["inlines"][0]["text"] == f"{project.name}: {TOLD}"
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open", "url": link}]
    assert chat("standard")["data"] == {"project": project.slug, "run": 1}


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ("slack", "&lt;!channel&gt; &amp; @all [x](https://evil.example) : "),
        ("mattermost", r"\<\!channel\> & @⁠all \[x\]\(https://evil.example\) : "),
    ],
)
def test_a_project_calls_nobody(chat, project, shape, shown) -> None:
    project.name = "<!channel> &\n@all [x](https://evil.example) "
    project.save()
    assert chat(shape)["text"].startswith(shown)


def test_without_the_sites_address_there_is_no_link(chat, project, settings) -> None:
    settings.HYPAC_ADDRESS = ""
    assert chat("mattermost") == {"text": f"{project.name}: {TOLD}"}
    assert "actions" not in chat("teams")["attachments"][0]["content"]


def test_a_test_message_fits_every_shape(make, receiver) -> None:
    for shape in SHAPES:
        webhook, _ = make(shape=shape)
        manage.send_test(webhook=webhook, actor=webhook.created_by)
        assert send_due(webhook.pk) == 1
    assert len(receiver.received) == len(SHAPES)


def test_shapes_are_chosen_on_the_page_and_in_the_api(project, receiver, make) -> None:
    client = Client()
    client.force_login(project.created_by)
    form = {"url": receiver.url, "events": ["run.completed"], "shape": "slack"}
    client.post(f"/projects/{project.slug}/webhooks/new/", form)
    webhook = Webhook.objects.get()
    assert webhook.shape == "slack"
    address = f"/api/v1/projects/{project.slug}/webhooks/{webhook.pk}/"
    answer = client.patch(address, {"shape": "teams"}, content_type="application/json")
    assert (answer.status_code, answer.json()["shape"]) == (200, "teams")
    answer = client.patch(address, {"shape": "carrier pigeon"}, content_type="application/json")
    assert answer.status_code == 400
    with pytest.raises(InputError, match="slack, mattermost, teams"):
        make(shape="carrier pigeon")
