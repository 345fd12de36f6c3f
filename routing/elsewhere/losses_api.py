"""The part of /api/v1/ about losses that the team's own program measures."""

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

from annotation.common.api.schema import Nothing
from annotation.common.api.streams import NDJSON, NdjsonRenderer, ndjson
from routing.common.api_bodies import RunBody
from routing.elsewhere.answers import MOST
from routing.elsewhere.api import TakenBody
from routing.elsewhere.losses import hand_out_losses, losses_asked, take_losses
from routing.runs.api import RunView, plan_content
from routing.runs.ask_losses import ask_losses


class LossesAskedBody(serializers.Serializer[Any]):
    measure = serializers.CharField(help_text="Which program measures, as the plan says it.")
    binary = serializers.BooleanField(help_text="Whether a loss is 0 or 1; else it is from 0 to 1.")
    models = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the sources behind `answer1`, `loss1` and so on."
    )
    items = serializers.IntegerField(help_text="Labelled items that a model has answered about.")
    measured = serializers.IntegerField(help_text="Of these, whose losses are here.")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the others, at most 100."
    )
    conditions = serializers.ListField(
        child=serializers.CharField(), help_text="How to measure, and who may see the answers, in sentences."
    )


class LossesFields(serializers.Serializer[Any]):
    rows = serializers.ListField(
        child=serializers.DictField(),
        allow_empty=False,
        max_length=MOST,
        help_text="Objects with item and measured, as losses.ndjson gives them, and loss1, loss2, ...; what "
        "else is in them is not read.",
    )


class RunAskLosses(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=Nothing, responses=RunBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Lock the calibration labels, and have the losses of models' answers asked for: before the analysis
        of a run whose losses the team's own program measures.
        """
        self.parsed(Nothing)
        run = self.find_run(number)
        ask_losses(run=run, user=self.access.user)
        return Response(plan_content(run))


class RunLosses(RunView):
    actions = {"GET": "runs.edit", "POST": "runs.edit"}
    may_conflict = True

    @extend_schema(responses=LossesAskedBody)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Of which items losses are missing, and how to measure them."""
        return Response(asdict(losses_asked(self.find_run(number))))

    @extend_schema(request=LossesFields, responses=TakenBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Store what was measured; what cannot be stored is told with its row."""
        rows = self.parsed(LossesFields)["rows"]
        return Response(asdict(take_losses(run=self.find_run(number), actor=self.access.user, rows=rows)))


class RunLossesLines(RunView):
    actions = {"GET": "runs.edit"}
    may_conflict = True
    renderer_classes = [NdjsonRenderer, JSONRenderer]

    @extend_schema(responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        """What is to be measured: each labelled calibration item with its label and the models' answers."""
        pages = hand_out_losses(run=self.find_run(number), user=self.access.user)
        return ndjson(pages, name=f"{slug}-run-{number}-losses.ndjson")


_ONE = "projects/<slug:slug>/runs/<row:number>/"

urlpatterns = [
    path(f"{_ONE}ask-losses/", RunAskLosses.as_view(), name="api_run_ask_losses"),
    path(f"{_ONE}losses/", RunLosses.as_view(), name="api_run_losses"),
    path(f"{_ONE}losses.ndjson", RunLossesLines.as_view(), name="api_run_losses_lines"),
]
