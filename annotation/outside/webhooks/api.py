"""Addresses that are told what happens in a project, and what they were told."""

import json
from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import KeysetPages, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import Nothing, PageQuery, RegisteredField, list_of, page_of
from annotation.common.events import EVENTS, TEST
from annotation.common.shapes import SHAPES
from annotation.errors import InputError
from annotation.models import Webhook, WebhookDelivery
from annotation.outside.net import check_url
from annotation.outside.webhooks import manage

VIEW, EDIT = "webhooks.view", "webhooks.edit"
SHAPED = "`standard` for programs; the others are one sentence for a chat."


def _events(**options: Any) -> serializers.ListField:
    return serializers.ListField(
        child=RegisteredField(registered=lambda: EVENTS),
        min_length=1,
        max_length=len(EVENTS),
        error_messages={"min_length": f"Choose at least one of {', '.join(EVENTS)}."},
        **options,
    )


def _address(url: str) -> None:
    """Here as in the service, so that what else is wrong is told at the same time."""
    try:
        check_url(url)
    except InputError as error:
        raise serializers.ValidationError(error.message) from None


class NewWebhook(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=2000, validators=[_address])
    events = _events()
    description = serializers.CharField(required=False, allow_blank=True, max_length=200)
    shape = RegisteredField(registered=lambda: SHAPES, required=False, help_text=SHAPED)


class WebhookChanges(serializers.Serializer[Any]):
    """What is left out stays."""

    url = serializers.CharField(required=False, max_length=2000, validators=[_address])
    events = _events(required=False)
    description = serializers.CharField(required=False, allow_blank=True, max_length=200)
    shape = RegisteredField(registered=lambda: SHAPES, required=False, help_text=SHAPED)
    active = serializers.BooleanField(required=False)


class WebhookBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    url = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    events = serializers.ListField(child=serializers.CharField())
    shape = serializers.CharField(help_text=SHAPED)
    active = serializers.BooleanField()
    off_reason = serializers.CharField(
        allow_blank=True, help_text="Why it was switched off by itself, if it was."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class WebhookWithSecret(WebhookBody):
    """The secret is in this one answer and in no other."""

    secret = serializers.CharField()


class WebhookDeliveryBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    message_id = serializers.CharField(help_text="The header webhook-id of every attempt.")
    event = serializers.CharField()
    state = serializers.ChoiceField(choices=WebhookDelivery.State.choices)
    attempts = serializers.IntegerField()
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    status = serializers.IntegerField(allow_null=True, help_text="Of the last answer; null where none came.")
    error = serializers.CharField(allow_blank=True)
    duration_ms = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class WebhookDeliveryDetails(WebhookDeliveryBody):
    payload = serializers.DictField()


class WebhookDeliveryQuery(PageQuery):
    state = serializers.ChoiceField(required=False, choices=WebhookDelivery.State.choices)
    event = RegisteredField(registered=lambda: [*EVENTS, TEST], required=False)


class NewestFirst(KeysetPages):
    ordering = "-id"


class WebhookView(ProjectView):
    """One webhook by its id."""

    actions = {"GET": VIEW, "POST": EDIT, "PATCH": EDIT, "DELETE": EDIT}

    def find(self, webhook_id: int) -> Webhook:
        webhooks = Webhook.objects.select_related("project")
        webhook = webhooks.filter(project=self.access.project, pk=webhook_id).first()
        if webhook is None:
            raise Http404
        return webhook

    def find_delivery(self, webhook_id: int, sent_id: int) -> WebhookDelivery:
        deliveries = WebhookDelivery.objects.select_related("webhook__project")
        delivery = deliveries.filter(webhook=self.find(webhook_id), pk=sent_id).first()
        if delivery is None:
            raise Http404
        return delivery


class WebhookList(WebhookView):
    answers_secret = frozenset({"POST"})

    @extend_schema(responses=list_of(WebhookBody))
    def get(self, request: Request, slug: str) -> Response:
        """The webhooks, without their secrets."""
        webhooks = self.access.project.webhooks.order_by("pk")
        return Response({"results": [webhook_content(webhook) for webhook in webhooks]})

    @extend_schema(request=NewWebhook, responses={201: WebhookWithSecret})
    def post(self, request: Request, slug: str) -> Response:
        """The answer holds the secret that messages are signed with: it is shown this once."""
        body = self.parsed(NewWebhook)
        webhook, secret = manage.create_webhook(project=self.access.project, actor=self.access.user, **body)
        content = _with_secret(webhook, secret)
        return created(content, "api_webhook", slug=slug, webhook_id=webhook.pk)


class WebhookDetail(WebhookView):
    @extend_schema(responses=WebhookBody)
    def get(self, request: Request, slug: str, webhook_id: int) -> Response:
        """One of them, without its secret."""
        return Response(webhook_content(self.find(webhook_id)))

    @extend_schema(request=WebhookChanges, responses=WebhookBody)
    def patch(self, request: Request, slug: str, webhook_id: int) -> Response:
        """What waits for one that is switched off fails."""
        webhook, body = self.find(webhook_id), self.parsed(WebhookChanges)
        changes = {"is_active" if name == "active" else name: value for name, value in body.items()}
        manage.update_webhook(webhook=webhook, actor=self.access.user, **changes)
        return Response(webhook_content(webhook))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, webhook_id: int) -> Response:
        """With all that it was and is to be told."""
        manage.delete_webhook(webhook=self.find(webhook_id), actor=self.access.user)
        return Response(status=204)


