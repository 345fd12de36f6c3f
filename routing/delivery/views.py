"""Files of labelled data."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common import limits
from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.errors import HypacError
from annotation.jobs.jobs import UNFINISHED
from annotation.jobs.progress import job_progress
from annotation.models import Job
from routing.common.states import ROUTED
from routing.delivery.deliver import deliver
from routing.delivery.downloads import archive_response, file_response
from routing.delivery.exports import export_delivery
from routing.delivery.formats import DEFAULT_FORMATS, FORMATS
from routing.delivery.parts import bases_of, find_base
from routing.delivery.queries import DELIVER, deliveries_of, delivery_reports, format_limits
from routing.items import table_query
from routing.items.filters import FILTERS
from routing.models import Delivery, DeliveryFile, Run
from routing.runs.delivered import is_overtaken, left_to_models, run_with_model_labels
from routing.visibility import view_permission

MOST_RUNS = 10
"""So many runs, the newest ones, can be chosen on the page; the API knows all."""
MOST_BASES = 50
"""Of so many deliveries one can be chosen on the page; the API knows all."""

BESIDE = {
    "certificate.json": gettext_lazy("What is certified, and with which settings."),
    "draw.jsonl": gettext_lazy(
        "The calibration set with the labels by people and the answers of the models."
    ),
    "committed.jsonl": gettext_lazy("What models had said of each item before the draw."),
    "pilot.jsonl": gettext_lazy("What they had said of the pilot, where the run has one."),
    "answered.jsonl": gettext_lazy("What they have said since, so that every route can be checked."),
    "manifest.json": gettext_lazy("Size and SHA-256 of every other file."),
    "README.md": gettext_lazy("What is in the delivery, what is promised and what is not, in words."),
}
"""The files of a delivery whatever its formats, and what people are told of each."""

OF_ANY_RUN = ("manifest.json", "README.md")
"""Of these the ones that a run without any model has, too."""


@needs("deliveries.view", "GET")
def deliveries(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    job = project.jobs.filter(kind=DELIVER).order_by("-id").first()
    routed = list(project.runs.filter(state__in=ROUTED).order_by("-number")[:MOST_RUNS])
    asked = _number(request.GET.get("run", ""))
    deliverable = next((run for run in routed if run.number == asked), next(iter(routed), None))
    job_unfinished = job is not None and job.state in UNFINISHED
    with_models = run_with_model_labels(deliverable) if deliverable and not job_unfinished else None
    can_deliver = deliverable is not None and request.access.allows("deliveries.make") and not job_unfinished
    found = Paginator(deliveries_of(project).order_by("-id"), limits.RUNS_LISTED)
    page = found.get_page(request.GET.get("page"))
    return render(
        request,
        "routing/delivery/deliveries.html",
        {
            "page": page,
            "reports": delivery_reports(project, page),
            "can_deliver": can_deliver,
            # No certificate is spoken of where there is none.
            "by_people": (project.runs.exists() and not project.runs.filter(by_people=False).exists()),
            # The form says of each format what it is: then the others are left to be told of.
            "file_words": _beside(deliverable) if can_deliver else file_words(deliverable),
            "formats": _formats(job),
            "limits": format_limits(),
            "connections": project.connections.order_by("name"),
            "deliverable": deliverable,
            "with_models": with_models,
            "left_to_models": left_to_models(with_models) if with_models else 0,
            "overtaken": not job_unfinished and deliverable is not None and is_overtaken(deliverable),
            "routed": routed,
            "bases": bases_of(deliverable)[:MOST_BASES] if deliverable else [],
            "filters": _filters(request, deliverable) if deliverable else [],
            "job": job,
            "job_unfinished": job_unfinished,
            "progress": job_progress(job) if job is not None else None,
        },
    )


def _beside(run: Run | None) -> dict[str, Any]:
    by_people = run is not None and run.by_people
    return {name: words for name, words in BESIDE.items() if not by_people or name in OF_ANY_RUN}


def file_words(run: Run | None = None) -> dict[str, Any]:
    """What people are told of each file that a delivery can have, of the run where one is given."""
    return {writer.file_name: writer.summary for writer in FORMATS.values()} | _beside(run)


def _formats(job: Job | None) -> list[tuple[str, str, str, bool]]:
    """Of each format its name, its file, what to say of it, and whether the last delivery had it."""
    chosen = (job.params if job else {}).get("formats", DEFAULT_FORMATS)
    return [(name, writer.file_name, str(writer.summary), name in chosen) for name, writer in FORMATS.items()]


def _filters(request: ProjectRequest, run: Run) -> list[dict[str, Any]]:
    """The fields of those that can be used for a delivery of this run now."""
    permission = view_permission(request.access.project, request.access, run=run.number)
    if run.by_people:
        permission = replace(permission, run=None, run_sources=())
    elif permission.run != run:
        return []
    return list(table_query.fields(table_query.TableRequest({}), table_query.options(permission), permission))


@needs("deliveries.make", "POST")
def run_deliver(request: ProjectRequest, number: int) -> HttpResponseBase:
    """What is chosen on the page of the deliveries; from elsewhere all items in the usual formats."""
    project, asked = request.access.project, request.POST
    run = get_object_or_404(Run, project=project, number=number)
    with refusals_as_messages(request):
        since = _number(asked.get("since", ""))
        deliver(
            run=run,
            user=request.user,
            formats=asked.getlist("format") if "choose" in asked else DEFAULT_FORMATS,
            since=find_base(project, since) if asked.get("since") else None,
            filters={name: value for name in FILTERS if (value := asked.get(name, "").strip())},
        )
        messages.success(request, _("The files are being written; they appear here."))
    return redirect("deliveries", request.access.project.slug)


@needs("deliveries.make", "POST")
def delivery_export(request: ProjectRequest, delivery_id: int) -> HttpResponseBase:
    """Put all files of a delivery into a bucket."""
    project = request.access.project
    delivery = get_object_or_404(
        Delivery.objects.select_related("run__project"), pk=delivery_id, run__project=project
    )
    connection = get_object_or_404(project.connections, pk=_number(request.POST.get("connection", "")))
    job = None
    with refusals_as_messages(request):
        job = export_delivery(
            delivery=delivery,
            connection=connection,
            user=request.user,
            prefix=request.POST.get("prefix") or None,
            overwrite="overwrite" in request.POST,
        )
    return redirect("job", project.slug, job.pk) if job else redirect("deliveries", project.slug)


def _number(text: str) -> int:
    """0, which no row has, where it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


@needs("deliveries.view", "GET")
def delivery_file(request: ProjectRequest, delivery_id: int, name: str) -> HttpResponseBase:
    file = get_object_or_404(
        DeliveryFile.objects.select_related("file", "delivery__run__project"),
        delivery_id=delivery_id,
        delivery__run__project=request.access.project,
        name=name,
    )
    try:
        return file_response(request, file)
    except HypacError as error:
        return _lost(request, error)


@needs("deliveries.view", "GET")
def delivery_zip(request: ProjectRequest, delivery_id: int) -> HttpResponseBase:
    """All files of a delivery in one archive."""
    delivery = get_object_or_404(
        Delivery.objects.select_related("run__project"), pk=delivery_id, run__project=request.access.project
    )
    try:
        return archive_response(request, delivery)
    except HypacError as error:
        return _lost(request, error)


def _lost(request: ProjectRequest, error: HypacError) -> HttpResponseBase:
    """Back to the page, with what happened."""
    lost = _("This file is no longer in the storage. Make a new delivery.")
    messages.error(request, lost if error.permanent else error.message)
    return redirect("deliveries", request.access.project.slug)
