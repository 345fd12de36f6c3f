"""The part of /api/v1/ about what is labelled in another program."""

from dataclasses import asdict
from typing import Any

from django.http.response import HttpResponseBase
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.streams import NDJSON, NdjsonRenderer, ndjson
from routing.elsewhere.answers import MOST, take_back
from routing.elsewhere.work import FORMATS, HYPAC, hand_out
from routing.runs.api import RunView


class WorkQuery(serializers.Serializer[Any]):
    shape = serializers.ChoiceField(choices=FORMATS, required=False, default=HYPAC)


class GivenFields(serializers.Serializer[Any]):
    rows = serializers.ListField(
        child=serializers.DictField(),
        allow_empty=False,
        max_length=MOST,
        help_text="Tasks of Label Studio's export with their annotations, or objects with item, value and "
        "annotator.",
    )
    people = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        default=dict,
        help_text="Username here of each person whom the rows name otherwise, such as `user 3`.",
    )


class RefusedBody(serializers.Serializer[Any]):
    row = serializers.IntegerField(help_text="From 1.")
    reason = serializers.CharField()


class TakenBody(serializers.Serializer[Any]):
    stored = serializers.IntegerField()
    known = serializers.IntegerField(help_text="Answers that were here already.")
    refused = RefusedBody(many=True)


class RunWork(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=GivenFields, responses=TakenBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Store what people answered elsewhere; what cannot be stored is told with its row."""
        body = self.parsed(GivenFields)
        return Response(asdict(take_back(run=self.find_run(number), actor=self.access.user, **body)))


class RunWorkLines(RunView):
    actions = {"GET": "runs.edit"}
    may_conflict = True
    renderer_classes = [NdjsonRenderer, JSONRenderer]

    @extend_schema(parameters=[WorkQuery], responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        """What people still have to label once a run is routed, an object on each line."""
        name = self.query(WorkQuery)["shape"]
        pages = hand_out(run=self.find_run(number), user=self.access.user, format_name=name)
        return ndjson(pages, name=f"{slug}-run-{number}-work.ndjson")


_ONE = "projects/<slug:slug>/runs/<row:number>/"

urlpatterns = [
    path(f"{_ONE}work/", RunWork.as_view(), name="api_run_work"),
    path(f"{_ONE}work.ndjson", RunWorkLines.as_view(), name="api_run_work_lines"),
]
