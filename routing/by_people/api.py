"""The part of /api/v1/ about runs without any model: people label everything."""

from dataclasses import asdict
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.conditional import created
from annotation.common.money import MoneyField, in_full
from annotation.models import MAX_OVERLAP
from routing.by_people.forms import LARGEST
from routing.by_people.start import Wanted, people_outlook, start_people_run
from routing.common.api_bodies import RunBody, decimal_number
from routing.items.filters import MAX_TEXT
from routing.runs.api import plan_content


class PeopleRunFields(serializers.Serializer[Any]):
    """Which items people are asked about, of those without a label, and how many people each."""

    filters = serializers.DictField(
        child=serializers.CharField(max_length=MAX_TEXT),
        default=dict,
        help_text="Names and values of the filters of the table of items; {}: all items.",
    )
    sample = serializers.IntegerField(
        min_value=1,
        max_value=LARGEST,
        required=False,
        allow_null=True,
        help_text="So many of these, drawn at random; null: all.",
    )
    overlap = serializers.IntegerField(
        min_value=1,
        max_value=MAX_OVERLAP,
        required=False,
        allow_null=True,
        help_text="How many people are asked about an item; null: as the project says, as `overlap_share`.",
    )
    overlap_share = serializers.DecimalField(
        max_digits=5,
        decimal_places=4,
        required=False,
        allow_null=True,
        help_text="On which share of the items, by chance; one person is asked about the others.",
    )


class PeopleOutlookBody(serializers.Serializer[Any]):
    """What it would mean."""

    matching = serializers.IntegerField(help_text="Items that the filters find.")
    labelled = serializers.IntegerField(help_text="Of these, those that have a label already, and keep it.")
    items = serializers.IntegerField(help_text="Items that people would be asked about.")
    answers = decimal_number(help_text="Labels that they would give, on average.")
    cost = MoneyField()
    seconds_per_label = serializers.IntegerField()
    seconds = serializers.FloatField(help_text="Of people's time, in all.")


class PeopleRuns(ProjectView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=PeopleRunFields, responses={201: RunBody})
    def post(self, request: Request, slug: str) -> Response:
        """Have people label items without any model. Nothing is certified."""
        run = start_people_run(access=self.access, wanted=Wanted(**self.parsed(PeopleRunFields)))
        return created(plan_content(run), "api_run", slug=slug, number=run.number)


class PeopleOutlooks(ProjectView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=PeopleRunFields, responses=PeopleOutlookBody)
    def post(self, request: Request, slug: str) -> Response:
        """What it would mean; nothing is stored."""
        found = people_outlook(access=self.access, wanted=Wanted(**self.parsed(PeopleRunFields)))
        content = asdict(found)
        time = content.pop("time")
        content["cost"] = in_full(found.cost)
        return Response({**content, "seconds_per_label": time["seconds"], "seconds": found.seconds})


urlpatterns = [
    path("projects/<slug:slug>/people-runs/", PeopleRuns.as_view(), name="api_people_runs"),
    path("projects/<slug:slug>/people-runs/outlook/", PeopleOutlooks.as_view(), name="api_people_outlook"),
]