class WebhookRotate(WebhookView):
    answers_secret = frozenset({"POST"})
    actions = {"POST": EDIT}

    @extend_schema(request=None, responses=WebhookWithSecret)
    def post(self, request: Request, slug: str, webhook_id: int) -> Response:
        """Make a new secret. The one before signs beside it for 24 hours."""
        webhook = self.find(webhook_id)
        self.parsed(Nothing)
        secret = manage.rotate_secret(webhook=webhook, actor=self.access.user)
        return Response(_with_secret(webhook, secret))


class WebhookTest(WebhookView):
    actions = {"POST": EDIT}

    @extend_schema(request=None, responses={202: WebhookDeliveryBody})
    def post(self, request: Request, slug: str, webhook_id: int) -> Response:
        """Send a message of the type webhook.test, also where it is switched off."""
        webhook = self.find(webhook_id)
        self.parsed(Nothing)
        delivery = manage.send_test(webhook=webhook, actor=self.access.user)
        return Response(delivery_content(delivery), status=202)


class WebhookDeliveryList(WebhookView):
    actions = {"GET": VIEW}

    @extend_schema(parameters=[WebhookDeliveryQuery], responses=page_of(WebhookDeliveryBody))
    def get(self, request: Request, slug: str, webhook_id: int) -> Response:
        """Newest first. Those that ended are kept for 30 days."""
        webhook, asked = self.find(webhook_id), self.query(WebhookDeliveryQuery)
        wanted = {name: asked[name] for name in ("state", "event") if name in asked}
        return self.paged(
            NewestFirst(), webhook.deliveries.filter(**wanted).defer("payload"), delivery_content
        )


class WebhookDeliveryDetail(WebhookView):
    actions = {"GET": VIEW}

    @extend_schema(responses=WebhookDeliveryDetails)
    def get(self, request: Request, slug: str, webhook_id: int, sent_id: int) -> Response:
        """One of them with its payload."""
        delivery = self.find_delivery(webhook_id, sent_id)
        return Response({**delivery_content(delivery), "payload": json.loads(delivery.payload)})


class WebhookRedeliver(WebhookView):
    actions = {"POST": EDIT}

    @extend_schema(request=None, responses={202: WebhookDeliveryBody})
    def post(self, request: Request, slug: str, webhook_id: int, sent_id: int) -> Response:
        """Send the message again, as the same one, also where the webhook is switched off."""
        delivery = self.find_delivery(webhook_id, sent_id)
        self.parsed(Nothing)
        manage.redeliver(delivery=delivery, actor=self.access.user)
        return Response(delivery_content(delivery), status=202)


def webhook_content(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.pk,
        "url": webhook.url,
        "description": webhook.description,
        "events": webhook.events,
        "shape": webhook.shape,
        "active": webhook.is_active,
        "off_reason": webhook.off_reason,
        "failing_since": webhook.failing_since,
        "created_at": webhook.created_at,
    }


def delivery_content(delivery: WebhookDelivery) -> dict[str, Any]:
    return {
        "id": delivery.pk,
        "message_id": delivery.message_id,
        "event": delivery.event,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_attempt_at": delivery.next_attempt_at,
        "status": delivery.status,
        "error": delivery.error,
        "duration_ms": delivery.duration_ms,
        "created_at": delivery.created_at,
        "finished_at": delivery.finished_at,
    }


def _with_secret(webhook: Webhook, secret: str) -> dict[str, Any]:
    return {**webhook_content(webhook), "secret": secret}


_HOOK = "projects/<slug:slug>/webhooks/<row:webhook_id>/"
_SENT = f"{_HOOK}deliveries/<row:sent_id>/"
urlpatterns = [
    path("projects/<slug:slug>/webhooks/", WebhookList.as_view(), name="api_webhooks"),
    path(_HOOK, WebhookDetail.as_view(), name="api_webhook"),
    path(f"{_HOOK}rotate/", WebhookRotate.as_view(), name="api_webhook_rotate"),
    path(f"{_HOOK}test/", WebhookTest.as_view(), name="api_webhook_test"),
    path(f"{_HOOK}deliveries/", WebhookDeliveryList.as_view(), name="api_webhook_deliveries"),
    path(_SENT, WebhookDeliveryDetail.as_view(), name="api_webhook_delivery"),
    path(f"{_SENT}redeliver/", WebhookRedeliver.as_view(), name="api_webhook_redeliver"),
]
