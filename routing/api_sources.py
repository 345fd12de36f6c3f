"""The part of /api/v1/ that is about the models of a project and what they cost.

A key of a model's server can be given and removed; no answer holds it.
"""

from typing import Any, cast

from django.urls import path
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import ProjectView
from annotation.errors import HypacError, InputError
from annotation.models import User
from routing import api_prompts
from routing.models import ModelPrice, Source
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
    price = serializers.IntegerField(allow_null=True, required=False)
    prompt = serializers.JSONField(allow_null=True, required=False)
    api_key = serializers.CharField(
        max_length=4_000, allow_null=True, allow_blank=True, required=False, write_only=True
    )
    position = serializers.IntegerField(min_value=1, max_value=32767, required=False)


class SourceList(ProjectView):
    actions = {"GET": "runs.view", "POST": "sources.edit"}

    def get(self, request: Request, slug: str) -> Response:
        sources = Source.objects.filter(project=self.access.project).order_by("position")
        names = ("id", "position", "name", "backend", "cost_per_label", "cost_function", "prices")
        return Response({"results": list(sources.values(*names))})

    def post(self, request: Request, slug: str) -> Response:
        """Add a model; without a position it comes last."""
        source = save_source(project=self.access.project, user=cast(User, request.user), **_arguments(self))
        return Response(_saved(source), status=status.HTTP_201_CREATED)


class SourceDetail(api_prompts.SourceView):
    actions = {"GET": "sources.edit", "PUT": "sources.edit", "DELETE": "sources.edit"}

    def get(self, request: Request, slug: str, source_id: int) -> Response:
        return Response(_content(self.find(source_id)))

    def put(self, request: Request, slug: str, source_id: int) -> Response:
        """Change the model: what is not given is set back to its default; position, prompt and key stay."""
        source = save_source(
            project=self.access.project,
            user=cast(User, request.user),
            source=self.find(source_id),
            **_arguments(self),
        )
        return Response(_saved(source))

    def delete(self, request: Request, slug: str, source_id: int) -> Response:
        delete_source(source=self.find(source_id), user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _arguments(view: ProjectView) -> dict[str, Any]:
    """Those of `save_source`, from the body of the request."""
    fields = view.parsed(SourceFields)
    price_id = fields.pop("price", None)
    line = None
    if price_id is not None:
        line = ModelPrice.objects.filter(project=view.access.project, pk=price_id).first()
        if line is None:
            raise InputError("The price list has no such line.", where="price")
    return {**fields, "price": line, "prompt": api_prompts.prompt_from(fields.get("prompt"))}


def _saved(source: Source) -> dict[str, Any]:
    return {**_content(source), "warnings": warnings_of(source)}


def _content(source: Source) -> dict[str, Any]:
    """All of a source, and which uncertainty scores its answers can have."""
    names = (
        *("id", "position", "name", "backend", "params", "served"),
        *("cost_per_label", "cost_function", "prices"),
    )
    try:
        offered = offered_scores(source)
    except HypacError:
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
    return {name: getattr(source, name) for name in names} | {
        "price": source.price_id,
        "has_key": bool(source.api_key),
        "prompt": api_prompts.prompt_content(source),
        "scores": scores,
    }


urlpatterns = [
    *api_prompts.urlpatterns,
    path("projects/<slug:slug>/sources/", SourceList.as_view(), name="api_sources"),
    path("projects/<slug:slug>/sources/<int:source_id>/", SourceDetail.as_view(), name="api_source"),
]
