"""The part of /api/v1/ that is about runs and their budgets.

Nothing that the analysis finds is in it before the analysis.
"""

from dataclasses import asdict
from typing import Any, cast

from django.http import Http404, HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.api.schema import Nothing
from annotation.common.api.streams import NDJSON, NdjsonRenderer
from annotation.common.money import in_full
from annotation.jobs.serializers import JobBody, accepted
from annotation.labelling.queue import BatchProgress
from annotation.models import User
from routing.common.api_bodies import MoneyBody, RunBody, RunDetails
from routing.models import Certificate, Run, RunSource
from routing.runs.api_fields import budget_field
from routing.runs.budget import set_budget
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.commitment_report import commitment_report
from routing.runs.expert.analyse import REFERENCES
from routing.runs.expert.measured import last_measured
from routing.runs.expert.report import ExpertReport
from routing.runs.expert_api import people_content
from routing.runs.later.report import LaterReport
from routing.runs.later.take_in import take_in
from routing.runs.people_agreement import people_agreement
from routing.runs.queries import Threshold, run_report
from routing.runs.route import route
from routing.runs.route_outlook_api import RouteOutlookBody, outlook_to_show
from routing.runs.spending import model_money
from routing.runs.suggestion_counts import suggestion_counts
from routing.runs.two_people import FIGURE
from routing.runs.usable_answers import accept_unusable
from routing.runs.work_order import set_work_order


class RunView(ProjectView):
    """A run by its number within the project."""

    actions = {"GET": "runs.view"}

    def find_run(self, number: int) -> Run:
        run = self.access.project.runs.filter(number=number).first()
        if run is None:
            raise Http404
        return run

    def find_certificate(self, number: int) -> Certificate:
        certificate = Certificate.objects.filter(run=self.find_run(number)).first()
        if certificate is None:
            raise Http404
        return certificate


class RunDetail(RunView):
    @extend_schema(responses=RunDetails)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Its plan, progress, certificate and figures."""
        run = self.find_run(number)
        report = run_report(run)
        body = plan_content(run) | {
            "sources": [
                _source(frozen) for frozen in run.run_sources.select_related("source").order_by("position")
            ],
            "calibration": _progress(report.progress),
            "labelling": _progress(report.routed_progress),
            "expert": _progress(report.expert_progress),
            "paid": in_full(report.savings.paid),
            "models": money_of(run),
            "alpha_total": report.alpha_total,
            **_committed(run),
            "invalid_reasons": report.invalid_reasons,
            "suggested": None if (counts := suggestion_counts(run)) is None else asdict(counts),
        }
        if run.by_people and run.routed_batch_id is not None:
            body["people_agreement"] = people_agreement(run)
        if report.certificate is not None:
            body["certificate"] = {
                "id": report.certificate.sha256,
                # Programs read this alone. The certificate's own bytes stay what they were.
                "certified": report.certificate.holds,
                "sentence": report.sentence,
                "what_is_right": report.beside,
                "thresholds": [_threshold(threshold) for threshold in report.thresholds],
                "own_scores": report.own_scores,
                "allowed_errors": report.allowed_errors,
                "observed_errors": report.observed_errors,
                "asked": report.asked,
                "unanswered": report.unanswered,
            }
            body |= {
                "labels_by_source": [
                    {
                        "position": count.position,
                        "source": count.name or ("expert" if count.by_expert else "person"),
                        "items": count.items,
                    }
                    for count in report.counts
                ],
                "blanks": report.blanks,
                "routing_saving": in_full(report.routing_saving),
                "net_saving": in_full(report.net_saving),
                "savings_final": report.savings.final,
                "two_people": report.certificate.figures.get(FIGURE),
                "figures": report.certificate.figures,
                "audit": _audit(report.expert),
                "later_items": _later_items(report.later),
                "people": people_content(report.certificate),
                "people_measured": _measured(run),
                "other_references": report.certificate.figures.get(REFERENCES, []),
            }
        return Response(body)


class RunCertificate(RunView):
    @extend_schema(responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, slug: str, number: int) -> HttpResponse:
        """The very bytes that the certificate's id is the SHA-256 of."""
        certificate = self.find_certificate(number)
        return HttpResponse(certificate.document, content_type="application/json")


class RunDraw(RunView):
    # It holds the scores of drawn items that nobody was asked about: a later run may ask for them blind.
    actions = {"GET": "predictions.view"}
    renderer_classes = (*ProjectView.renderer_classes, NdjsonRenderer)

    @extend_schema(responses={(200, NDJSON): OpenApiTypes.STR})
    def get(self, request: Request, slug: str, number: int) -> HttpResponse:
        """What recomputes the certificate: each drawn item, an object on each line."""
        certificate = self.find_certificate(number)
        return HttpResponse(certificate.draw_lines, content_type=NDJSON)


