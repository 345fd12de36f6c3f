"""What answers about runs hold, for the schema."""

from typing import Any

from rest_framework import serializers

from annotation.common.money import MoneyField
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

    budget = MoneyField(allow_null=True)
    spent = MoneyField()
    set_aside = MoneyField()
    lost = MoneyField()
    lost_calls = serializers.IntegerField()
    left = MoneyField(allow_null=True)


class OptionBody(serializers.Serializer[Any]):
    """`refusal` says why it cannot be chosen beside the rest, and is empty where it can."""

    name = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    summary = serializers.CharField(allow_blank=True)
    refusal = serializers.CharField(allow_blank=True)
    recommended = serializers.BooleanField()
    parameters = map_of(serializers.CharField())


class PeopleAgreementBody(serializers.Serializer[Any]):
    """On which share of the items of a run by people two of them differ, from those that were put to several;
    null where nothing is known.
    """

    asked = serializers.IntegerField(help_text="Items of the run.")
    items = serializers.IntegerField(help_text="Of these, those that were put to several people.")
    used = serializers.IntegerField(help_text="Of these, a random sample where they are many or long.")
    differ = serializers.IntegerField(help_text="Of these, those on which two of them differ.")
    unknown = serializers.IntegerField(
        help_text="Of `used`, those without two answers: the range holds whatever they would have been."
    )
    estimate = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(
        allow_null=True,
        help_text="With 95 % confidence, as `high`: exact, for a sample that is small as answers are long "
        "only if people differ as often on long ones as on short ones.",
    )
    high = serializers.FloatField(allow_null=True)


class ChosenBody(serializers.Serializer[Any]):
    """Which items a run by people asks about."""

    filters = serializers.DictField(child=serializers.CharField(), help_text="Empty: all items.")
    found = serializers.IntegerField(help_text="Items without a label that these found.")
    sample = serializers.IntegerField(allow_null=True, help_text="So many of them, at random; null: all.")
    last = serializers.IntegerField(help_text="`position` of the last item that was there.")


class RunBody(serializers.Serializer[Any]):
    """The plan of a run, and how far it is."""

    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=Run.State.choices)
    by_people = serializers.BooleanField(
        help_text="People label all its items, without any model: it has no plan and certifies nothing."
    )
    chosen = ChosenBody(allow_null=True, help_text="Of a run by people.")
    epsilon = decimal_number(allow_null=True, help_text="Null of a run by people, as `alpha`.")
    alpha = decimal_number(allow_null=True)
    target = serializers.ChoiceField(choices=Run.Target.choices)
    m = serializers.IntegerField()
    p = decimal_number()
    p_column = serializers.CharField(allow_blank=True)
    p_min = decimal_number(allow_null=True)
    bound = serializers.CharField(allow_blank=True)
    rule = serializers.CharField(allow_blank=True)
    split_share = decimal_number()
    loss = serializers.CharField(allow_blank=True)
    loss_params = map_of(serializers.JSONField())
    score = serializers.CharField(allow_blank=True)
    score_params = map_of(serializers.JSONField())
    human_cost = MoneyField()
    overlap = serializers.IntegerField()
    overlap_share = decimal_number()
    consensus = serializers.CharField()
    reference = serializers.ChoiceField(choices=Run.Reference.choices)
    expert_name = serializers.CharField(allow_blank=True)
    expert_cost = MoneyField(allow_null=True)
    recheck_share = decimal_number(allow_null=True)
    audit_share = decimal_number(allow_null=True)
    accepted_error = decimal_number(allow_null=True)
    final_sample = serializers.IntegerField(allow_null=True)
    final_models_error = decimal_number(allow_null=True)
    final_models_alpha = decimal_number(allow_null=True)
    final_people_alpha = decimal_number(allow_null=True)
    later_audit_share = decimal_number(allow_null=True)
    draw_from = serializers.CharField()
    suggestions = serializers.BooleanField(
        help_text="Whoever labels a routed item is shown what a model answered."
    )
    pool_size = serializers.IntegerField()
    later_size = serializers.IntegerField(help_text="Items that were taken in after the pool was frozen.")
    whole_size = serializers.IntegerField(allow_null=True)
    pool_hash = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    analysed_at = serializers.DateTimeField(allow_null=True)
    routed_at = serializers.DateTimeField(allow_null=True)
    completed_at = serializers.DateTimeField(allow_null=True)


