"""The part of /api/v1/ about what runs commit to, and about the ledger of alpha of a project."""

from typing import Any, cast

from django.http import Http404, HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.jobs.serializers import JobBody, accepted
from annotation.models import User
from routing.models import Run
from routing.runs.commitment_queries import document_to_show
from routing.runs.commitments import give_value
from routing.runs.ledger import linked_ledger


class DrawFields(serializers.Serializer[Any]):
    value = serializers.CharField(
        allow_blank=True,
        default="",
        max_length=500,
        help_text="The text that somebody else chose, or the value of the beacon; empty: ask the beacon "
        "again.",
    )


class LedgerEntryBody(serializers.Serializer[Any]):
    """What a draw, or a final audit, has spent of alpha. `sha256` is the hash of the rest, `previous` that of
    the entry before.
    """

    number = serializers.IntegerField()
    run = serializers.IntegerField()
    kind = serializers.CharField()
    alpha = serializers.CharField()
    target = serializers.CharField()
    pool = serializers.CharField()
    commitment = serializers.CharField(allow_blank=True)
    previous = serializers.CharField(allow_blank=True)
    sha256 = serializers.CharField()


class LedgerBody(serializers.Serializer[Any]):
    entries = LedgerEntryBody(many=True)


def _run(view: ProjectView, number: int) -> Run:
    run = view.access.project.runs.filter(number=number).first()
    if run is None:
        raise Http404
    return run


class RunCommitment(ProjectView):
    actions = {"GET": "runs.edit"}

    @extend_schema(responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, slug: str, number: int, which: int) -> HttpResponse:
        """The very bytes that were committed to: 1 before the draw, 2 before the first label. They can be had
        once the run is analysed, as they tell which items were drawn.
        """
        document = document_to_show(_run(self, number), which)
        if document is None:
            raise Http404
        return HttpResponse(document, content_type="application/json")


class RunDrawValue(ProjectView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=DrawFields, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Draw the calibration set of a run that waits for what its draw is to come from."""
        given = self.parsed(DrawFields)
        run, user = _run(self, number), cast(User, request.user)
        return accepted(give_value(run=run, user=user, value=given["value"]))


class Ledger(ProjectView):
    actions = {"GET": "runs.view"}

    @extend_schema(responses=LedgerBody)
    def get(self, request: Request, slug: str) -> Response:
        """All that the project's draws have spent of alpha, as certificates hold it."""
        return Response({"entries": linked_ledger(self.access.project)})


_RUN = "projects/<slug:slug>/runs/<row:number>/"

urlpatterns = [
    path(f"{_RUN}commitments/<row:which>.json", RunCommitment.as_view(), name="api_run_commitment"),
    path(f"{_RUN}draw/", RunDrawValue.as_view(), name="api_run_draw_value"),
    path("projects/<slug:slug>/ledger/", Ledger.as_view(), name="api_ledger"),
]