class RunAnalyse(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=Nothing, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Lock the calibration labels and have the thresholds certified: once, when all are there."""
        self.parsed(Nothing)
        return accepted(analyse(run=self.find_run(number), user=cast(User, request.user)))


class RunRoute(RunView):
    actions = {"GET": "runs.view", "POST": "runs.edit"}

    @extend_schema(responses={200: RouteOutlookBody})
    def get(self, request: Request, slug: str, number: int) -> Response:
        """What routing would do: how many items each source gets, what is still to be paid and labelled."""
        return Response(RouteOutlookBody(outlook_to_show(self.find_run(number))).data)

    @extend_schema(request=Nothing, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Send every item to its source, and give people the rest."""
        self.parsed(Nothing)
        return accepted(route(run=self.find_run(number), user=cast(User, request.user)))


class TakeInFields(serializers.Serializer[Any]):
    accept_missing = serializers.BooleanField(
        default=True,
        help_text="False: take in none while an uploaded source lacks answers for some of them.",
    )


class RunTakeIn(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=TakeInFields, responses={202: JobBody})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Have items that came after the pool was frozen routed by the run's thresholds, where its target is
        the population.
        """
        fields = self.parsed(TakeInFields)
        return accepted(take_in(run=self.find_run(number), user=cast(User, request.user), **fields))


class WorkOrderFields(serializers.Serializer[Any]):
    order = serializers.CharField(max_length=20, help_text="random, uncertain, class or name.")


class WorkOrderBody(serializers.Serializer[Any]):
    items = serializers.IntegerField(help_text="Requests for a label that have another place now.")


class RunOrder(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=WorkOrderFields, responses=WorkOrderBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Give people what was routed to them in another order."""
        order = self.parsed(WorkOrderFields)["order"]
        user = cast(User, request.user)
        return Response({"items": set_work_order(run=self.find_run(number), user=user, order=order)})


class RunCancel(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=Nothing, responses=RunBody)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """End the run for good. Its draw is spent: its alpha stays in the ledger, its labels with their
        items.
        """
        self.parsed(Nothing)
        run = self.find_run(number)
        cancel_run(run=run, user=cast(User, request.user))
        run.refresh_from_db()
        return Response(plan_content(run))


class RunAcceptUnusable(RunView):
    actions = {"POST": "runs.edit"}

    @extend_schema(request=Nothing, responses={204: None})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Let a run go on that stopped before people were asked, because many answers cannot be used."""
        accept_unusable(run=self.find_run(number), user=cast(User, request.user))
        return Response(status=status.HTTP_204_NO_CONTENT)


def plan_content(run: Run) -> dict[str, Any]:
    names = (
        *(
            "number",
            "state",
            "by_people",
            "chosen",
            "epsilon",
            "alpha",
            "target",
            "m",
            "p",
            "p_column",
            "p_min",
        ),
        *("bound", "rule", "split_share", "loss", "loss_params", "score", "score_params"),
        *("human_cost", "overlap", "overlap_share", "consensus"),
        *("reference", "expert_name", "expert_cost", "recheck_share", "audit_share", "accepted_error"),
        *("final_sample", "final_models_error", "final_models_alpha", "final_people_alpha"),
        *("later_audit_share", "draw_from", "suggestions"),
        *("pool_size", "later_size", "whole_size", "pool_hash"),
        *("created_at", "analysed_at", "routed_at", "completed_at"),
    )
    money = {name: in_full(getattr(run, name)) for name in ("human_cost", "expert_cost")}
    return {name: getattr(run, name) for name in names} | money


def _source(frozen: RunSource) -> dict[str, Any]:
    names = ("position", "fingerprint", "cost_function", "prices")
    told = {name: getattr(frozen, name) for name in names}
    return {"source": frozen.source.name, "cost_per_label": in_full(frozen.cost_per_label), **told}


def _progress(progress: BatchProgress | None) -> dict[str, int] | None:
    if progress is None:
        return None
    names = ("open", "leased", "done", "unlabelable", "total", "items", "settled", "disagreeing")
    return {name: getattr(progress, name) for name in names}


def _audit(expert: ExpertReport | None) -> dict[str, Any] | None:
    audit = expert.audit if expert else None
    return None if audit is None else {**vars(audit), "alarm": audit.alarm}


def _later_items(later: LaterReport | None) -> dict[str, Any] | None:
    if later is None:
        return None
    return {
        "waiting": later.waiting,
        "objection": later.objection,
        "taken_in": [
            {
                "number": intake.number,
                "items": intake.items,
                "people": intake.people,
                "by": intake.created_by.username if intake.created_by else None,
                "at": intake.finished_at,
            }
            for intake in later.intakes
        ],
        "audit": later.audit and {**vars(later.audit), "alarm": later.audit.alarm},
    }


def _committed(run: Run) -> dict[str, Any]:
    found = commitment_report(run)
    return {
        "commitments": [
            {"number": one.number, "sha256": one.sha256, "created_at": one.created_at}
            for one in (found.commitments if found else ())
        ],
        "draw_waits": bool(found and found.waits),
    }


def _measured(run: Run) -> dict[str, Any] | None:
    found = last_measured(run)
    return None if found is None else asdict(found)


def _threshold(threshold: Threshold) -> dict[str, Any] | None:
    return None if threshold.u is None else {"u": threshold.u, "v": threshold.v}


_ONE = "projects/<slug:slug>/runs/<row:number>/"


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
        "budget": in_full(money.budget),
        "spent": in_full(money.spent),
        "set_aside": in_full(money.under_way),
        "lost": in_full(money.lost),
        "lost_calls": money.lost_calls,
        "left": in_full(money.left),
    }


urlpatterns = [
    path(_ONE, RunDetail.as_view(), name="api_run"),
    path(f"{_ONE}analyse/", RunAnalyse.as_view(), name="api_run_analyse"),
    path(f"{_ONE}route/", RunRoute.as_view(), name="api_run_route"),
    path(f"{_ONE}order/", RunOrder.as_view(), name="api_run_order"),
    path(f"{_ONE}take-in/", RunTakeIn.as_view(), name="api_run_take_in"),
    path(f"{_ONE}cancel/", RunCancel.as_view(), name="api_run_cancel"),
    path(f"{_ONE}accept-unusable/", RunAcceptUnusable.as_view(), name="api_run_accept_unusable"),
    path(f"{_ONE}certificate.json", RunCertificate.as_view(), name="api_run_certificate"),
    path(f"{_ONE}draw.jsonl", RunDraw.as_view(), name="api_run_draw"),
    path("projects/<slug:slug>/runs/<row:number>/budget/", RunBudget.as_view(), name="api_run_budget"),
]
