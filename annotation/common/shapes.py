"""In which shape a message goes out: as programs read it, or as a chat shows it. One line a shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, override


@dataclass(frozen=True)
class ChatMessage:
    """What a chat is told: one sentence, and the page that shows more ("" where the site's address is not
    known, HYPAC_ADDRESS).
    """

    sentence: str
    link: str


@dataclass(frozen=True)
class Shape:
    title: str | Promise
    body: Callable[[ChatMessage], dict[str, Any]] | None = None
    """None: the message as it is."""


def _lines(sentence: str, link: str) -> dict[str, Any]:
    return {"text": "\n".join(filter(None, (sentence, link)))}


def _slack(message: ChatMessage) -> dict[str, Any]:
    # https://docs.slack.dev/messaging/formatting-message-text: these three characters are its own.
    sentence = message.sentence.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _lines(sentence, message.link)


def _mattermost(message: ChatMessage) -> dict[str, Any]:
    # Markdown: nothing of a name may be read as a mention of everybody, or as a picture from elsewhere.
    sentence = "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+!|~" else sign for sign in message.sentence)
    return _lines(sentence.replace("@", "@\N{WORD JOINER}"), message.link)


def _teams(message: ChatMessage) -> dict[str, Any]:
    """A message of a workflow, with an Adaptive Card (https://adaptivecards.io)."""
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": message.sentence}]}],
    }
    if message.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": _("Open"), "url": message.link}]
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


STANDARD = "standard"
SHAPES = {
    STANDARD: Shape(gettext_lazy("For programs (Standard Webhooks)")),
    "slack": Shape("Slack", _slack),
    "mattermost": Shape("Mattermost", _mattermost),
    "teams": Shape("Microsoft Teams", _teams),
}


def in_shape(
    shape: str, message: Mapping[str, Any], *, title: str | Promise, project: tuple[str, str]
) -> Mapping[str, Any]:
    """The message in a shape; `project` is its slug and its name. Chats are told in the site's language."""
    body = SHAPES[shape].body if shape in SHAPES else None
    if body is None:
        return message
    slug, name = project
    with override(settings.LANGUAGE_CODE):
        # Of one line, whatever a project is called.
        sentence = " ".join(f"{name}: {title}".split())
        return body(ChatMessage(sentence, _page(slug, message["data"])))


def _page(slug: str, data: Mapping[str, Any]) -> str:
    if not settings.HYPAC_ADDRESS:
        return ""
    for kind in ("run", "job"):
        if kind in data:
            return str(settings.HYPAC_ADDRESS + reverse(kind, args=[slug, data[kind]]))
    return str(settings.HYPAC_ADDRESS + reverse("overview", args=[slug]))
