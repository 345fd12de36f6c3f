"""What is known of a source's answers, for programs."""

from dataclasses import asdict
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.models import User
from routing.common.api_bodies import map_of
from routing.sources.api import UsabilityBody, usability_content
from routing.sources.health import Health, health_of
from routing.sources.measured import MeasuredAccuracy
from routing.sources.mends import Mends, mends_of
from routing.sources.prompts_api import SourceView
from routing.sources.save_mends import save_mends


class AnswerExampleBody(serializers.Serializer[Any]):
    """An answer that cannot be used, as it was given, empty where there was none. `item` is null as long as
    nobody may see model output.
    """

    answer = serializers.CharField(allow_blank=True)
    item = serializers.CharField(allow_null=True)


class ReasonBody(serializers.Serializer[Any]):
    code = serializers.CharField()
    words = serializers.CharField()
    count = serializers.IntegerField()
    examples = AnswerExampleBody(many=True)


class BinBody(serializers.Serializer[Any]):
    low = serializers.FloatField()
    high = serializers.FloatField()
    count = serializers.IntegerField()


class ClassBody(serializers.Serializer[Any]):
    label = serializers.CharField()  # type: ignore[assignment]
    count = serializers.IntegerField()


class SourcesAgreementBody(serializers.Serializer[Any]):
    """Of `both` items that this source and the other have a usable answer for, it is the same on `same`."""

    source = serializers.CharField()  # type: ignore[assignment]
    both = serializers.IntegerField()
    same = serializers.IntegerField()


class SpellingBody(serializers.Serializer[Any]):
    """An answer that is no label as it is spelled, and how often it comes."""

    answer = serializers.CharField()
    count = serializers.IntegerField()


class MendFields(serializers.Serializer[Any]):
    """Which spellings of labels a source may use. `labels` is what an answer says instead of a label -> that
    label, by its key or name; `blanks`: repeated blanks count as one; `capitals`: capitals do not matter.
    What is not given is set back.
    """

    blanks = serializers.BooleanField(default=False)
    capitals = serializers.BooleanField(default=False)
    labels = serializers.DictField(child=serializers.CharField(max_length=200), default=dict)


class MendsBody(serializers.Serializer[Any]):
    """`number` is that of the version in force, 0 where nothing was ever mended."""

    number = serializers.IntegerField()
    blanks = serializers.BooleanField()
    capitals = serializers.BooleanField()
    labels = map_of(serializers.CharField())


class ConfusionBody(serializers.Serializer[Any]):
    """Of people's label (a row of `counts`) and the model's (a column), by key as in `labels`, how often they
    met; `others` are pairs with a label beyond these.
    """

    labels = serializers.ListField(child=serializers.CharField())
    counts = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    others = serializers.IntegerField()


class ReliabilityBody(serializers.Serializer[Any]):
    confidence = serializers.FloatField()
    accuracy = serializers.FloatField()
    count = serializers.IntegerField()
    low = serializers.FloatField(required=False)
    high = serializers.FloatField(required=False)


class MeasuredAccuracyBody(serializers.Serializer[Any]):
    """How often a model was right on the items that people were asked about in its analysed runs. `low` to
    `high` is the exact 95 % interval; null where these are no random sample, or the loss is more than right
    or wrong, of which `accuracy` is the mean of 1 - loss / B.
    """

    runs = serializers.ListField(child=serializers.IntegerField())
    changed = serializers.BooleanField(allow_null=True, help_text="Whether it answers otherwise now.")
    asked = serializers.IntegerField(help_text="Items with a label that were looked at, of `of`.")
    of = serializers.IntegerField()
    answered = serializers.IntegerField(help_text="Those with a usable answer.")
    random = serializers.BooleanField()
    binary = serializers.BooleanField()
    right = serializers.FloatField()
    accuracy = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    confusion = ConfusionBody(allow_null=True)
    reliability = ReliabilityBody(many=True)
    ece = serializers.FloatField(allow_null=True)


class HealthBody(serializers.Serializer[Any]):
    """What was seen of a source's answers. Where `shown` is false, nothing may be told now but counts of what
    cannot be used: a run is open, or no run has been analysed yet that gave these answers.
    """

    usability = UsabilityBody()
    unusable = serializers.IntegerField()
    without_answer = serializers.IntegerField(help_text="Of the items looked at.")
    reasons = ReasonBody(many=True)
    shown = serializers.BooleanField()
    confidence = BinBody(many=True, help_text="1 - uncertainty; empty where there is no usable score.")
    classes = ClassBody(many=True, help_text="The commonest first; empty where labels are no choices.")
    other_classes = serializers.IntegerField(help_text="Answers with labels beyond those.")
    agreement = SourcesAgreementBody(many=True)
    spellings = SpellingBody(many=True)
    mends = MendsBody(help_text="As they are read now.")
    measured = MeasuredAccuracyBody(
        allow_null=True, help_text="Null before a run of it is analysed, and while `computing`."
    )
    computing = serializers.BooleanField(
        help_text="The losses that `measured` is counted by are still being computed."
    )


def health_content(health: Health) -> dict[str, Any]:
    return {
        "usability": usability_content(health.usable),
        "unusable": health.usable.unusable,
        "without_answer": health.missing,
        "reasons": [
            {
                "code": reason.kind.code,
                "words": reason.kind.words,
                "count": reason.kind.count,
                "examples": [
                    {"answer": one.answer, "item": one.item.external_id if one.item else None}
                    for one in reason.examples
                ],
            }
            for reason in health.reasons
        ],
        "shown": health.shown,
        "confidence": [asdict(one) for one in health.bins],
        "classes": [{"label": name, "count": count} for name, count in health.classes],
        "other_classes": health.other_classes,
        "agreement": [asdict(one) for one in health.agreements],
        "spellings": [{"answer": text, "count": count} for text, count in health.spellings],
        "mends": mends_content(mends_of(health.source)),
        "measured": measured_content(health.measured) if health.measured else None,
        "computing": health.computing,
    }


def measured_content(measured: MeasuredAccuracy) -> dict[str, Any]:
    content = asdict(measured)
    bins = content.pop("bins")
    return {**content, "accuracy": measured.accuracy, "reliability": bins}


def mends_content(mends: Mends) -> dict[str, Any]:
    return {"number": mends.number, **mends.document}


class SourceHealth(SourceView):
    actions = {"GET": "sources.edit"}

    @extend_schema(responses=HealthBody)
    def get(self, request: Request, slug: str, source_id: int) -> Response:
        """How far the answers of a model can be used, and what they are like, before a run rests on them."""
        return Response(health_content(health_of(self.find(source_id), self.access)))


class SourceMends(SourceView):
    actions = {"GET": "sources.edit", "PUT": "sources.edit"}

    @extend_schema(responses=MendsBody)
    def get(self, request: Request, slug: str, source_id: int) -> Response:
        """Which spellings of labels a model may use beside the labels' own."""
        return Response(mends_content(mends_of(self.find(source_id))))

    @extend_schema(request=MendFields, responses=MendsBody)
    def put(self, request: Request, slug: str, source_id: int) -> Response:
        """Read its answers so from now on. Runs that have been started keep to what they read."""
        source, user = self.find(source_id), cast(User, request.user)
        return Response(mends_content(save_mends(source=source, user=user, **self.parsed(MendFields))))


_ONE = "projects/<slug:slug>/sources/<row:source_id>/"
urlpatterns = [
    path(f"{_ONE}health/", SourceHealth.as_view(), name="api_source_health"),
    path(f"{_ONE}mends/", SourceMends.as_view(), name="api_source_mends"),
]
