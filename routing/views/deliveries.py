"""Files of labelled data."""

from django.contrib import messages
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.errors import HypacError
from annotation.jobs import UNFINISHED
from annotation.models import Job
from annotation.selectors.job_progress import job_progress
from annotation.services.files import open_file
from annotation.views.access import ProjectRequest, needs, told
from annotation.views.downloads import download
from routing.delivery import DEFAULT_FORMATS, FORMATS
from routing.delivery.archive import zipped
from routing.models import Delivery, DeliveryFile, Run
from routing.selectors.deliveries import DELIVER, delivery_reports
from routing.services.deliveries import deliver
from routing.services.states import ROUTED

FILES = {
    "labels.csv": gettext_lazy(
        "Every item with its label, for spreadsheets. Cells that would start a formula have an apostrophe in "
        "front."
    ),
    "labels.jsonl": gettext_lazy("The same for programs, one JSON object on each line, every value exact."),
    "labels.tsv": gettext_lazy("As labels.csv, with tabs in place of commas."),
    "labels.json": gettext_lazy("As labels.jsonl, as one list."),
    "labels.parquet": gettext_lazy(
        "For analysis with pandas, Polars, DuckDB or Spark: typed columns, every value exact."
    ),
    "certificate.json": gettext_lazy("What is certified, and with which settings."),
    "draw.jsonl": gettext_lazy(
        "The calibration set with the labels by people and the answers of the models."
    ),
    "README.md": gettext_lazy("What is in the delivery, what is promised and what is not, in words."),
}
"""What people are told of each file."""


@needs("deliveries.view", "GET")
def deliveries(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    job = project.jobs.filter(kind=DELIVER).order_by("-id").first()
    return render(
        request,
        "routing/deliveries.html",
        {
            "reports": delivery_reports(project),
            "file_words": FILES,
            "formats": _formats(job),
            "deliverable": project.runs.filter(state__in=ROUTED).order_by("-number").first(),
            "job": job,
            "job_unfinished": job is not None and job.state in UNFINISHED,
            "progress": job_progress(job) if job is not None else None,
        },
    )


def _formats(job: Job | None) -> list[tuple[str, str, str, bool]]:
    """Of each format its name, its file, what to say of it, and whether the last delivery had it."""
    chosen = (job.params if job else {}).get("formats", DEFAULT_FORMATS)
    return [
        (name, writer.file_name, str(FILES[writer.file_name]), name in chosen)
        for name, writer in FORMATS.items()
    ]


@needs("deliveries.make", "POST")
def run_deliver(request: ProjectRequest, number: int) -> HttpResponseBase:
    """In the formats that are chosen on the page of the deliveries; from elsewhere in the usual ones."""
    run = get_object_or_404(Run, project=request.access.project, number=number)
    formats = request.POST.getlist("format") if "choose" in request.POST else DEFAULT_FORMATS
    with told(request):
        deliver(run=run, user=request.user, formats=formats)
        messages.success(request, _("The files are being written; they appear here."))
    return redirect("deliveries", request.access.project.slug)


@needs("deliveries.view", "GET")
def delivery_file(request: ProjectRequest, delivery_id: int, name: str) -> HttpResponseBase:
    file = get_object_or_404(
        DeliveryFile.objects.select_related("file", "delivery__run"),
        delivery_id=delivery_id,
        delivery__run__project=request.access.project,
        name=name,
    )
    try:
        return download(request, file.file, name=f"{_prefix(file.delivery)}-{file.name}")
    except HypacError as error:
        return _lost(request, error)


@needs("deliveries.view", "GET")
def delivery_zip(request: ProjectRequest, delivery_id: int) -> HttpResponseBase:
    """All files of a delivery in one archive."""
    delivery = get_object_or_404(
        Delivery.objects.select_related("run"), pk=delivery_id, run__project=request.access.project
    )
    files = list(delivery.files.select_related("file"))
    for entry in files:
        try:
            open_file(entry.file).close()
        except HypacError as error:  # to be told now: once the archive has begun, it could only break off
            return _lost(request, error)
    prefix = _prefix(delivery)
    return StreamingHttpResponse(
        zipped(files, prefix),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="{prefix}.zip"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _prefix(delivery: Delivery) -> str:
    return f"run-{delivery.run.number}-delivery-{delivery.number}"


def _lost(request: ProjectRequest, error: HypacError) -> HttpResponseBase:
    """Back to the page, with what happened."""
    lost = _("This file is no longer in the storage. Make a new delivery.")
    messages.error(request, lost if error.permanent else error.message)
    return redirect("deliveries", request.access.project.slug)
