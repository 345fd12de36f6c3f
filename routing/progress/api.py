"""The part of /api/v1/ about how a project comes on."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.money import MoneyField, in_full
from routing.progress.queries import read_progress


class DayLabelsBody(serializers.Serializer[Any]):
    day = serializers.DateField()
    labels = serializers.IntegerField()


class ClassLabelsBody(serializers.Serializer[Any]):
    """How many labels that count now give a choice; `share` is of all of them, in [0, 1]."""

    key = serializers.CharField()
    name = serializers.CharField()
    labels = serializers.IntegerField()
    share = serializers.FloatField()


class PersonProgressBody(serializers.Serializer[Any]):
    """`agreement` is how often the label is what the item was settled to, null where nothing is settled."""

    username = serializers.CharField()
    labels = serializers.IntegerField()
    today = serializers.IntegerField()
    per_hour = serializers.FloatField(allow_null=True)
    seconds_per_item = serializers.FloatField(allow_null=True)
    agreement = serializers.FloatField(allow_null=True)


class SourceProgressBody(serializers.Serializer[Any]):
    """A model beside people, on items that analysed runs drew; `low` to `high` is its exact 95 % interval."""

    source = serializers.CharField()  # type: ignore[assignment]
    answered = serializers.IntegerField()
    right = serializers.FloatField()
    accuracy = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class RunMoneyBody(serializers.Serializer[Any]):
    """`budget` is for the models alone, null where there is none."""

    run = serializers.IntegerField()
    budget = MoneyField(allow_null=True)
    models = MoneyField()
    people = MoneyField()


class ProgressBody(serializers.Serializer[Any]):
    days = DayLabelsBody(many=True, help_text="The last 30 days, the oldest first.")
    classes = ClassLabelsBody(many=True, help_text="Empty where people write their answers.")
    labelled = serializers.IntegerField(help_text="Labels that the classes are counted on.")
    people = PersonProgressBody(many=True)
    agreement_sampled = serializers.BooleanField(
        help_text="The agreement of these is that of a random sample of items, as they are many or long."
    )
    sources = SourceProgressBody(many=True, help_text="Empty before a run is analysed.")
    computing = serializers.ListField(
        child=serializers.CharField(), help_text="Sources whose losses are still being computed."
    )
    money = RunMoneyBody(many=True, help_text="Of the newest runs, the newest first.")
    models = MoneyField(help_text="Paid for models in the whole project.")
    by_people = MoneyField(help_text="And for labels of people.")


class Progress(ProjectView):
    actions = {"GET": "runs.view"}

    @extend_schema(responses=ProgressBody)
    def get(self, request: Request, slug: str) -> Response:
        """Labels by day and class, pace and agreement of people, models beside people, what was spent."""
        found = read_progress(self.access.project, self.access)
        return Response(
            {
                "days": [{"day": row.day, "labels": row.labels} for row in found.days],
                "classes": [
                    {
                        "key": row.choice.key,
                        "name": row.choice.name,
                        "labels": row.labels,
                        "share": row.share,
                    }
                    for row in found.classes
                ],
                "labelled": found.labelled,
                "people": [
                    {
                        "username": person.user.username,
                        "labels": person.work.labels,
                        "today": person.work.today,
                        "per_hour": person.work.pace,
                        "seconds_per_item": person.work.median,
                        "agreement": person.work.agreement and person.work.agreement.share_equal_to_record,
                    }
                    for person in found.people
                ],
                "agreement_sampled": found.of_a_sample,
                "sources": [
                    {
                        "source": source.name,
                        "answered": measured.answered,
                        "right": measured.right,
                        "accuracy": measured.accuracy,
                        "low": measured.low,
                        "high": measured.high,
                    }
                    for source, measured in found.sources
                ],
                "computing": [source.name for source in found.computing],
                "money": [
                    {
                        "run": row.run.number,
                        "budget": in_full(row.budget),
                        "models": in_full(row.models),
                        "people": in_full(row.people),
                    }
                    for row in found.money
                ],
                "models": in_full(found.models),
                "by_people": in_full(found.by_people),
            }
        )


urlpatterns = [path("projects/<slug:slug>/progress/", Progress.as_view(), name="api_progress")]
