"""The part of /api/v1/ that lists runs and starts them."""

from typing import cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import KeysetPages, ProjectView
from annotation.common.api.conditional import created
from annotation.common.api.schema import PageQuery, page_of
from annotation.errors import ConflictError
from annotation.models import User
from routing.common.api_bodies import RunBody
from routing.core.choices import DEFAULT_TARGET
from routing.models import Run
from routing.runs.api import plan_content
from routing.runs.due import why_not_due
from routing.runs.missing_answers import missing_answers
from routing.runs.plan import sources_of
from routing.runs.plan_api import MISSING_HELP, PlanFields
from routing.runs.start import start_run


class RunPages(KeysetPages):
    ordering = "-number"


class RunFields(PlanFields):
    """`accept_unusable`: start although many answers of a model cannot be used (`usability` of the plan);
    `accept_dearer`: although the expert alone is expected to cost less (`references` of the plan);
    `accept_missing` = false: not where a source lacks answers (`missing` of the plan).
    """

    anyway = serializers.BooleanField(default=False)
    accept_unusable = serializers.BooleanField(default=False)
    accept_dearer = serializers.BooleanField(default=False)
    accept_missing = serializers.BooleanField(
        default=True,
        help_text="False: start none while an uploaded source lacks answers for items of the run.",
    )
    unless_under_way = serializers.BooleanField(
        default=False, help_text="Start none while another run is not finished: 409, `no_run_due`."
    )
    unless_undelivered = serializers.BooleanField(
        default=False,
        help_text="Start none while the newest run is complete and not delivered since: 409, `no_run_due`.",
    )
    if_new_items = serializers.BooleanField(
        default=False,
        help_text="Start none where each of its items was in the pool of an earlier run: 409, `no_run_due`.",
    )


class RunQuery(PageQuery):
    state = serializers.ChoiceField(required=False, choices=Run.State.choices)


ONLY_WHERE_DUE = ("unless_under_way", "unless_undelivered", "if_new_items")


class StartedRunBody(RunBody):
    warnings = serializers.ListField(child=serializers.CharField(), help_text=MISSING_HELP)


class RunList(ProjectView):
    actions = {"GET": "runs.view", "POST": "runs.edit"}

    @extend_schema(parameters=[RunQuery], responses=page_of(RunBody))
    def get(self, request: Request, slug: str) -> Response:
        """Newest first."""
        asked = self.query(RunQuery)
        wanted = {"state": asked["state"]} if "state" in asked else {}
        return self.paged(RunPages(), self.access.project.runs.filter(**wanted), plan_content)

    @extend_schema(request=RunFields, responses={201: StartedRunBody})
    def post(self, request: Request, slug: str) -> Response:
        """Freeze the items, draw the calibration set and let the models begin."""
        fields = self.parsed(RunFields)
        project = self.access.project
        asked = {name: fields.pop(name) for name in ONLY_WHERE_DUE}
        if why := why_not_due(project, target=fields.get("target"), **asked):
            raise ConflictError(why.words, code="no_run_due")
        missing = []
        if fields["accept_missing"]:  # else a run that begins lacks none
            sources = sources_of(project, leave_out=fields.get("leave_out", ()))
            missing = missing_answers(project, sources, target=fields.get("target") or DEFAULT_TARGET)
        run = start_run(
            project=project,
            user=cast(User, request.user),
            allow_uncertifiable=fields.pop("anyway"),
            **fields,
        )
        content = {**plan_content(run), "warnings": [one.in_words for one in missing]}
        return created(content, "api_run", slug=slug, number=run.number)


urlpatterns = [path("projects/<slug:slug>/runs/", RunList.as_view(), name="api_runs")]
