"""The part of /api/v1/ about views of the table that are kept under a name."""

from typing import Any

from django.http import Http404, QueryDict
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import OldestFirst, ProjectView
from annotation.common.api.schema import PageQuery, page_of
from routing.items.saved_views import LONGEST, delete_view, save_view, views_of
from routing.items.table_query import run_of
from routing.models import SavedView
from routing.visibility import view_permission


class SavedViewFields(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=LONGEST)
    query = serializers.CharField(
        allow_blank=True,
        max_length=4_000,
        help_text="Filters, order and columns, as they stand behind `?` in the address of the page of items; "
        "of what cannot be used nothing is kept.",
    )
    shared = serializers.BooleanField(
        default=False, help_text="For all of the project, which managers may do; else for oneself."
    )


class SavedViewBody(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    query = serializers.CharField(allow_blank=True)
    shared = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class SavedViews(ProjectView):
    actions = {"GET": "items.view", "POST": "views.edit"}

    @extend_schema(parameters=[PageQuery], responses=page_of(SavedViewBody))
    def get(self, request: Request, slug: str) -> Response:
        """One's own and those of the project, the first one first."""
        return self.paged(OldestFirst(), views_of(self.access), _content)

    @extend_schema(request=SavedViewFields, responses={201: SavedViewBody})
    def post(self, request: Request, slug: str) -> Response:
        """Keep a view of the table under a name."""
        body = self.parsed(SavedViewFields)
        permission = view_permission(self.access.project, self.access, run=run_of(QueryDict(body["query"])))
        view = save_view(access=self.access, permission=permission, **body)
        return Response(_content(view), status=status.HTTP_201_CREATED)


class SavedViewDetail(ProjectView):
    actions = {"DELETE": "views.edit"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, view_id: int) -> Response:
        """Delete a view; the items stay as they are."""
        view = views_of(self.access).filter(pk=view_id).first()
        if view is None:
            raise Http404("no such view")
        delete_view(access=self.access, view=view)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _content(view: SavedView) -> dict[str, Any]:
    return {
        "id": view.pk,
        "name": view.name,
        "query": view.query,
        "shared": view.owner_id is None,
        "created_at": view.created_at,
    }


urlpatterns = [
    path("projects/<slug:slug>/views/", SavedViews.as_view(), name="api_saved_views"),
    path("projects/<slug:slug>/views/<row:view_id>/", SavedViewDetail.as_view(), name="api_saved_view"),
]
