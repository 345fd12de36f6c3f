"""The part of /api/v1/ that is about plans: what can be chosen, what it would mean, and starting a run."""

from dataclasses import asdict
from typing import Any, cast

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import ProjectView
from annotation.errors import InputError
from annotation.models import Project, User
from routing.models import Run
from routing.selectors.plan_options import Option, plan_options
from routing.services.plan_fields import columns_of_probabilities
from routing.services.runs import Outlook, outlook, start_run


def _share(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=9, decimal_places=8, **options)


def budget_field(**options: Any) -> serializers.DecimalField:
    """The most that the models of a run may cost; null: no limit."""
    return serializers.DecimalField(max_digits=20, decimal_places=6, min_value=0, allow_null=True, **options)


class PlanFields(serializers.Serializer[Any]):
    """What a plan is made of, by the names under which pages and certificates have it.

    What fits together the services say, naming the field.
    """

    epsilon = _share()
    alpha = _share()
    m = serializers.IntegerField(min_value=1)
    p = _share(required=False, allow_null=True)
    p_column = serializers.CharField(max_length=255, required=False, allow_blank=True)
    target = serializers.CharField(max_length=20, required=False)
    rule = serializers.CharField(max_length=40, required=False)
    split_share = _share(required=False, allow_null=True)
    bound = serializers.CharField(max_length=40, required=False, allow_blank=True)
    loss = serializers.CharField(max_length=200, required=False, allow_blank=True)
    loss_params = serializers.DictField(required=False)
    score = serializers.CharField(max_length=40, required=False, allow_blank=True)
    score_params = serializers.DictField(required=False)
    pilot_size = serializers.IntegerField(min_value=0, required=False, allow_null=True)
    budget = budget_field(required=False)


class RunFields(PlanFields):
    anyway = serializers.BooleanField(default=False)


class Plan(ProjectView):
    actions = {"GET": "runs.edit", "POST": "runs.edit"}

    def get(self, request: Request, slug: str) -> Response:
        """What can be chosen beside `target`, `loss` and `p_column` of the query, and why some cannot."""
        options = plan_options(
            self.access.project,
            target=request.query_params.get("target", ""),
            loss=request.query_params.get("loss", ""),
            p_varies=bool(request.query_params.get("p_column")),
        )
        menus = {name: [_option(entry) for entry in menu] for name, menu in vars(options).items()}
        return Response({"options": menus, "p_columns": columns_of_probabilities(self.access.project)})

    def post(self, request: Request, slug: str) -> Response:
        """What a plan would mean. Nothing is stored."""
        return Response(_outlook(outlook(project=self.access.project, **self.parsed(PlanFields))))


def run_from(project: Project, user: Any, fields: dict[str, Any]) -> Run:
    """Start a run; one that can certify nothing only where `anyway` says so."""
    anyway = fields.pop("anyway")
    if not anyway and not outlook(project=project, **fields).statistics.certifiable:
        raise InputError(
            "With this plan too few labels come together to certify anything: people would label every item. "
            "Draw more items, or accept more errors or a higher risk; or send anyway = true.",
            where="anyway",
        )
    return start_run(project=project, user=cast(User, user), **fields)


def _option(option: Option) -> dict[str, Any]:
    return {**asdict(option), "parameters": dict(option.parameters)}


def _outlook(seen: Outlook) -> dict[str, Any]:
    facts = seen.statistics
    return {
        "sentence": seen.sentence,
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
        "calibration_cost": seen.calibration_cost,
        "model_cost": seen.model_cost,
        "at_least": seen.committed,
        "at_most": seen.at_most,
        "people_only": seen.people_only,
        "warnings": seen.warnings,
    }


urlpatterns = [path("projects/<slug:slug>/plan/", Plan.as_view(), name="api_plan")]
