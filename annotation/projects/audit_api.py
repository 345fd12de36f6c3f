"""Who did what in a project."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import NewestFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from annotation.models import AuditEvent


class AuditQuery(PageQuery):
    # No choices: the trail is never changed, and holds what earlier versions called it.
    action = serializers.CharField(
        required=False, max_length=60, help_text="For example run.started; there is no list of them."
    )
    actor = serializers.CharField(required=False, max_length=150, help_text="A username.")
    since = serializers.DateTimeField(required=False)


class AuditBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    action = serializers.CharField()
    target = serializers.CharField(allow_blank=True, help_text="For example run:3.")
    actor = serializers.CharField(allow_null=True)
    data = serializers.JSONField()  # type: ignore[assignment]
    created_at = serializers.DateTimeField()


class AuditPages(NewestFirst):
    long = ("data",)


class AuditList(ProjectView):
    actions = {"GET": "audit.view"}

    @extend_schema(parameters=[AuditQuery], responses=page_of(AuditBody))
    def get(self, request: Request, slug: str) -> Response:
        """Every change in the project, newest first."""
        asked = self.query(AuditQuery)
        conditions = {"action": "action", "actor": "actor__username", "since": "created_at__gte"}
        wanted = {conditions[name]: asked[name] for name in conditions if name in asked}
        events = self.access.project.audit_events.filter(**wanted).select_related("actor")
        return self.paged(AuditPages(), events, _content)


def _content(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": event.pk,
        "action": event.action,
        "target": event.target,
        "actor": event.actor.get_username() if event.actor else None,
        "data": event.data,
        "created_at": event.created_at,
    }
