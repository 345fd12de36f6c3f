"""The part of /api/v1/ that is about the price list of a project."""

from typing import Any, cast

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.schema import list_of
from annotation.models import User
from routing.common.api_bodies import map_of
from routing.models import ModelPrice
from routing.sources.prices import MOST_CHARACTERS, delete_price, save_price


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
        rows = self.access.project.model_prices.prefetch_related("sources")
        return Response({"results": [_content(row) for row in rows]})

    @extend_schema(request=PriceFields, responses={201: PriceBody})
    def post(self, request: Request, slug: str) -> Response:
        price = save_price(
            project=self.access.project, user=cast(User, request.user), **self.parsed(PriceFields)
        )
        return Response(_content(price), status=status.HTTP_201_CREATED)


class PriceDetail(ProjectView):
    actions = {"GET": "sources.edit", "PUT": "sources.edit", "DELETE": "sources.edit"}

    @extend_schema(responses=PriceBody)
    def get(self, request: Request, slug: str, price_id: int) -> Response:
        return Response(_content(self._find(price_id)))

    @extend_schema(request=PriceFields, responses=PriceBody)
    def put(self, request: Request, slug: str, price_id: int) -> Response:
        """Change the line and, with it, the sources that name it."""
        price = save_price(
            project=self.access.project,
            user=cast(User, request.user),
            price=self._find(price_id),
            **self.parsed(PriceFields),
        )
        return Response(_content(price))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, price_id: int) -> Response:
        delete_price(price=self._find(price_id), user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _find(self, price_id: int) -> ModelPrice:
        price = self.access.project.model_prices.filter(pk=price_id).first()
        if price is None:
            raise Http404
        return price


def _content(price: ModelPrice) -> dict[str, Any]:
    return {
        "id": price.pk,
        "name": price.name,
        "cost_function": price.cost_function,
        "prices": price.prices,
        "sources": [source.pk for source in price.sources.all()],
    }


urlpatterns = [
    path("projects/<slug:slug>/prices/", PriceList.as_view(), name="api_prices"),
    path("projects/<slug:slug>/prices/<row:price_id>/", PriceDetail.as_view(), name="api_price"),
]
