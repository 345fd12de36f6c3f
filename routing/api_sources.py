"""The part of /api/v1/ that is about the models of a project and what they cost."""

from typing import Any, cast

from django.http import Http404
from django.urls import path
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import ProjectView
from annotation.errors import InputError
from annotation.models import User
from routing.models import Source
from routing.services.scoring import offered_scores
from routing.services.source_warnings import warnings_of
from routing.services.sources import delete_source, save_source


class SourceFields(serializers.Serializer[Any]):
    """What `save_source` takes; what is allowed it says itself, naming the field."""

    name = serializers.CharField(max_length=100)
    backend = serializers.CharField(max_length=40)
    params = serializers.DictField(default=dict)
    cost_per_label = serializers.DecimalField(max_digits=14, decimal_places=6)
    cost_function = serializers.CharField(max_length=40, default="flat")
    prices = serializers.DictField(child=serializers.CharField(max_length=40), default=dict)
    position = serializers.IntegerField(min_value=1, max_value=32767, required=False)


class SourceList(ProjectView):
    actions = {"GET": "runs.view", "POST": "sources.edit"}

    def get(self, request: Request, slug: str) -> Response:
        sources = Source.objects.filter(project=self.access.project).order_by("position")
        names = ("id", "position", "name", "backend", "cost_per_label", "cost_function", "prices")
        return Response({"results": list(sources.values(*names))})

    def post(self, request: Request, slug: str) -> Response:
        """Add a model; without a position it comes last."""
        source = save_source(
            project=self.access.project, user=cast(User, request.user), **self.parsed(SourceFields)
        )
        return Response(_saved(source), status=status.HTTP_201_CREATED)


class SourceDetail(ProjectView):
    actions = {"GET": "sources.edit", "PUT": "sources.edit", "DELETE": "sources.edit"}

    def get(self, request: Request, slug: str, source_id: int) -> Response:
        return Response(_content(self._find(source_id)))

    def put(self, request: Request, slug: str, source_id: int) -> Response:
        """Change the model: what is not given is set back to its default, the position stays."""
        source = save_source(
            project=self.access.project,
            user=cast(User, request.user),
            source=self._find(source_id),
            **self.parsed(SourceFields),
        )
        return Response(_saved(source))

    def delete(self, request: Request, slug: str, source_id: int) -> Response:
        delete_source(source=self._find(source_id), user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _find(self, source_id: int) -> Source:
        source = Source.objects.filter(project=self.access.project, pk=source_id).first()
        if source is None:
            raise Http404
        return source


def _saved(source: Source) -> dict[str, Any]:
    return {**_content(source), "warnings": warnings_of(source)}


def _content(source: Source) -> dict[str, Any]:
    """All of a source, and which uncertainty scores its answers can have."""
    names = ("id", "position", "name", "backend", "params", "cost_per_label", "cost_function", "prices")
    try:
        offered = offered_scores(source)
    except InputError:
        offered = []  # the file that it rests on is gone; the source can still be read
    scores = [
        {
            "name": score.kind.name,
            "title": score.kind.title,
            "summary": score.kind.summary,
            "params": dict(score.kind.parameters),
            "refusal": score.refusal,
        }
        for score in offered
    ]
    return {name: getattr(source, name) for name in names} | {"scores": scores}


urlpatterns = [
    path("projects/<slug:slug>/sources/", SourceList.as_view(), name="api_sources"),
    path("projects/<slug:slug>/sources/<int:source_id>/", SourceDetail.as_view(), name="api_source"),
]
