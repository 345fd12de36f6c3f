"""How far people agree, where several label an item."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.review.agreement_queries import Agreement, agreement


class AnnotatorAgreementBody(serializers.Serializer[Any]):
    answers = serializers.IntegerField()
    share_equal_to_record = serializers.FloatField(allow_null=True)
    kappa = serializers.FloatField(allow_null=True)


class EstimateBody(serializers.Serializer[Any]):
    """A measure with its 95 % interval; null where it is not defined."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class TogetherBody(serializers.Serializer[Any]):
    equal = EstimateBody(help_text="Share of equal answers.")
    fleiss = EstimateBody(help_text="Fleiss' kappa.")
    alpha = EstimateBody(help_text="Krippendorff's alpha, nominal.")


class PersonAgreementBody(AnnotatorAgreementBody):
    annotator = serializers.CharField()


class PairBody(serializers.Serializer[Any]):
    first = serializers.CharField()
    second = serializers.CharField()
    shared = serializers.IntegerField(help_text="Items that both labelled.")
    equal = serializers.FloatField()
    kappa = serializers.FloatField(allow_null=True)


class ChoiceAgreementBody(serializers.Serializer[Any]):
    choice = serializers.CharField(help_text="Its key.")
    given = serializers.IntegerField()
    again = serializers.FloatField(
        allow_null=True, help_text="Share of others who gave it too, where somebody gave it."
    )
    kappa = serializers.FloatField(allow_null=True)


class ConfusedBody(serializers.Serializer[Any]):
    first = serializers.CharField()
    second = serializers.CharField()
    pairs = serializers.IntegerField()
    share = serializers.FloatField()


class AgreementBody(serializers.Serializer[Any]):
    items = serializers.IntegerField(help_text="With two answers or more.")
    used = serializers.IntegerField(help_text="Of these, a random sample where they are many.")
    answers = serializers.IntegerField()
    left_out = serializers.BooleanField(help_text="Items of a run that is not analysed are left out.")
    together = TogetherBody()
    interval = EstimateBody(allow_null=True, help_text="Krippendorff's alpha for numbers.")
    people = PersonAgreementBody(many=True)
    pairs = PairBody(many=True, help_text="Those who agree least first.")
    people_left_out = serializers.IntegerField(help_text="Of the pairs, as they are too many.")
    choices = ChoiceAgreementBody(many=True)
    confused = ConfusedBody(many=True, help_text="Labels that are given for one another.")


class AgreementDetail(ProjectView):
    actions = {"GET": "agreement.view"}

    @extend_schema(responses=AgreementBody)
    def get(self, request: Request, slug: str) -> Response:
        return Response(_content(agreement(self.access.project)))


def _content(found: Agreement) -> dict[str, Any]:
    return {
        "items": found.items,
        "used": found.used,
        "answers": found.answers,
        "left_out": found.left_out,
        "together": asdict(found.together),
        "interval": asdict(found.interval) if found.interval else None,
        "people": [
            {"annotator": entry.user.get_username(), **asdict(entry.agreement)} for entry in found.people
        ],
        "pairs": [
            {
                "first": pair.first.get_username(),
                "second": pair.second.get_username(),
                "shared": pair.shared,
                "equal": pair.equal,
                "kappa": pair.kappa,
            }
            for pair in found.pairs
        ],
        "people_left_out": found.people_left_out,
        "choices": [
            {"choice": entry.choice.key, "given": entry.given, "again": entry.again, "kappa": entry.kappa}
            for entry in found.choices
        ],
        "confused": [
            {
                "first": entry.first.key,
                "second": entry.second.key,
                "pairs": entry.pairs,
                "share": entry.share,
            }
            for entry in found.confused
        ],
    }
