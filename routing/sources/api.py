"""The part of /api/v1/ that is about the models of a project and what they cost.

A key of a model's server can be given and removed; no answer holds it.
"""

from typing import Any, cast

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import list_of
from annotation.common.money import MoneyField, in_full
from annotation.errors import HypacError, InputError
from annotation.models import User
from routing.common.api_bodies import map_of
from routing.models import ModelPrice, Source
from routing.sources import prompts_api as prompts
from routing.sources.backends import BACKENDS, backend_class
from routing.sources.manage import delete_source, save_source
from routing.sources.prices import MOST_CHARACTERS, delete_price, save_price
from routing.sources.prompts_api import PromptBody
from routing.sources.score_fields import offered_scores
from routing.sources.usability import Usability, usability_of
from routing.sources.warnings import usability_in_words, warnings_of


class UnusableBody(serializers.Serializer[Any]):
    """Answers that cannot be used for one kind of reason; `examples` are some of them, of no named item."""

    code = serializers.CharField()
    words = serializers.CharField()
    count = serializers.IntegerField()
    examples = serializers.ListField(child=serializers.CharField())


class UsabilityBody(serializers.Serializer[Any]):
    """How many of `looked_at` answers can be used. `basis` is `columns`, `sent`, `run` or `try`, and empty
    where nothing is known; `items` is what they stand for. `asks`: a run of it has to be confirmed.
    """

    source = serializers.CharField()  # type: ignore[assignment]
    position = serializers.IntegerField()
    basis = serializers.CharField(allow_blank=True)
    looked_at = serializers.IntegerField()
    items = serializers.IntegerField()
    usable = serializers.IntegerField()
    reasons = UnusableBody(many=True)
    score_values = serializers.IntegerField(allow_null=True)
    sentence = serializers.CharField(allow_blank=True)
    asks = serializers.BooleanField()


def usability_content(seen: Usability) -> dict[str, Any]:
    names = ("source", "position", "basis", "looked_at", "items", "usable", "score_values", "asks")
    return {name: getattr(seen, name) for name in names} | {
        "reasons": [
            {"code": one.code, "words": one.words, "count": one.count, "examples": list(one.examples)}
            for one in seen.reasons
        ],
        "sentence": usability_in_words(seen),
    }


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


