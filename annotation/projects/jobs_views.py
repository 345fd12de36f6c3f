"""Background work, as people see it."""

import csv
from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.spreadsheets import escape_formula
from annotation.imports.columns import IMPORT
from annotation.imports.undo import undo_objection
from annotation.jobs.context import MAX_PROBLEMS
from annotation.jobs.jobs import UNFINISHED
from annotation.jobs.manage import cancel_job, pause_job, resume_job, retry_job, try_job_now
from annotation.jobs.progress import job_progress
from annotation.models import Job
from annotation.ports import routing_port
from annotation.projects.connections_views import fetched_page

# htmx stops asking when it gets this status.
STOP_POLLING = 286
SHOWN_PROBLEMS = 100
PER_PAGE = 30


@needs("jobs.view", "GET")
def jobs(request: ProjectRequest) -> HttpResponseBase:
    found = request.access.project.jobs.select_related("created_by").order_by("-id")
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    return render(
        request, "annotation/projects/jobs.html", {"page": page, "rows": [job_progress(job) for job in page]}
    )


@needs("jobs.view", "GET")
def job(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    found = _job(request, job_id)
    problems = found.problems.all()
    problem_count = problems.count()
    context: dict[str, Any] = {
        "progress": job_progress(found),
        "problems": problems[:SHOWN_PROBLEMS],
        "problem_count": problem_count,
        "problems_are_all": problem_count < MAX_PROBLEMS,
        "problems_shown": SHOWN_PROBLEMS if problem_count > SHOWN_PROBLEMS else 0,
        "polls": found.state in UNFINISHED,
        "origin": fetched_page(found, request.access)
        or routing_port().job_page(job=found, access=request.access),
        "models": routing_port().models_to_add(access=request.access) if _has_brought(found) else None,
        "import_stays": undo_objection(found) if request.access.allows("items.import") else None,
    }
    if request.htmx:
        status = 200 if context["polls"] else STOP_POLLING
        return render(request, "annotation/projects/_job.html", context, status=status)
    return render(request, "annotation/projects/job.html", context)


def _has_brought(job: Job) -> bool:
    """Whether it is an import, by which items are there now."""
    return job.kind == IMPORT and job.state == Job.State.DONE and not job.result.get("removed")


@needs("jobs.view", "GET")
def job_problems(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    """All lines that a job could not use, as CSV."""
    found = _job(request, job_id)

    class Line:
        def write(self, text: str) -> str:
            return text

    def rows() -> Iterator[str]:
        writer = csv.writer(Line())
        yield writer.writerow(["line", "column", "where", "problem"])
        told = found.problems.values_list("line", "column", "where", "message")
        for line, column, where, message in told.iterator():
            cells = ["" if line is None else str(line), column, where, message]
            yield writer.writerow([escape_formula(cell) for cell in cells])  # of somebody's file
        if found.problems.count() >= MAX_PROBLEMS:
            yield writer.writerow(["", "", "", _("These are the first; no more are kept.")])

    return StreamingHttpResponse(
        rows(),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="problems-of-job-{found.pk}.csv"'},
    )


@needs("jobs.edit", "POST")
def job_cancel(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    found = _job(request, job_id)
    with refusals_as_messages(request):
        if cancel_job(job=found, user=request.user):
            messages.success(request, _("Stopped. What it had finished is kept."))
        else:
            messages.info(request, _("It had already ended."))
    return redirect("job", request.access.project.slug, found.pk)


@needs("jobs.edit", "POST")
def job_pause(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    found = _job(request, job_id)
    with refusals_as_messages(request):
        pause_job(job=found, user=request.user)
        messages.success(request, _("It pauses as soon as what is under way has been stored."))
    return _back(request, found)


@needs("jobs.edit", "POST")
def job_resume(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    found = _job(request, job_id)
    with refusals_as_messages(request):
        resume_job(job=found, user=request.user)
        messages.success(request, _("It goes on where it stopped."))
    return _back(request, found)


@needs("jobs.edit", "POST")
def job_retry(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    found = _job(request, job_id)
    with refusals_as_messages(request):
        retry_job(job=found, user=request.user)
        messages.success(request, _("Started again; it goes on where it stopped."))
    return _back(request, found)


@needs("jobs.edit", "POST")
def job_try_now(request: ProjectRequest, job_id: int) -> HttpResponseBase:
    """Make the next attempt of work that waits after a failure without waiting longer."""
    found = _job(request, job_id)
    with refusals_as_messages(request):
        try_job_now(job=found, user=request.user)
        messages.success(request, _("It is tried now; it goes on where it stopped."))
    return _back(request, found)


def _back(request: ProjectRequest, found: Job) -> HttpResponseBase:
    """To the page where the button was, if it says which of this site's it is; else to that of the job."""
    page = request.POST.get("next", "")
    if page.startswith("/") and url_has_allowed_host_and_scheme(page, allowed_hosts=None):
        return HttpResponseRedirect(page)
    return redirect("job", request.access.project.slug, found.pk)


def _job(request: ProjectRequest, job_id: int) -> Job:
    return get_object_or_404(
        Job.objects.select_related("created_by"), project=request.access.project, pk=job_id
    )
