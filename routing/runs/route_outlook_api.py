"""For programs: what "Route" would do."""

from typing import Any

from django.http import Http404
from rest_framework import serializers

from annotation.common.money import MoneyField
from routing.models import Run
from routing.runs.route_outlook import CHECKED, EXPERT, MODEL, PEOPLE, RouteOutlook, route_outlook


class DestinationBody(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=[MODEL, PEOPLE, CHECKED, EXPERT])
    name = serializers.CharField(help_text="Of a model; else empty.")
    items = serializers.IntegerField(help_text="That are sent there.")
    open = serializers.IntegerField(help_text="Those that have no label by people yet.")
    about = serializers.BooleanField(
        help_text="Foretold: it rests on own scores of models that have not been asked about all items yet."
    )


class RouteOutlookBody(serializers.Serializer[Any]):
    """What routing would do: nothing is changed."""

    destinations = DestinationBody(many=True, source="rows")
    about = serializers.BooleanField(
        help_text="Foretold by the analysis, as later models have not been asked about all items."
    )
    calls = serializers.IntegerField(help_text="Of models that are still to be asked.")
    models_cost = MoneyField()
    people = serializers.IntegerField(help_text="Items that annotators still label.")
    people_cost = MoneyField()
    people_seconds = serializers.FloatField(help_text="At the pace seen in this project.")
    expert = serializers.IntegerField(help_text="Items that the expert labels.")
    second_looks = serializers.IntegerField(help_text="Of so many items at most the expert is asked besides.")
    expert_cost = MoneyField(help_text="Without second looks.")
    expert_seconds = serializers.FloatField()
    cost = MoneyField(help_text="Of models, people and expert together.")


def outlook_to_show(run: Run) -> RouteOutlook:
    """Raises Http404 where the run is not analysed, or routed already."""
    outlook = route_outlook(run)
    if outlook is None:
        raise Http404("it can be told between the analysis and the routing alone")
    return outlook
