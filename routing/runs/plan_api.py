"""The part of /api/v1/ that is about plans: what can be chosen, what it would mean, and starting a run."""

from dataclasses import asdict
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.schema import Nothing
from annotation.common.money import MoneyField, in_full
from annotation.models import Project, User
from routing.common.api_bodies import OptionBody, decimal_number
from routing.models import Run
from routing.runs.api_fields import budget_field, level_field, share_field
from routing.runs.forecast import PlanForecast, forecast_of_plan
from routing.runs.measure import discard_measurement, offer, start_measurement
from routing.runs.measurements import Measured
from routing.runs.plan import PlanOutlook, outlook_of_plan
from routing.runs.plan_choices import EPSILONS, promises_of_plan
from routing.runs.plan_fields import columns_of_probabilities
from routing.runs.plan_options import MENUS, Option, plan_options
from routing.runs.reference_api import ReferencesBody, references_part
from routing.runs.roster_fields import ExpertsField, RosterField
from routing.sources.api import UsabilityBody, usability_content


class PlanFields(serializers.Serializer[Any]):
    """What a plan is made of, by the names under which pages and certificates have it.

    What fits together the services say, naming the field.
    """

    epsilon = level_field("epsilon")
    alpha = level_field("alpha")
    m = serializers.IntegerField(min_value=1)
    p = share_field(required=False, allow_null=True)
    p_column = serializers.CharField(max_length=255, required=False, allow_blank=True)
    target = serializers.CharField(max_length=20, required=False)
    rule = serializers.CharField(max_length=40, required=False, allow_blank=True)
    split_share = share_field(required=False, allow_null=True)
    bound = serializers.CharField(max_length=40, required=False, allow_blank=True)
    loss = serializers.CharField(max_length=200, required=False, allow_blank=True)
    loss_params = serializers.DictField(required=False)
    score = serializers.CharField(max_length=40, required=False, allow_blank=True)
    score_params = serializers.DictField(required=False)
    pilot_size = serializers.IntegerField(min_value=0, required=False, allow_null=True)
    leave_out = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Names of models that the run does without."
    )
    reference = serializers.ChoiceField(choices=Run.Reference.choices, required=False)
    roster = RosterField(
        required=False,
        help_text="Username to share of the work such as 0.25 or 1/4, together 1; null for equal shares.",
    )
    expert = ExpertsField(
        required=False,
        help_text="Username; or several, who share the work, each to their share as in `roster`.",
    )
    expert_cost = serializers.DecimalField(
        max_digits=14, decimal_places=6, min_value=0, required=False, allow_null=True
    )
    recheck_share = share_field(required=False, allow_null=True)
    audit_share = share_field(required=False, allow_null=True)
    accepted_error = share_field(required=False, allow_null=True)
    final_sample = serializers.IntegerField(min_value=1, required=False, allow_null=True)
    final_models_error, final_models_alpha, final_people_alpha = (
        share_field(required=False, allow_null=True) for _ in range(3)
    )
    later_audit_share = share_field(
        required=False,
        allow_null=True,
        help_text="For the target `population`: of the items that are taken in later, the share that people "
        "label, too; 0: no audit.",
    )
    draw_from = serializers.ChoiceField(
        choices=Run.DrawFrom.choices,
        required=False,
        help_text="Where the number comes from that the calibration set is drawn from: this server, on "
        "trust; a text that `draw/` is given once the first commitment is there; a later value of a public "
        "beacon.",
    )
    suggestions = serializers.BooleanField(
        required=False,
        help_text="Whoever labels a routed item is shown what a model answered, and accepts it by one key; "
        "for the reference `person` alone.",
    )
    budget = budget_field(required=False)


MISSING_HELP = "Of each uploaded source that lacks answers for items of the run how many, and first names."


class MenuQuery(serializers.Serializer[Any]):
    """What else is chosen: some options do not go together."""

    target = serializers.CharField(max_length=20, required=False)
    loss = serializers.CharField(max_length=200, required=False)
    p_column = serializers.CharField(max_length=255, required=False, allow_blank=True)
    leave_out = serializers.ListField(child=serializers.CharField(), required=False)


class MenusBody(serializers.Serializer[Any]):
    target = OptionBody(many=True)
    rule = OptionBody(many=True)
    bound = OptionBody(many=True)
    loss = OptionBody(many=True)
    score = OptionBody(many=True)


class PlanMenus(serializers.Serializer[Any]):
    options = MenusBody()
    p_columns = serializers.ListField(child=serializers.CharField())


class ForecastBody(serializers.Serializer[Any]):
    """What a size of the draw would probably come to; savings are shares of what people alone would cost."""

    m = serializers.IntegerField()
    labels = serializers.IntegerField()
    net_saving = serializers.FloatField()
    low = serializers.FloatField(help_text="Four of five times it lies between this and `high`.")
    high = serializers.FloatField()
    net_cost = serializers.FloatField()
    people = serializers.FloatField(help_text="Items that people label, those of the calibration included.")
    certified = serializers.FloatField(help_text="Probability that anything is certified.")