class RunSourceBody(serializers.Serializer[Any]):
    """A source as the plan froze it."""

    position = serializers.IntegerField()
    source = serializers.CharField(help_text="Its name.")  # type: ignore[assignment]
    fingerprint = serializers.CharField()
    cost_per_label = MoneyField()
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
    what_is_right = serializers.CharField(
        help_text="What the sentence leaves open: whose label counts as right, and whose mistakes do not "
        "count."
    )
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


class ExpertAuditBody(serializers.Serializer[Any]):
    """How far the audit is; it warns where `wealth` reaches 20. What was accepted is `accepted_error`."""

    marked = serializers.IntegerField()
    audited = serializers.IntegerField()
    differ = serializers.IntegerField()
    wealth = serializers.FloatField()
    alarm = serializers.BooleanField()


class IntakeBody(serializers.Serializer[Any]):
    """Items that came after the pool was frozen, taken in together."""

    number = serializers.IntegerField()
    items = serializers.IntegerField()
    people = serializers.IntegerField(help_text="Of these, those that the policy sends to people.")
    by = serializers.CharField(allow_null=True, help_text="Username.")
    at = serializers.DateTimeField()


class LaterItemsBody(serializers.Serializer[Any]):
    """Of items that came after the pool was frozen. In all `later_size` of them are taken in."""

    waiting = serializers.IntegerField(
        help_text="Items that `take-in/` would take in now, counted up to 1000: 1000 means so many or more."
    )
    objection = serializers.CharField(allow_blank=True, help_text="Why it would refuse now, in a sentence.")
    taken_in = IntakeBody(many=True)
    audit = ExpertAuditBody(
        allow_null=True,
        help_text="On how many of the marked later items people give another label than the one that is "
        "delivered; accepted is `epsilon`. Null where there is no audit.",
    )


class PeopleErrorBody(serializers.Serializer[Any]):
    """How often labels of people differ from the expert's. `estimate` is null where nothing was seen, and a
    share of all items that they have, with an exact range.
    """

    differ = serializers.IntegerField(help_text="Asked items on which they were seen to differ.")
    asked = serializers.IntegerField()
    estimate = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(help_text="Exact, with 95 % confidence, as `high`.")
    high = serializers.FloatField()
    caught = serializers.IntegerField(
        help_text="Of these, those on which the dearest model says something else: a second look finds them."
    )
    shared = serializers.IntegerField(help_text="Those on which the dearest model says the same.")


class AnnotatorErrorBody(PeopleErrorBody):
    """The same of one annotator. A few dozen items rank nobody."""

    name = serializers.CharField(help_text="As in the certificate; `GET roster/` has it with the username.")


class PeopleBody(serializers.Serializer[Any]):
    """What a run with an expert found of its people. `warning` belongs to the figures by annotator."""

    all = PeopleErrorBody()
    annotators = AnnotatorErrorBody(many=True)
    warning = serializers.CharField(help_text="That a few dozen items rank nobody, in words.")


class PeopleMeasuredBody(serializers.Serializer[Any]):
    """How often people erred when an expert last looked, in the earlier run `run`."""

    run = serializers.IntegerField()
    differ = serializers.IntegerField()
    asked = serializers.IntegerField()
    estimate = serializers.FloatField()
    low = serializers.FloatField(help_text="Exact, with 95 % confidence, as `high`.")
    high = serializers.FloatField()
    holds = serializers.BooleanField(help_text="Whether that run is not marked invalid.")