class SourceRow(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    position = serializers.IntegerField()
    name = serializers.CharField()
    backend = serializers.CharField()
    cost_per_label = MoneyField()
    cost_function = serializers.CharField()
    prices = map_of(serializers.CharField())


class ScoreBody(serializers.Serializer[Any]):
    """An uncertainty score; `refusal` says why its answers cannot have it, and is empty where they can."""

    name = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    params = map_of(serializers.CharField())
    refusal = serializers.CharField(allow_blank=True)


class SourceBody(SourceRow):
    """`has_key` tells whether a key is stored, which nothing shows."""

    params = serializers.DictField()
    served = serializers.DictField()
    price = serializers.IntegerField(allow_null=True)
    has_key = serializers.BooleanField()
    prompt = PromptBody(allow_null=True)
    usability = UsabilityBody(allow_null=True)
    scores = ScoreBody(many=True)


class SavedSource(SourceBody):
    warnings = serializers.ListField(child=serializers.CharField())


class SourceList(ProjectView):
    actions = {"GET": "runs.view", "POST": "sources.edit"}

    @extend_schema(responses=list_of(SourceRow))
    def get(self, request: Request, slug: str) -> Response:
        """The models, in their order."""
        sources = Source.objects.filter(project=self.access.project).order_by("position")
        names = ("id", "position", "name", "backend", "cost_function", "prices")
        rows = sources.only(*names, "cost_per_label")
        told = [
            {name: getattr(row, name) for name in names} | {"cost_per_label": in_full(row.cost_per_label)}
            for row in rows
        ]
        return Response({"results": told})

    @extend_schema(request=SourceFields, responses={201: SavedSource})
    def post(self, request: Request, slug: str) -> Response:
        """Add a model; without a position it comes last."""
        source = _save(self)
        return created(_saved(source), "api_source", slug=slug, source_id=source.pk)


class SourceDetail(prompts.SourceView):
    actions = {"GET": "sources.edit", "PUT": "sources.edit", "DELETE": "sources.edit"}

    @extend_schema(responses=SourceBody)
    def get(self, request: Request, slug: str, source_id: int) -> Response:
        """One of them with the uncertainty scores that it can have."""
        return Response(_content(self.find(source_id)))

    @extend_schema(request=SourceFields, responses=SavedSource)
    def put(self, request: Request, slug: str, source_id: int) -> Response:
        """Change the model: what is not given is set back to its default; position, prompt and key stay."""
        return Response(_saved(_save(self, self.find(source_id))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, source_id: int) -> Response:
        """Remove the model; 409 where a run or a payment names it."""
        delete_source(source=self.find(source_id), user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _save(view: ProjectView, source: Source | None = None) -> Source:
    """Errors of what stands in another field are told with its path."""
    fields = _arguments(view)
    parts = {"prices": fields["prices"], "prompt": prompts.PARTS, "params": _names_of_params(fields)}
    try:
        return save_source(
            project=view.access.project, user=cast(User, view.request.user), source=source, **fields
        )
    except HypacError as error:
        inside = (name for name, names in parts.items() if error.where in names)
        if error.where not in fields and (name := next(inside, "")):
            error.path = f"{name}.{error.where}"
        raise


def _names_of_params(fields: dict[str, Any]) -> set[str]:
    """Those that were sent, and those that the backend knows, if there is such a one."""
    known = BACKENDS.get(fields["backend"]) and backend_class(fields["backend"]).params
    return {*fields["params"], *(param.name for param in known or ())}


def _arguments(view: ProjectView) -> dict[str, Any]:
    """Those of `save_source`, from the body of the request."""
    fields = view.parsed(SourceFields)
    price_id = fields.pop("price", None)
    line = None
    if price_id is not None:
        line = ModelPrice.objects.filter(project=view.access.project, pk=price_id).first()
        if line is None:
            raise InputError("The price list has no such line.", where="price")
    return {**fields, "price": line, "prompt": prompts.prompt_from(fields.get("prompt"))}


def _saved(source: Source) -> dict[str, Any]:
    return {**_content(source), "warnings": warnings_of(source)}


def _content(source: Source) -> dict[str, Any]:
    """All of a source, and which uncertainty scores its answers can have."""
    names = ("id", "position", "name", "backend", "params", "served", "cost_function", "prices")
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
        "cost_per_label": in_full(source.cost_per_label),
        "price": source.price_id,
        "has_key": bool(source.api_key),
        "prompt": prompts.prompt_content(source),
        "usability": _usability(source),
        "scores": scores,
    }


def _usability(source: Source) -> dict[str, Any] | None:
    """Null where the source cannot be opened now; it can still be read."""
    try:
        return usability_content(usability_of(source))
    except HypacError:
        return None


class PriceFields(serializers.Serializer[Any]):
    """What `save_price` takes; what is allowed it says itself, naming the field."""

    name = serializers.CharField(max_length=MOST_CHARACTERS)
    cost_function = serializers.CharField(max_length=40)
    prices = serializers.DictField(child=serializers.CharField(max_length=40), default=dict)


class PriceBody(serializers.Serializer[Any]):
    """A line of the price list; `sources` are the ids of those that follow it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    cost_function = serializers.CharField()
    prices = map_of(serializers.CharField())
    sources = serializers.ListField(child=serializers.IntegerField())


class PriceList(ProjectView):
    actions = {"GET": "sources.edit", "POST": "sources.edit"}

    @extend_schema(responses=list_of(PriceBody))
    def get(self, request: Request, slug: str) -> Response:
        """The price list, which sources may follow."""
        rows = self.access.project.model_prices.prefetch_related("sources")
        return Response({"results": [_price_content(row) for row in rows]})

    @extend_schema(request=PriceFields, responses={201: PriceBody})
    def post(self, request: Request, slug: str) -> Response:
        """Add a line."""
        price = save_price(
            project=self.access.project, user=cast(User, request.user), **self.parsed(PriceFields)
        )
        return created(_price_content(price), "api_price", slug=slug, price_id=price.pk)


class PriceDetail(ProjectView):
    actions = {"GET": "sources.edit", "PUT": "sources.edit", "DELETE": "sources.edit"}

    @extend_schema(responses=PriceBody)
    def get(self, request: Request, slug: str, price_id: int) -> Response:
        """One of its lines."""
        return Response(_price_content(self._find(price_id)))

    @extend_schema(request=PriceFields, responses=PriceBody)
    def put(self, request: Request, slug: str, price_id: int) -> Response:
        """Change the line and, with it, the sources that name it."""
        price = save_price(
            project=self.access.project,
            user=cast(User, request.user),
            price=self._find(price_id),
            **self.parsed(PriceFields),
        )
        return Response(_price_content(price))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, price_id: int) -> Response:
        """Remove the line; 409 while a source follows it."""
        delete_price(price=self._find(price_id), user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _find(self, price_id: int) -> ModelPrice:
        price = self.access.project.model_prices.filter(pk=price_id).first()
        if price is None:
            raise Http404
        return price


def _price_content(price: ModelPrice) -> dict[str, Any]:
    return {
        "id": price.pk,
        "name": price.name,
        "cost_function": price.cost_function,
        "prices": price.prices,
        "sources": [source.pk for source in price.sources.all()],
    }


urlpatterns = [
    path("projects/<slug:slug>/sources/", SourceList.as_view(), name="api_sources"),
    path("projects/<slug:slug>/sources/<row:source_id>/", SourceDetail.as_view(), name="api_source"),
    path("projects/<slug:slug>/prices/", PriceList.as_view(), name="api_prices"),
    path("projects/<slug:slug>/prices/<row:price_id>/", PriceDetail.as_view(), name="api_price"),
]