class ForetoldBody(serializers.Serializer[Any]):
    """By the models' answers to the pilot that was measured: no promise, as nobody labelled it."""

    now = ForecastBody(help_text="As the plan is.")
    proposed = ForecastBody(allow_null=True, help_text="The m that is expected to save most.")
    half = ForecastBody(allow_null=True)
    twice = ForecastBody(allow_null=True)
    leave_out = serializers.CharField(
        allow_blank=True, help_text="A model without which more would be saved; empty where each pays."
    )
    sentence = serializers.CharField(allow_blank=True)


class MeasuredBody(serializers.Serializer[Any]):
    """`forecast` is null where nothing was measured that fits the plan; `stale` says why it does not."""

    state = serializers.ChoiceField(choices=["not measured", "under way", "stopped", "stale", "measured"])
    stale = serializers.CharField(allow_blank=True)
    job = serializers.IntegerField(allow_null=True)
    forecast = ForetoldBody(allow_null=True)


class PromiseBody(serializers.Serializer[Any]):
    """What a promise takes, at the alpha of the plan."""

    epsilon = decimal_number()
    smallest_n = serializers.IntegerField(help_text="Labels by people that could certify anything.")
    m = serializers.IntegerField(
        allow_null=True,
        help_text="How many items to draw: what is expected to cost least in all once models are measured, "
        "else enough to certify something; null where there are too few items.",
    )
    labels = serializers.IntegerField(help_text="By people for the calibration, with that m.")
    forecast = ForecastBody(allow_null=True, help_text="With that m; null where nothing was measured.")
    others = ForecastBody(many=True, help_text="With half and with twice that m, where they can certify.")
    nearly_all_to_people = serializers.BooleanField(help_text="Whether people will label nearly all.")


class MeasureFields(serializers.Serializer[Any]):
    """For which plan the models are measured. `size` is left out for that of a pilot."""

    target = serializers.CharField(max_length=20, required=False)
    leave_out = serializers.ListField(child=serializers.CharField(), required=False)
    size = serializers.IntegerField(min_value=1, required=False, allow_null=True)


class BuyFields(MeasureFields):
    budget = budget_field(required=False)


class OfferBody(serializers.Serializer[Any]):
    """What measuring would take; nothing is bought by asking."""

    sources = serializers.ListField(child=serializers.CharField())
    pool_size = serializers.IntegerField()
    pilot_size = serializers.IntegerField()
    price = MoneyField()
    currency = serializers.CharField()


class OutlookBody(serializers.Serializer[Any]):
    """What a plan would mean; money is in `currency`."""

    sentence = serializers.CharField()
    what_is_right = serializers.CharField(help_text="Whose label is right, and whose mistakes do not count.")
    certifiable = serializers.BooleanField()
    bound = serializers.CharField()
    pool_size = serializers.IntegerField()
    pilot_size = serializers.IntegerField()
    expected_labels = decimal_number()
    people_per_item = decimal_number()
    expected_tested_labels = serializers.IntegerField()
    smallest_n = serializers.IntegerField(allow_null=True)
    allowed_errors = serializers.IntegerField(allow_null=True)
    allowed_mean_loss = serializers.FloatField(allow_null=True)
    exact = serializers.BooleanField()
    currency = serializers.CharField()
    calibration_cost = MoneyField()
    model_cost = MoneyField()
    model_cost_at_least = MoneyField(
        help_text="Less than `model_cost` where a dear model is asked about drawn items only where needed."
    )
    at_least = MoneyField()
    at_most = MoneyField()
    people_only = MoneyField()
    people_at_least = serializers.IntegerField(
        help_text="Items that people label whatever the thresholds, as far as that is known."
    )
    nearly_all_to_people = serializers.BooleanField()
    usability = UsabilityBody(many=True)
    asks_to_accept_unusable = serializers.BooleanField(
        help_text="Whether a run of it starts only with `accept_unusable`."
    )
    asks_to_accept_dearer = serializers.BooleanField(
        help_text="Whether a run of it starts only with `accept_dearer`: the expert alone would cost less."
    )
    warnings = serializers.ListField(child=serializers.CharField())
    missing = serializers.ListField(
        child=serializers.CharField(),
        help_text=MISSING_HELP,
    )
    final_audit = serializers.CharField(allow_blank=True, help_text="What it leaves to models and people.")
    measured = MeasuredBody()
    promises = PromiseBody(many=True, help_text="For other epsilons; empty with the reference `expert`.")
    references = ReferencesBody(
        allow_null=True, help_text="Null where nothing was measured, or no expert can be the reference."
    )
    references_missing = serializers.CharField(
        allow_blank=True, help_text="Why `references` is null, in a sentence; empty where it is not."
    )


