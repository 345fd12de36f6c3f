"""The part of a plan's answer that is about references: what each of them would take."""

from typing import Any

from rest_framework import serializers

from annotation.common.money import MoneyField, in_full
from annotation.models import Project
from routing.core.reference.ways import NAMES
from routing.runs.plan import PlanOutlook
from routing.runs.reference_outlook import (
    ReferenceOutlook,
    missing_for_references,
    references_of_plan,
    warning_of_references,
)

SECONDS_OF_HOUR = 3600


class WayBody(serializers.Serializer[Any]):
    """What a run with one reference will probably take, with the same draw."""

    reference = serializers.ChoiceField(
        choices=NAMES, help_text="`alone`: models and expert, no annotators; `everything`: the expert."
    )
    cost = serializers.FloatField()
    people = serializers.FloatField(help_text="Labels by annotators.")
    expert = serializers.FloatField(help_text="Labels by the expert.")
    people_hours = serializers.FloatField(help_text="Of annotators.")
    expert_hours = serializers.FloatField()
    counts_people = serializers.BooleanField(help_text="Whether people's mistakes are in the promise.")


class AssumptionBody(serializers.Serializer[Any]):
    """All references, if people err so often; `shared` is the part that they err as the last model does."""

    error = serializers.FloatField()
    shared = serializers.FloatField()
    estimated = serializers.BooleanField(help_text="Whether an earlier run found it.")
    cheapest = serializers.CharField(help_text="Of those that count people's mistakes.")
    ways = WayBody(many=True)


class ReferencesBody(serializers.Serializer[Any]):
    """By the measured pilot and what is assumed of people: no promise."""

    recommendation = serializers.CharField()
    expert_cost = MoneyField()
    people_seconds = serializers.IntegerField(help_text="For a label by an annotator.")
    expert_seconds = serializers.IntegerField(help_text="For a label by the expert.")
    times = serializers.CharField(help_text="Whether these seconds were timed here or are assumed, in words.")
    assumptions = AssumptionBody(many=True)


def references_part(project: Project, seen: PlanOutlook) -> dict[str, Any]:
    """What an outlook says of references, or what is missing for that, and all its warnings."""
    found, warning = references_of_plan(project, seen), warning_of_references(project, seen)
    return {
        "asks_to_accept_dearer": bool(warning),
        "warnings": [*seen.warnings, *filter(None, [warning])],
        "references": None if found is None else _references(found),
        "references_missing": missing_for_references(project, seen),
    }


def _references(found: ReferenceOutlook) -> dict[str, Any]:
    """What each reference would cost, by how often people err."""
    return {
        "recommendation": found.recommendation,
        "expert_cost": in_full(found.expert_cost),
        "people_seconds": found.people_time.seconds,
        "expert_seconds": found.expert_time.seconds,
        "times": found.times_in_words,
        "assumptions": [
            {
                "error": one.people.error,
                "shared": one.people.shared,
                "estimated": one.estimated,
                "cheapest": one.cheapest.name,
                "ways": [
                    {
                        "reference": row.way.name,
                        "cost": row.way.cost,
                        "people": row.way.people,
                        "expert": row.way.expert,
                        "people_hours": row.people_time / SECONDS_OF_HOUR,
                        "expert_hours": row.expert_time / SECONDS_OF_HOUR,
                        "counts_people": row.way.counts_people,
                    }
                    for row in found.rows(one)
                ],
            }
            for one in found.assumptions
        ],
    }
