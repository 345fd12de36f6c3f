"""The part of /api/v1/ about how far a project is."""

from dataclasses import asdict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.common.api.base import ProjectView
from annotation.common.money import in_full
from routing.common.api_bodies import OverviewBody
from routing.overview.queries import read_overview


class Overview(ProjectView):
    # Which stage the waiting items belong to is not for annotators to know.
    actions = {"GET": "runs.view"}

    @extend_schema(responses=OverviewBody)
    def get(self, request: Request, slug: str) -> Response:
        """The stages of the project, its next step, what was paid."""
        view = read_overview(self.access.project, self.access)
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
                "paid": [{**asdict(line), "amount": in_full(line.amount)} for line in view.spend],
            }
        )


urlpatterns = [path("projects/<slug:slug>/overview/", Overview.as_view(), name="api_overview")]
