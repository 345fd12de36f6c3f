"""The part of /api/v1/ that is about runs; that about plans is in api_plans, that about models in
api_sources. Nothing that the analysis finds is in it before the analysis.

`urlpatterns` is included by hypac_site.urls.
"""

from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import path
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.base import KeysetPages, ProjectView
from annotation.queue import BatchProgress
from routing import api_budget, api_plans, api_prices, api_sources
from routing.models import Certificate, Run
from routing.selectors.overview import overview
from routing.selectors.runs import Threshold, run_report


class RunPages(KeysetPages):
    ordering = "-number"


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


class RunList(ProjectView):
    actions = {"GET": "runs.view", "POST": "runs.edit"}

    def get(self, request: Request, slug: str) -> Response:
        pages = RunPages()
        page = pages.paginate_queryset(self.access.project.runs.all(), request, view=self) or []
        return pages.get_paginated_response([_plan(run) for run in page])

    def post(self, request: Request, slug: str) -> Response:
        """Freeze the items, draw the calibration set and let the models begin."""
        run = api_plans.run_from(self.access.project, request.user, self.parsed(api_plans.RunFields))
        return Response(_plan(run), status=status.HTTP_201_CREATED)


class RunDetail(RunView):
    def get(self, request: Request, slug: str, number: int) -> Response:
        run = self.find_run(number)
        report = run_report(run)
        body = _plan(run) | {
            "sources": list(
                run.run_sources.order_by("position").values(
                    *("position", "source__name", "fingerprint"),
                    *("cost_per_label", "cost_function", "prices"),
                )
            ),
            "calibration": _progress(report.progress),
            "labelling": _progress(report.routed_progress),
            "paid": report.savings.paid,
            "models": api_budget.money_of(run),
            "alpha_total": report.alpha_total,
            "invalid_reasons": report.invalid_reasons,
        }
        if report.certificate is not None:
            body["certificate"] = {
                "id": report.certificate.sha256,
                "certified": report.certified,
                "sentence": report.sentence,
                "thresholds": [_threshold(threshold) for threshold in report.thresholds],
                "allowed_errors": report.allowed_errors,
                "observed_errors": report.observed_errors,
                "asked": report.asked,
                "unanswered": report.unanswered,
            }
            body |= {
                "labels_by_source": [
                    {"position": count.position, "source": count.name or "person", "items": count.items}
                    for count in report.counts
                ],
                "blanks": report.blanks,
                "routing_saving": report.routing_saving,
                "net_saving": report.net_saving,
                "savings_final": report.savings.final,
                "figures": report.certificate.figures,
            }
        return Response(body)


class RunCertificate(RunView):
    def get(self, request: Request, slug: str, number: int) -> HttpResponse:
        """The very bytes that the certificate's id is the SHA-256 of."""
        certificate = self.find_certificate(number)
        return HttpResponse(certificate.document, content_type="application/json")


class RunDraw(RunView):
    # It holds the scores of drawn items that nobody was asked about: a later run may ask for them blind.
    actions = {"GET": "predictions.view"}

    def get(self, request: Request, slug: str, number: int) -> HttpResponse:
        certificate = self.find_certificate(number)
        return HttpResponse(certificate.draw_lines, content_type="application/x-ndjson")


class Overview(ProjectView):
    # Which stage the waiting items belong to is not for annotators to know.
    actions = {"GET": "runs.view"}

    def get(self, request: Request, slug: str) -> Response:
        view = overview(self.access.project, self.access)
        return Response(
            {
                "stages": [
                    {
                        name: getattr(stage, name)
                        for name in ("key", "title", "state", "done", "total", "detail")
                    }
                    for stage in view.stages
                ],
                "next_step": view.next_step.text,
                "run": view.run.number if view.run else None,
                "stuck": view.stuck,
                "paid": [asdict(line) for line in view.spend],
            }
        )


def _plan(run: Run) -> dict[str, Any]:
    names = (
        *("number", "state", "epsilon", "alpha", "target", "m", "p", "p_column", "p_min"),
        *("bound", "rule", "split_share", "loss", "loss_params", "score", "score_params"),
        *("human_cost", "overlap", "overlap_share", "consensus"),
        *("pool_size", "whole_size", "pool_hash"),
        *("created_at", "analysed_at", "routed_at", "completed_at"),
    )
    return {name: getattr(run, name) for name in names}


def _progress(progress: BatchProgress | None) -> dict[str, int] | None:
    if progress is None:
        return None
    names = ("open", "leased", "done", "unlabelable", "total", "items", "settled", "disagreeing")
    return {name: getattr(progress, name) for name in names}


def _threshold(threshold: Threshold) -> dict[str, Any] | None:
    return None if threshold.u is None else {"u": threshold.u, "v": threshold.v}


urlpatterns = [
    path("projects/<slug:slug>/overview/", Overview.as_view(), name="api_overview"),
    *api_sources.urlpatterns,
    *api_budget.urlpatterns,
    *api_plans.urlpatterns,
    *api_prices.urlpatterns,
    path("projects/<slug:slug>/runs/", RunList.as_view(), name="api_runs"),
    path("projects/<slug:slug>/runs/<int:number>/", RunDetail.as_view(), name="api_run"),
    path(
        "projects/<slug:slug>/runs/<int:number>/certificate.json",
        RunCertificate.as_view(),
        name="api_run_certificate",
    ),
    path("projects/<slug:slug>/runs/<int:number>/draw.jsonl", RunDraw.as_view(), name="api_run_draw"),
]
