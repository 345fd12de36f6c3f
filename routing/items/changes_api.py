"""The part of /api/v1/ that changes many items at once, as the page of the table of items does."""

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.errors import InputError
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.serializers import MAX_ID
from annotation.labelling.validation import MAX_COMMENT
from routing.items.changes import CHANGES, change_items, change_of, undo_change
from routing.items.filters import MAX_TEXT
from routing.items.table import MAX_SIZE


class ChangeFields(serializers.Serializer[Any]):
    """What to do, and with which items: either `items`, or `filters`, those of the table; {} for all."""

    change = serializers.ChoiceField(choices=list(CHANGES))
    items = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_ID),
        required=False,
        min_length=1,
        max_length=MAX_SIZE,
        help_text="Their `id`.",
    )
    filters = serializers.DictField(child=serializers.CharField(max_length=MAX_TEXT), required=False)
    run = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="Whose scores and routes: else the newest."
    )
    text = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_COMMENT, help_text="Of a comment or flag."
    )


class Changes(ProjectView):
    actions = {"POST": "review"}

    @extend_schema(request=ChangeFields, responses={202: JobBody})
    def post(self, request: Request, slug: str) -> Response:
        """Flag items, comment on them, or ask people about them. A few are done at once, others by a job."""
        body = self.parsed(ChangeFields)
        if ("items" in body) == ("filters" in body):
            raise InputError("Name either items or filters; {} as filters means all items.", where="items")
        job = change_items(
            access=self.access,
            change_name=body["change"],
            filters=body.get("filters", {}),
            item_ids=body.get("items"),
            run=body.get("run"),
            text=body.get("text", ""),
        )
        return accepted(job)


class ChangeUndo(ProjectView):
    actions = {"POST": "review"}

    @extend_schema(request=None, responses={202: JobBody})
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        """Take a change back: open flags are resolved, and people no longer asked."""
        job = change_of(self.access.project, job_id)
        if job is None:
            raise Http404
        return accepted(undo_change(access=self.access, job=job))


urlpatterns = [
    path("projects/<slug:slug>/table/changes/", Changes.as_view(), name="api_item_changes"),
    path(
        "projects/<slug:slug>/table/changes/<row:job_id>/undo/",
        ChangeUndo.as_view(),
        name="api_item_change_undo",
    ),
]
