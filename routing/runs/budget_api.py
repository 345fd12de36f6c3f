"""The part of /api/v1/ that is about the budget of a run."""

from typing import Any, cast

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.models import User
from routing.common.api_bodies import MoneyBody
from routing.models import Run
from routing.runs.budget import set_budget
from routing.runs.plan_api import budget_field
from routing.runs.spending import model_money


class BudgetFields(serializers.Serializer[Any]):
    budget = budget_field()


class RunBudget(ProjectView):
    actions = {"PUT": "runs.edit"}

    @extend_schema(request=BudgetFields, responses=MoneyBody)
    def put(self, request: Request, slug: str, number: int) -> Response:
        """Change what the models of a run may cost; null: no limit."""
        run = self.access.project.runs.filter(number=number).first()
        if run is None:
            raise Http404
        changed = set_budget(run=run, user=cast(User, request.user), **self.parsed(BudgetFields))
        return Response(money_of(changed))


def money_of(run: Run) -> dict[str, Any]:
    """What the models of a run cost; `left` is null where there is no budget."""
    money = model_money(run)
    return {
        "budget": money.budget,
        "spent": money.spent,
        "set_aside": money.under_way,
        "lost": money.lost,
        "lost_calls": money.lost_calls,
        "left": money.left,
    }


urlpatterns = [
    path("projects/<slug:slug>/runs/<row:number>/budget/", RunBudget.as_view(), name="api_run_budget")
]
