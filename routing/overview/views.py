"""A project's main page: the chain of stages, how far each is, and the one thing to do next."""

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from annotation.common.access import ProjectRequest, needs
from annotation.jobs.progress import job_progress
from annotation.labelling.queries import annotator_pace, waiting_for
from annotation.permissions import Access
from annotation.projects.jobs_views import STOP_POLLING
from routing.overview.queries import read_overview, stuck_items_of
from routing.overview.stages import Stage
from routing.runs.budget import stopped_at_budget
from routing.runs.usable_answers import stopped_at_unusable


@needs("project.view", "GET")
def overview(request: ProjectRequest) -> HttpResponseBase:
    """Whoever may not look at runs (annotators) gets their own work and nothing of the stages: which of them
    the waiting items belong to is not for them to know.
    """
    project, access = request.access.project, request.access
    if not access.allows("runs.view"):
        context: dict[str, Any] = {
            "pace": annotator_pace(project=project, user=request.user),
            "waiting": waiting_for(project=project, user=request.user),
            "rounds": project.rounds.filter(closed_at__isnull=False).exists(),
        }
        return render(request, "routing/overview/overview_annotator.html", context)
    found = read_overview(project, access)
    step = found.next_step
    context = {
        "overview": found,
        "stages": [
            (stage, reverse(stage.url_name, kwargs=stage.url_kwargs) if _links(stage, access) else "")
            for stage in found.stages
        ],
        "next_url": step.address,
        "other_url": reverse(step.other[1], args=[project.slug])
        if step.other and access.allows("runs.edit")
        else "",
        "running": [job_progress(job) for job in found.running_jobs],
        "failed": job_progress(found.failed_job) if found.failed_job else None,
        "stopped_at_budget": stopped_at_budget(found.failed_job),
        "stopped_at_unusable": stopped_at_unusable(found.failed_job),
        "stuck": stuck_items_of(access) if found.stuck else [],
        "paused": project.memberships.filter(paused_at__isnull=False).count()
        if access.allows("project.edit")
        else 0,
        "told_before": request.GET.get("told"),
    }
    if request.htmx:
        return render(
            request, "routing/overview/_overview.html", context, status=200 if found.active else STOP_POLLING
        )
    return render(request, "routing/overview/overview.html", context)


def _links(stage: Stage, access: Access) -> bool:
    """Whether the stage has a page that this person may open, and that is not still to come."""
    return bool(stage.url_name) and stage.state != "waiting" and access.allows(stage.action)
