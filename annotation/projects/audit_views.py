"""What was done in a project, newest first."""

from django.http.response import HttpResponseBase
from django.shortcuts import render

from annotation.common.access import ProjectRequest, needs
from annotation.common.numbers import whole_number

PER_PAGE = 50


@needs("audit.view", "GET")
def audit(request: ProjectRequest) -> HttpResponseBase:
    """Pages by id, so that new events push nothing to another page."""
    events = request.access.project.audit_events.select_related("actor").order_by("-id")
    if before := request.GET.get("before"):
        events = events.filter(pk__lt=whole_number(before))
    rows = list(events[: PER_PAGE + 1])
    older = rows[PER_PAGE - 1].pk if len(rows) > PER_PAGE else None
    return render(request, "annotation/projects/audit.html", {"events": rows[:PER_PAGE], "older": older})