class OtherReferenceBody(serializers.Serializer[Any]):
    """What a reference would have come to on the labels of this run: shown, and certifying nothing."""

    name = serializers.ChoiceField(
        choices=("expert", "person", "alone", "everything"),
        help_text="`expert`: this run's own choice; `person`: one person's word; `alone`: models and expert; "
        "`everything`: the expert for everything.",
    )
    found = serializers.BooleanField(
        help_text="Whether its tests passed anything but everything by people, or by the expert."
    )
    cost = decimal_number(help_text="Expected, in all.")
    wrong = serializers.IntegerField(
        help_text="Asked items on which the label by its policy is not the expert's, of the `seen` that she "
        "labelled."
    )
    seen = serializers.IntegerField()
    share = serializers.FloatField(help_text="The same of all items, estimated.")


class LabelsBySource(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]
    items = serializers.IntegerField()


class CommitmentBody(serializers.Serializer[Any]):
    """What a run committed to: 1 before its draw, 2 before its first label. `sha256` is the hash of
    `commitments/<number>.json`.
    """

    number = serializers.IntegerField()
    sha256 = serializers.CharField()
    created_at = serializers.DateTimeField()


class SuggestedBody(serializers.Serializer[Any]):
    """Labels that count now, of those that people gave on routed items."""

    labels = serializers.IntegerField(help_text="All of them.")
    shown = serializers.IntegerField(help_text="Those whose annotator was shown what a model answered.")
    taken = serializers.IntegerField(help_text="Of these the ones that are the same as what was shown.")


class RunDetails(RunBody):
    """From `certificate` on only once the run is analysed."""

    sources = RunSourceBody(many=True)
    calibration = Progress(allow_null=True)
    labelling = Progress(allow_null=True)
    expert = Progress(allow_null=True, help_text="What the expert labels now, or labelled last.")
    paid = MoneyField()
    models = MoneyBody()
    alpha_total = decimal_number()
    commitments = CommitmentBody(many=True)
    draw_waits = serializers.BooleanField(
        help_text="Whether the run waits for what its draw is to come from (`draw/`)."
    )
    invalid_reasons = serializers.ListField(child=serializers.CharField())
    suggested = SuggestedBody(
        allow_null=True, help_text="What became of suggestions; null where the plan shows none."
    )
    people_agreement = PeopleAgreementBody(
        required=False, help_text="Of a run by people, from its labels as they are now."
    )
    certificate = CertificateBody(required=False)
    labels_by_source = LabelsBySource(many=True, required=False)
    blanks = serializers.IntegerField(required=False)
    routing_saving = MoneyField(required=False, allow_null=True)
    net_saving = MoneyField(required=False, allow_null=True)
    savings_final = serializers.BooleanField(required=False)
    two_people = TwoPeopleBody(
        required=False,
        allow_null=True,
        help_text="Null where one person was asked about each item, or where it was not computed with the "
        "result.",
    )
    figures = serializers.DictField(required=False)
    audit = ExpertAuditBody(
        required=False, allow_null=True, help_text="Of the labels of people after the routing, by the expert."
    )
    later_items = LaterItemsBody(
        required=False,
        allow_null=True,
        help_text="Null for another target than the population, and before the routing.",
    )
    people = PeopleBody(required=False, allow_null=True, help_text="Null without an expert.")
    people_measured = PeopleMeasuredBody(
        required=False,
        allow_null=True,
        help_text="Where one person's label is right: null where no earlier run had an expert.",
    )
    other_references = OtherReferenceBody(
        many=True, required=False, help_text="Of a run with an expert, else empty."
    )


class StageBody(serializers.Serializer[Any]):
    key = serializers.CharField()
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=["done", "current", "waiting", "failed"])
    done = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    detail = serializers.CharField(allow_blank=True)


class PaidBody(serializers.Serializer[Any]):
    """One line of what was paid; `source` is empty for people, `by_expert` for the expert."""

    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]
    stage = serializers.CharField()
    stage_title = serializers.CharField()
    quantity = serializers.IntegerField()
    amount = MoneyField()
    by_expert = serializers.BooleanField()


class OverviewBody(serializers.Serializer[Any]):
    stages = StageBody(many=True)
    next_step = serializers.CharField(allow_blank=True)
    run = serializers.IntegerField(allow_null=True)
    stuck = serializers.IntegerField()
    paid = PaidBody(many=True)
