"""Projects and the content of their items."""

from typing import Any, cast

from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import ApiView, KeysetPages, ProjectView
from annotation.api.content import item_content
from annotation.models import Item, Project, User
from annotation.selectors.projects import projects_of


class ItemPages(KeysetPages):
    """In the order of import."""

    ordering = "position"
    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class ProjectList(ApiView):
    def get(self, request: Request) -> Response:
        projects: Any = projects_of(cast(User, request.user))  # each has its annotated `role`
        return Response({"results": [_summary(project, project.role) for project in projects]})


class ProjectDetail(ProjectView):
    actions = {"GET": "project.view"}

    def get(self, request: Request, slug: str) -> Response:
        project = self.access.project
        choices = project.choices.values("key", "name", "hotkey", "color")
        return Response(
            {
                **_summary(project, self.access.role),
                "guidelines": project.guidelines,
                "currency": project.currency,
                "lease_seconds": project.lease_seconds,
                "choices": list(choices),
            }
        )


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


def _summary(project: Project, role: str) -> dict[str, Any]:
    return {
        "slug": project.slug,
        "name": project.name,
        "task_type": project.task_type,
        "created_at": project.created_at,
        "role": role,
    }
