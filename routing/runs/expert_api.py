"""The part of /api/v1/ that is about runs with an expert, and about who is on the roster of a run."""

from typing import Any, cast

from django.http import Http404, HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.schema import Nothing
from annotation.jobs.serializers import JobBody, accepted
from annotation.models import User
from routing.models import Certificate, FinalCertificate, Run
from routing.runs.absent_people import OpenWork, open_work_of
from routing.runs.expert.ask import ask_expert
from routing.runs.expert.final import FinalState, analyse_final_audit, draw_final_audit, final_state
from routing.runs.expert.leaving import give_up_open_items
from routing.runs.expert.report import people_differences, rank_nobody


class RosterEntryBody(serializers.Serializer[Any]):
    """Somebody who labels in the run; `name` is what certificates and files say."""

    user = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=["annotator", "expert"])
    share = serializers.CharField(help_text="Of the work of that role, a fraction such as 1/3.")
    left_at = serializers.DateTimeField(allow_null=True)
    open = serializers.IntegerField(help_text="Items of theirs that wait now.")
    done = serializers.IntegerField()
    last_label_at = serializers.DateTimeField(allow_null=True)
    may_label = serializers.BooleanField()


class RosterBody(serializers.Serializer[Any]):
    entries = RosterEntryBody(many=True)


class HandOverFields(serializers.Serializer[Any]):
    user = serializers.CharField(max_length=150, help_text="Username of somebody on the roster.")


class HandOverBody(serializers.Serializer[Any]):
    items = serializers.IntegerField()


class _RunView(ProjectView):
    def find_run(self, number: int) -> Run:
        run = self.access.project.runs.filter(number=number).first()
        if run is None:
            raise Http404
        return run


class RunRoster(_RunView):
    actions = {"GET": "runs.view"}

    @extend_schema(responses=RosterBody)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Who labels in the run by its roster; nobody where whoever is free takes the next item."""
        run = self.find_run(number)
        work = {row.user.pk: row for row in open_work_of(run)}
        entries = run.roster.select_related("user")
        return Response({"entries": [_entry(entry, work.get(entry.user_id)) for entry in entries]})


class RunAskExpert(_RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=Nothing, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Lock the annotators' calibration labels, and have the expert asked: before the analysis."""
        self.parsed(Nothing)
        return accepted(ask_expert(run=self.find_run(number), user=cast(User, request.user)))


class FinalAuditBody(serializers.Serializer[Any]):
    """The final audit of a run. What is found is null until it is analysed."""

    planned = serializers.IntegerField(help_text="Labels that were to be drawn, by the plan.")
    drawn_at = serializers.DateTimeField(allow_null=True)
    size = serializers.IntegerField(allow_null=True, help_text="Labels that could be drawn.")
    sampled = serializers.IntegerField(allow_null=True)
    open = serializers.IntegerField(help_text="Drawn items that wait for the expert.")
    objection = serializers.CharField(
        allow_blank=True, help_text="Why it cannot be drawn, or analysed, now; empty where it can."
    )
    id = serializers.CharField(allow_null=True, help_text="SHA-256 of final_audit.json.")
    certified = serializers.BooleanField(
        allow_null=True, help_text="Whether it certifies the promise, and nothing broke that since."
    )
    sentence = serializers.CharField(allow_null=True)
    invalid_reasons = serializers.ListField(child=serializers.CharField())


class RunFinalAudit(_RunView):
    actions = {"GET": "runs.view", "POST": "runs.edit"}

    @extend_schema(responses=FinalAuditBody)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """How far the final audit is, and what it found; 404 where none is planned."""
        run = self.find_run(number)
        state = final_state(run)
        if state is None:
            raise Http404
        return Response(_final_audit(run, state))

    @extend_schema(request=Nothing, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Draw the final audit, and have the expert asked: once, when everything is labelled."""
        self.parsed(Nothing)
        return accepted(draw_final_audit(run=self.find_run(number), user=cast(User, request.user)))


class RunAnalyseFinalAudit(_RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=Nothing, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Have the result of the final audit computed: once, when the expert has labelled all of it."""
        self.parsed(Nothing)
        return accepted(analyse_final_audit(run=self.find_run(number), user=cast(User, request.user)))


class RunFinalCertificate(_RunView):
    actions = {"GET": "predictions.view"}

    @extend_schema(responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, slug: str, number: int) -> HttpResponse:
        """The certificate of the final audit, byte by byte as it is stored."""
        found = FinalCertificate.objects.filter(audit__run=self.find_run(number)).first()
        if found is None:
            raise Http404
        return HttpResponse(found.document, content_type="application/json")


class RunHandOver(_RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=HandOverFields, responses=HandOverBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Have the open items of an annotator who is absent go to the expert, or in the calibration set count
        as not answered; those of an expert go to nobody, and count as what she cannot label.
        """
        fields = self.parsed(HandOverFields)
        run = self.find_run(number)
        entry = run.roster.filter(user__username=fields["user"]).select_related("user").first()
        if entry is None:
            raise Http404
        return Response(
            {"items": give_up_open_items(run=run, user=entry.user, actor=cast(User, request.user))}
        )


def _final_audit(run: Run, state: FinalState) -> dict[str, Any]:
    drawn, found = state.audit, state.certificate
    return {
        "planned": run.final_sample,
        "drawn_at": drawn and drawn.drawn_at,
        "size": drawn and drawn.size,
        "sampled": drawn and drawn.sampled,
        "open": state.open,
        "objection": state.objection,
        "id": found and found.sha256,
        "certified": found and found.holds,
        "sentence": found and found.sentence,
        "invalid_reasons": found.broken_by if found else [],
    }


def _entry(entry: Any, work: OpenWork | None) -> dict[str, Any]:
    return {
        "user": entry.user.username,
        "name": entry.name,
        "role": entry.role,
        "share": entry.share,
        "left_at": entry.left_at,
        "open": work.open if work else 0,
        "done": work.done if work else 0,
        "last_label_at": work.last if work else None,
        "may_label": work.may_label if work else True,
    }


def people_content(certificate: Certificate) -> dict[str, Any] | None:
    """How often people differ from the expert; None where there is none, or it was not computed."""
    found = people_differences(certificate)
    if not found:
        return None
    return {
        "all": found["all"],
        "annotators": [{"name": name, **row} for name, row in sorted(found["annotators"].items())],
        "warning": rank_nobody(),
    }


_ONE = "projects/<slug:slug>/runs/<row:number>/"
urlpatterns = [
    path(f"{_ONE}roster/", RunRoster.as_view(), name="api_run_roster"),
    path(f"{_ONE}ask-expert/", RunAskExpert.as_view(), name="api_run_ask_expert"),
    path(f"{_ONE}final-audit/", RunFinalAudit.as_view(), name="api_run_final_audit"),
    path(
        f"{_ONE}analyse-final-audit/",
        RunAnalyseFinalAudit.as_view(),
        name="api_run_analyse_final_audit",
    ),
    path(f"{_ONE}final_audit.json", RunFinalCertificate.as_view(), name="api_run_final_certificate"),
    path(f"{_ONE}hand-over/", RunHandOver.as_view(), name="api_run_hand_over"),
]