class Plan(ProjectView):
    actions = {"GET": "runs.edit", "POST": "runs.edit"}

    @extend_schema(parameters=[MenuQuery], responses=PlanMenus)
    def get(self, request: Request, slug: str) -> Response:
        """What can be chosen beside `target`, `loss`, `p_column` and `leave_out` of the query, and why some
        cannot.
        """
        asked = self.query(MenuQuery)
        options = plan_options(
            self.access.project,
            target=asked.get("target", ""),
            loss=asked.get("loss", ""),
            p_varies=bool(asked.get("p_column")),
            leave_out=asked.get("leave_out", ()),
        )
        menus = {name: [_option(entry) for entry in options.of(name)] for name in MENUS}
        return Response({"options": menus, "p_columns": columns_of_probabilities(self.access.project)})

    @extend_schema(request=PlanFields, responses=OutlookBody)
    def post(self, request: Request, slug: str) -> Response:
        """What a plan would mean. Nothing is stored."""
        project = self.access.project
        seen = outlook_of_plan(project=project, **self.parsed(PlanFields))
        promises = promises_content(project, seen)
        return Response({**outlook_content(seen), "promises": promises, **references_part(project, seen)})


class Measure(ProjectView):
    actions = {"GET": "runs.edit", "POST": "runs.edit", "DELETE": "runs.edit"}

    @extend_schema(parameters=[MeasureFields], responses=OfferBody)
    def get(self, request: Request, slug: str) -> Response:
        """What it would cost to have all models answer a pilot before a plan is chosen."""
        offered = offer(self.access.project, **self.query(MeasureFields))
        return Response(
            {
                "sources": [source.name for source in offered.sources],
                "pool_size": offered.pool_size,
                "pilot_size": offered.size,
                "price": in_full(offered.price),
                "currency": self.access.project.currency,
            }
        )

    @extend_schema(request=BuyFields, responses={202: MeasuredBody})
    def post(self, request: Request, slug: str) -> Response:
        """Have all models answer a pilot. No label is asked for, and no answer is shown."""
        fields = self.parsed(BuyFields)
        measured = start_measurement(project=self.access.project, user=cast(User, request.user), **fields)
        return Response(measured_content(measured, None), status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses={204: Nothing})
    def delete(self, request: Request, slug: str) -> Response:
        """Discard what was measured: no run takes it."""
        discard_measurement(project=self.access.project, user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)


def measured_content(measured: Measured, foretold: PlanForecast | None) -> dict[str, Any]:
    """What was measured and what it foretells of a plan."""
    body: dict[str, Any] = {
        "state": measured.state,
        "stale": measured.stale,
        "job": measured.job.pk if measured.job else None,
        "forecast": None,
    }
    if foretold is not None:
        proposal = foretold.proposal
        body["forecast"] = {
            "now": asdict(foretold.now),
            "proposed": asdict(proposal.best) if proposal else None,
            "half": asdict(proposal.half) if proposal and proposal.half else None,
            "twice": asdict(proposal.twice) if proposal and proposal.twice else None,
            "leave_out": foretold.leave_out,
            "sentence": foretold.needless_in_words,
        }
    return body


def _option(option: Option) -> dict[str, Any]:
    return {**asdict(option), "parameters": dict(option.parameters)}


def promises_content(project: Project, seen: PlanOutlook) -> list[dict[str, Any]]:
    found = promises_of_plan(project, seen, [(epsilon, seen.plan.alpha) for epsilon in EPSILONS])
    return [
        {
            "epsilon": one.epsilon,
            "smallest_n": one.least,
            "m": one.m,
            "labels": one.labels,
            "forecast": asdict(one.best) if one.best else None,
            "others": [asdict(other) for other in one.others],
            "nearly_all_to_people": one.nearly_all,
        }
        for one in found
    ]


def outlook_content(seen: PlanOutlook) -> dict[str, Any]:
    facts = seen.statistics
    return {
        "sentence": " ".join(filter(None, [seen.nearly_all, seen.sentence])),
        "what_is_right": seen.beside,
        "certifiable": facts.certifiable and seen.scored,
        "bound": seen.plan.bound_rule().name,
        "pool_size": seen.pool_size,
        "pilot_size": seen.pilot_size,
        "expected_labels": facts.expected_human_labels,
        "people_per_item": seen.people_per_item,
        "expected_tested_labels": facts.expected_tested_labels,
        "smallest_n": facts.smallest_n,
        "allowed_errors": facts.allowed_errors_at_expected_n if seen.binary else None,
        "allowed_mean_loss": facts.allowed_mean_loss,
        "exact": facts.exact,
        "currency": seen.currency,
        "calibration_cost": in_full(seen.calibration_cost),
        "model_cost": in_full(seen.model_cost),
        "model_cost_at_least": in_full(seen.model_cost_at_least),
        "at_least": in_full(seen.at_least),
        "at_most": in_full(seen.at_most),
        "people_only": in_full(seen.people_only),
        "people_at_least": seen.people_at_least,
        "nearly_all_to_people": bool(seen.nearly_all),
        "usability": [usability_content(source) for source in seen.looked.sources],
        "asks_to_accept_unusable": bool(seen.looked.asking),
        "missing": [missing.in_words for missing in seen.missing],
        "final_audit": seen.final_audit,
        "measured": measured_content(seen.measured, forecast_of_plan(seen)),
    }


urlpatterns = [
    path("projects/<slug:slug>/plan/", Plan.as_view(), name="api_plan"),
    path("projects/<slug:slug>/plan/measure/", Measure.as_view(), name="api_plan_measure"),
]
