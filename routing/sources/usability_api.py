"""How the API says how many answers of a source a run could use."""

from typing import Any

from rest_framework import serializers

from routing.sources.usability import Usability
from routing.sources.warnings import in_words


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
        "sentence": in_words(seen),
    }
