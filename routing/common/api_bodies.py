"""What answers about runs hold, for the schema."""

from typing import Any

from rest_framework import serializers

from routing.models import Run


def decimal_number(**options: Any) -> serializers.FloatField:
    """A decimal number, which answers hold as a number of JSON."""
    return serializers.FloatField(**options)


def map_of(child: Any) -> serializers.DictField:
    return serializers.DictField(child=child)


class Progress(serializers.Serializer[Any]):
    """How far people are with a batch: answers in the first five, items in the others."""

    open = serializers.IntegerField()
    leased = serializers.IntegerField()
    done = serializers.IntegerField()
    unlabelable = serializers.IntegerField()
    total = serializers.IntegerField()
    items = serializers.IntegerField()
    settled = serializers.IntegerField()
    disagreeing = serializers.IntegerField()


class MoneyBody(serializers.Serializer[Any]):
    """What the models of a run cost; `budget` and `left` are null where there is no limit."""

    budget = decimal_number(allow_null=True)
    spent = decimal_number()
    set_aside = decimal_number()
    lost = decimal_number()
    lost_calls = serializers.IntegerField()
    left = decimal_number(allow_null=True)


class RunBody(serializers.Serializer[Any]):
    """The plan of a run, and how far it is."""

    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=Run.State.choices)
    epsilon = decimal_number()
    alpha = decimal_number()
    target = serializers.ChoiceField(choices=Run.Target.choices)
    m = serializers.IntegerField()
    p = decimal_number()
    p_column = serializers.CharField(allow_blank=True)
    p_min = decimal_number(allow_null=True)
    bound = serializers.CharField()
    rule = serializers.CharField()
    split_share = decimal_number()
    loss = serializers.CharField()
    loss_params = map_of(serializers.JSONField())
    score = serializers.CharField()
    score_params = map_of(serializers.JSONField())
    human_cost = decimal_number()
    overlap = serializers.IntegerField()
    overlap_share = decimal_number()
    consensus = serializers.CharField()
    pool_size = serializers.IntegerField()
    whole_size = serializers.IntegerField(allow_null=True)
    pool_hash = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    analysed_at = serializers.DateTimeField(allow_null=True)
    routed_at = serializers.DateTimeField(allow_null=True)
    completed_at = serializers.DateTimeField(allow_null=True)


class RunSourceBody(serializers.Serializer[Any]):
    """A source as the plan froze it."""

    position = serializers.IntegerField()
    source__name = serializers.CharField()
    fingerprint = serializers.CharField()
    cost_per_label = decimal_number()
    cost_function = serializers.CharField()
    prices = map_of(serializers.CharField())


class ThresholdBody(serializers.Serializer[Any]):
    """A source keeps items whose key is at most (u, v); `own_scores` says which key."""

    u = serializers.FloatField()
    v = serializers.IntegerField()


class CertificateBody(serializers.Serializer[Any]):
    """What the analysis found; `id` is the SHA-256 of certificate.json."""

    id = serializers.CharField()
    certified = serializers.BooleanField(
        help_text="Whether the thresholds are certified, and nothing in `invalid_reasons` broke that."
    )
    sentence = serializers.CharField()
    thresholds = serializers.ListField(
        child=ThresholdBody(allow_null=True), help_text="One a model; null where nothing stays with it."
    )
    own_scores = serializers.BooleanField(
        help_text="Whether each threshold is on its own model's score; if not, all are on the first model's."
    )
    allowed_errors = serializers.IntegerField(allow_null=True)
    observed_errors = serializers.FloatField(allow_null=True)
    asked = serializers.IntegerField(allow_null=True)
    unanswered = serializers.IntegerField(allow_null=True)


class TwoPeopleBody(serializers.Serializer[Any]):
    """On which share of the run's items two people differ, from items of the calibration set that were put to
    several; null where nothing is known.
    """

    items = serializers.IntegerField(
        help_text="Items of the calibration set that were put to several people."
    )
    differ = serializers.IntegerField(help_text="Items on which two of them differ.")
    unknown = serializers.IntegerField(
        help_text="Items without two answers: the range holds whatever they would have been."
    )
    estimate = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True, help_text="Exact, with 95 % confidence, as `high`.")
    high = serializers.FloatField(allow_null=True)


class LabelsBySource(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]
    items = serializers.IntegerField()


class RunDetails(RunBody):
    """From `certificate` on only once the run is analysed."""

    sources = RunSourceBody(many=True)
    calibration = Progress(allow_null=True)
    labelling = Progress(allow_null=True)
    paid = decimal_number()
    models = MoneyBody()
    alpha_total = decimal_number()
    invalid_reasons = serializers.ListField(child=serializers.CharField())
    certificate = CertificateBody(required=False)
    labels_by_source = LabelsBySource(many=True, required=False)
    blanks = serializers.IntegerField(required=False)
    routing_saving = decimal_number(required=False, allow_null=True)
    net_saving = decimal_number(required=False, allow_null=True)
    savings_final = serializers.BooleanField(required=False)
    two_people = TwoPeopleBody(
        required=False,
        allow_null=True,
        help_text="Null where one person was asked about each item, or where it was not computed with the "
        "result.",
    )
    figures = serializers.DictField(required=False)


class StageBody(serializers.Serializer[Any]):
    key = serializers.CharField()
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=["done", "current", "waiting", "failed"])
    done = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)


class PaidBody(serializers.Serializer[Any]):
    """One line of what was paid; `source` is empty for people."""

    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]
    stage = serializers.CharField()
    stage_title = serializers.CharField()
    quantity = serializers.IntegerField()
    amount = decimal_number()


class OverviewBody(serializers.Serializer[Any]):
    stages = StageBody(many=True)
    next_step = serializers.CharField(allow_blank=True)
    run = serializers.IntegerField(allow_null=True)
    stuck = serializers.IntegerField()
    paid = PaidBody(many=True)
