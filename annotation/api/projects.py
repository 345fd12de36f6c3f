"""Projects and the content of their items."""

from decimal import Decimal
from typing import Any, cast

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import ApiView, KeysetPages, ProjectView
from annotation.api.content import item_content
from annotation.models import MAX_OVERLAP, Item, Membership, Project, User
from annotation.selectors.projects import projects_of
from annotation.services.projects import ChoiceSpec, create_project


class ItemPages(KeysetPages):
    """In the order of import."""

    ordering = "position"
    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class ChoiceBody(serializers.Serializer[Any]):
    """One label; what is left out is filled in by the service."""

    name = serializers.CharField(max_length=100)
    key = serializers.CharField(required=False, allow_blank=True, max_length=100, trim_whitespace=False)
    hotkey = serializers.CharField(required=False, allow_blank=True, max_length=1)
    color = serializers.CharField(required=False, allow_blank=True, max_length=7)


class NewProject(serializers.Serializer[Any]):
    """What `create_project` takes; what is allowed it says itself, naming the field."""

    name = serializers.CharField(max_length=200)
    task_type = serializers.CharField(required=False, max_length=30)
    choices = ChoiceBody(many=True, required=False)
    guidelines = serializers.CharField(required=False, allow_blank=True)
    currency = serializers.CharField(required=False, max_length=12)
    human_cost = serializers.DecimalField(
        required=False, max_digits=14, decimal_places=6, min_value=Decimal(0)
    )
    lease_seconds = serializers.IntegerField(required=False, min_value=30, max_value=7 * 24 * 3600)
    text_format = serializers.CharField(required=False, max_length=20)
    overlap = serializers.IntegerField(required=False, min_value=1, max_value=MAX_OVERLAP)
    overlap_share = serializers.DecimalField(
        required=False, max_digits=5, decimal_places=4, min_value=Decimal(0), max_value=Decimal(1)
    )
    consensus = serializers.CharField(required=False, max_length=20)


class ProjectList(ApiView):
    def get(self, request: Request) -> Response:
        projects: Any = projects_of(cast(User, request.user))  # each has its annotated `role`
        return Response({"results": [_summary(project, project.role) for project in projects]})

    def post(self, request: Request) -> Response:
        body = self.parsed(NewProject)
        choices = [ChoiceSpec(**choice) for choice in body.pop("choices", [])]
        project = create_project(user=cast(User, request.user), choices=choices, **body)
        return Response(_details(project, Membership.Role.OWNER), status=201)


class ProjectDetail(ProjectView):
    actions = {"GET": "project.view"}

    def get(self, request: Request, slug: str) -> Response:
        return Response(_details(self.access.project, self.access.role))


class ItemList(ProjectView):
    actions = {"GET": "items.view"}

    def get(self, request: Request, slug: str) -> Response:
        items = (
            Item.objects.filter(project=self.access.project)
            .select_related("image")
            .only("external_id", "position", "text", "image__sha256")
        )
        pages = ItemPages()
        page = pages.paginate_queryset(items, request, view=self) or []
        return pages.get_paginated_response(
            [{**item_content(item, slug), "external_id": item.external_id} for item in page]
        )


def _details(project: Project, role: str) -> dict[str, Any]:
    return {
        **_summary(project, role),
        "guidelines": project.guidelines,
        "currency": project.currency,
        "lease_seconds": project.lease_seconds,
        "text_format": project.text_format,
        "overlap": project.overlap,
        "overlap_share": project.overlap_share,
        "consensus": project.consensus,
        "choices": list(project.choices.values("key", "name", "hotkey", "color")),
    }


def _summary(project: Project, role: str) -> dict[str, Any]:
    return {
        "slug": project.slug,
        "name": project.name,
        "task_type": project.task_type,
        "created_at": project.created_at,
        "role": role,
    }
